"""One call of an operation: its gradients and its tangents, as TensorFlow asks.

Each mode is by its own rule if there is one, else by the transpose of the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ....operations import contract
from ..private import EagerTensor, pass_on, tapes_see
from .rules import Rules
from .tensors import dense


class Call(Rules):
    """Both modes of one call."""

    __slots__ = ()

    # Reverse

    def backward(self, *dys: Any) -> list[Any]:
        """For a tape: the gradients of all inputs, None where nobody follows."""
        if self.check is not None:
            self.check()
        found = self.gradients(dys, self.wanted)
        return [*found, *dys] if self.captured else found

    def gradients(
        self, dys: Sequence[Any], wanted: Sequence[int], missing: Any = None
    ) -> list[Any]:
        """The gradients of the arrays and variables at the wanted positions.

        `missing(i)` is what stands for one that is declared not to exist, if it is
        not known whether somebody asked for it.
        """
        application = self.application
        gradients: list[Any] = [None] * (self.arrays + len(application.variables))
        if not wanted:
            return gradients
        try:
            dys = [dense(dy, self.operation.name) for dy in dys]
            if application.vjp is None:
                flat = self._transposed_tangents(dys, wanted)
            else:
                flat = application.gradients(dys, wanted)
            for i in wanted:
                gradient = flat[i]
                if type(gradient) is not EagerTensor:
                    gradient = self._meant(gradient, i, missing)
                gradients[i] = gradient
        except Exception as error:
            pass_on(error)
            raise
        return gradients

    def _meant(self, gradient: Any, i: int, missing: Any) -> Any:
        """What a checked gradient stands for, as a tensor."""
        if isinstance(gradient, contract.NotDifferentiable):
            if missing is not None:
                return missing(i)
            name = self.application.name_of(i)
            raise contract.no_gradient(self.operation.name, name, gradient.why)
        if gradient is None or gradient is contract.zero:
            return self.filled(i, 0)
        return dense(gradient, self.operation.name)

    def _transposed_tangents(self, dys: list[Any], wanted: Sequence[int]) -> list[Any]:
        def tangents(*dxs: Any) -> list[Any]:
            given = dict(zip(wanted, dxs, strict=True))
            return self.tangents([given.get(i) for i in range(self.arrays)])

        with contract.transposing(self.operation, None, mode="reverse", missing="vjp"):
            ones = [self.filled(i, 1) for i in wanted]
            found = dict(zip(wanted, _transposed(tangents, ones, dys), strict=True))
        return [found.get(i) for i in range(self.arrays)]

    # Forward

    def forward(self, ys: Sequence[Any]) -> Callable[..., list[Any]]:
        """For an accumulator: the tangents of the outputs from those of the inputs."""
        own = self.arrays + len(self.application.variables)

        def push(*dxs: Any) -> list[Any]:
            # A tangent may be an argument too, which the accumulator follows
            dxs = tuple(dx if dx is None else tf.identity(dx) for dx in dxs)
            if self.has_jvp:
                call = self.apart()
                with tapes_see():
                    dys = call.tangents(dxs[:own])
            else:
                dys = self._transposed_gradients(ys, dxs[:own])
            rest = dxs[own:]
            return [dy + dm for dy, dm in zip(dys, rest, strict=True)] if rest else dys

        return push

    def _transposed_gradients(self, ys: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        vjp = self.application.vjp
        with contract.transposing(self.operation, vjp, mode="forward", missing="jvp"):
            if self.check is not None:
                self.check()
            call = self.apart()
            ones = [tf.ones_like(y) for y in ys]
            # If left to transpose it itself, an accumulator gets nothing of a rule that
            # opens a tape
            with tapes_see():
                backward = lambda *dys: call.gradients(dys, self.wanted)
                return _transposed(backward, ones, dxs)

    def refuse(self, *dxs: Any) -> list[Any]:
        vjp = self.application.vjp
        with contract.transposing(self.operation, vjp, mode="forward", missing="jvp"):
            raise AssertionError("there is a transpose, and nobody asked for it")


def _transposed(
    fn: Callable[..., Any], ones: Sequence[Any], given: Sequence[Any]
) -> list[Any]:
    """What a linear function's transpose gives, found at ones.

    At zeros the user's code may take shortcuts.
    """
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(ones)
        found = fn(*ones)
    pairs = zip(found, given, strict=True)
    pairs = [(g, dx) for g, dx in pairs if g is not None and dx is not None]
    ys, dys = [g for g, _ in pairs], [dx for _, dx in pairs]
    return tape.gradient(ys, ones, dys, tf.UnconnectedGradients.ZERO)
