"""A function with its own derivative, as a primitive of JAX.

`jax.custom_jvp` is no such primitive. What evaluates a part of traced code looks into
its body and drops its rule: a scan whose gradient is differentiated again, or
`jax.linear_transpose` and `jax.experimental.jet` of compiled code.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
from jax.core import eval_jaxpr
from jax.custom_derivatives import SymbolicZero
from jax.experimental.jet import jet_rules
from jax.extend.core import Primitive

from ....core.errors import UnsupportedOperationError
from ..private import (
    ad,
    batching,
    check_inside,
    mlir,
    over_batch,
    platform_of,
    traced,
    weakref_cache_key_types,
)
from .specs import still


class Custom:
    """`run(*inputs)` gives values, `jvp(inputs, tangents)` values and their tangents.

    Tangents may be `SymbolicZero`. `outs` are the types of the values. `kernel` does
    the same as `run` on one device of its platform (fused.py).
    """

    __slots__ = ("__weakref__", "effects", "jvp", "kernel", "name", "outs", "run")

    def __init__(
        self,
        name: str,
        *,
        run: Callable[..., Sequence[Any]],
        jvp: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
        outs: Sequence[Any],
        effects: Any,
        kernel: Any = None,
    ) -> None:
        self.name = name
        self.run = run
        self.jvp = jvp
        self.outs = outs
        self.effects = effects
        self.kernel = kernel

    def __call__(self, *inputs: Any) -> list[Any]:
        return custom_p.bind(*inputs, custom=self)

    def __repr__(self) -> str:
        return self.name

    def mapped(self, axis: Any, dims: Sequence[int | None], avals: Any) -> Custom:
        """The same over a batch of some inputs; all values have the batch."""
        code = traced(over_batch(self.run, axis, dims), avals)
        return Custom(
            self.name,
            run=partial(eval_jaxpr, code.jaxpr, code.consts),
            jvp=partial(self._mapped_jvp, axis, dims),
            outs=code.out_avals,
            effects=code.effects,
        )

    def _mapped_jvp(
        self, axis: Any, dims: Sequence[int | None], primals: Any, tangents: Any
    ) -> tuple[Any, Any]:
        moved = [i for i, dx in enumerate(tangents) if type(dx) is not SymbolicZero]
        moving: list[bool] = []

        def one(*inputs: Any) -> tuple[Any, Any]:
            xs, some = inputs[: len(dims)], inputs[len(dims) :]
            places = dict(zip(moved, some, strict=True))
            dxs = [places[i] if i in places else still(x) for i, x in enumerate(xs)]
            ys, dys = self.jvp(xs, dxs)
            moving.extend(type(dy) is not SymbolicZero for dy in dys)
            return ys, [dy for dy in dys if type(dy) is not SymbolicZero]

        axes = [*dims, *(dims[i] for i in moved)]
        inputs = [*primals, *(tangents[i] for i in moved)]
        ys, dys = over_batch(one, axis, axes)(*inputs)
        rest, pairs = iter(dys), zip(ys, moving, strict=True)
        return ys, [next(rest) if moves else still(y) for y, moves in pairs]


# Otherwise JAX's caches would keep what a body captured.
weakref_cache_key_types.add(Custom)

custom_p = Primitive("gradsmith_call")
custom_p.multiple_results = True


@custom_p.def_impl
def _run(*inputs: Any, custom: Custom) -> Sequence[Any]:
    if custom.kernel is not None:
        return custom.kernel.at_once(inputs)
    return custom.run(*inputs)


@custom_p.def_effectful_abstract_eval
def _types(*avals: Any, custom: Custom) -> tuple[Sequence[Any], Any]:
    return custom.outs, custom.effects


def _lowered(ctx: Any, *inputs: Any, custom: Custom) -> Any:
    run = custom.run
    if custom.kernel is not None and custom.kernel.platform == platform_of(ctx):
        run = custom.kernel
    return mlir.lower_fun(run, multiple_results=True)(ctx, *inputs)


mlir.register_lowering(custom_p, _lowered)


def _jvp(primals: Any, tangents: Any, *, custom: Custom) -> tuple[Any, Any]:
    dxs = [SymbolicZero(dx.aval) if type(dx) is ad.Zero else dx for dx in tangents]
    ys, dys = custom.jvp(primals, dxs)
    return ys, [ad.Zero(dy.aval) if type(dy) is SymbolicZero else dy for dy in dys]


ad.primitive_jvps[custom_p] = _jvp


def _transpose(dys: Any, *inputs: Any, custom: Custom) -> Any:
    raise UnsupportedOperationError(
        f"operation {custom.name!r} was applied to a value that jax.linear_transpose, "
        "or the rule of a jax.custom_jvp, transposes: that would transpose its body "
        "and drop its rule. Use jax.vjp, which uses the rule."
    )


ad.primitive_transposes[custom_p] = _transpose


def _batch(axis: Any, args: Any, dims: Any, *, custom: Custom) -> tuple[Any, Any]:
    if all(d is None for d in dims):
        return custom(*args), [None] * len(custom.outs)
    ys = custom.mapped(axis, dims, [*map(jax.typeof, args)])(*args)
    return ys, [0] * len(ys)


batching.fancy_primitive_batchers[custom_p] = _batch


def _jet(primals: Any, series: Any, *, custom: Custom) -> Any:
    raise UnsupportedOperationError(
        f"operation {custom.name!r} was called in jax.experimental.jet, which takes no "
        "custom rule, JAX's own included: nest jax.jvp instead"
    )


jet_rules[custom_p] = _jet


def _known(*, custom: Custom) -> Any:
    """The same as a custom_jvp, whose body checkify follows."""
    known = jax.custom_jvp(custom.run)
    known.defjvp(custom.jvp, symbolic_zeros=True)
    return known


check_inside(custom_p, _known)
