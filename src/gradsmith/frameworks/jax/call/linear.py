"""The derivative of an operation at a point: a linear function with its transpose.

JAX's own `linear_call` can't be batched nor differentiated with respect to the point,
and wants both functions traced before anybody asks for them.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
from jax.extend.core import unmapped_aval

from ....operations import contract
from ..private import over_batch, weakref_cache_key_types
from .specs import ones


class LinearMap:
    """`push(*residuals, *dxs)` gives tangents, `pull(*residuals, *dys)` cotangents.

    One of them may be missing, and is then the transpose of the other. `held` is the
    number of residuals; `ins` and `outs` are the types of the tangents.
    """

    __slots__ = ("__weakref__", "held", "ins", "operation", "outs", "pull", "push")

    def __init__(
        self,
        operation: Any,
        *,
        pull: Callable[..., Sequence[Any]] | None,
        push: Callable[..., Sequence[Any]] | None,
        held: int,
        ins: Sequence[Any],
        outs: Sequence[Any],
    ) -> None:
        self.operation = operation
        self.pull = pull
        self.push = push
        self.held = held
        self.ins = ins
        self.outs = outs

    def tangents(self, residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        if self.push is not None:
            return list(self.push(*residuals, *dxs))
        with self._transposing("forward", "jvp"):
            return _transposed(partial(self._pulled, *residuals), self.outs, dxs)

    def cotangents(self, residuals: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
        if self.pull is not None:
            return list(self.pull(*residuals, *dys))
        with self._transposing("reverse", "vjp"):
            return _transposed(partial(self._pushed, *residuals), self.ins, dys)

    def _pulled(self, *args: Any) -> Any:
        assert self.pull is not None
        return tuple(self.pull(*args))

    def _pushed(self, *args: Any) -> Any:
        assert self.push is not None
        return tuple(self.push(*args))

    def _transposing(self, mode: str, missing: str) -> Any:
        return contract.transposing(
            self.operation, self.pull, mode=mode, missing=missing
        )

    def mapped(self, axis: Any, held: Sequence[int | None]) -> LinearMap:
        """The same over a batch, of all tangents and of some residuals."""

        def mapped(fn: Any, avals: Sequence[Any]) -> Any:
            if fn is None:
                return None
            dims = (*held, *(0 for _ in avals))
            return over_batch(lambda *args: tuple(fn(*args)), axis, dims)

        return LinearMap(
            self.operation,
            pull=mapped(self.pull, self.outs),
            push=mapped(self.push, self.ins),
            held=self.held,
            ins=[_batched(aval, axis.size) for aval in self.ins],
            outs=[_batched(aval, axis.size) for aval in self.outs],
        )


# Otherwise JAX's caches would keep what an eager rule captured.
weakref_cache_key_types.add(LinearMap)


def _transposed(fn: Any, avals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Transpose a linear function.

    By its derivative, in which operations that it uses are honoured; JAX's
    `linear_transpose` looks into their bodies.
    """
    _, pull = jax.vjp(fn, *map(ones, avals))
    return list(pull(tuple(cotangents)))


def _batched(aval: Any, size: int) -> Any:
    return unmapped_aval(size, 0, aval)
