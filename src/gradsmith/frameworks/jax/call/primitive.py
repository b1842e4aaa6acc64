"""The derivative of an operation at a point, as a primitive of JAX.

Its transpose is the user's vjp itself: exactly that formula is compiled, and it may use
what JAX can't transpose, like a loop or a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from ..private import ad, batching, mlir
from .linear import LinearMap

linear_p = Primitive("gradsmith_linear")
linear_p.multiple_results = True


@linear_p.def_impl
def _run(*args: Any, linear: LinearMap) -> list[Any]:
    return linear.tangents(args[: linear.held], args[linear.held :])


@linear_p.def_abstract_eval
def _types(*avals: Any, linear: LinearMap) -> Sequence[Any]:
    return linear.outs


mlir.register_lowering(linear_p, mlir.lower_fun(_run, multiple_results=True))


def _transpose(dys: Sequence[Any], *args: Any, linear: LinearMap) -> list[Any]:
    residuals, dxs = args[: linear.held], args[linear.held :]
    unused = [None] * linear.held
    if all(type(dy) is ad.Zero for dy in dys):
        return [*unused, *(ad.Zero(aval) for aval in linear.ins)]
    found = linear.cotangents(residuals, [ad.instantiate_zeros(dy) for dy in dys])
    pairs = zip(dxs, found, strict=True)
    return [*unused, *(d if ad.is_undefined_primal(dx) else None for dx, d in pairs)]


ad.primitive_transposes[linear_p] = _transpose


def _jvp(primals: Any, tangents: Any, *, linear: LinearMap) -> tuple[Any, Any]:
    """Linear in dx; in the residuals the rule is differentiated as it is written."""
    residuals, dxs = primals[: linear.held], primals[linear.held :]
    moves, ddxs = tangents[: linear.held], tangents[linear.held :]
    dys = linear_p.bind(*primals, linear=linear)
    total: list[Any] = [ad.Zero(aval) for aval in linear.outs]
    if any(type(ddx) is not ad.Zero for ddx in ddxs):
        ddxs = map(ad.instantiate_zeros, ddxs)
        total = linear_p.bind(*residuals, *ddxs, linear=linear)
    moved = [i for i, move in enumerate(moves) if type(move) is not ad.Zero]
    if moved:

        def at(*points: Any) -> list[Any]:
            places = dict(zip(moved, points, strict=True))
            held = [places.get(i, x) for i, x in enumerate(residuals)]
            return linear.tangents(held, dxs)

        points, moves = [residuals[i] for i in moved], [moves[i] for i in moved]
        _, parts = jax.jvp(at, points, moves)
        total = [*map(ad.add_tangents, total, parts)]
    return dys, total


ad.primitive_jvps[linear_p] = _jvp


def _batch(axis: Any, args: Any, dims: Any, *, linear: LinearMap) -> tuple[Any, Any]:
    if all(d is None for d in dims):
        return linear_p.bind(*args, linear=linear), [None] * len(linear.outs)
    args = [
        x if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    for i in range(linear.held, len(args)):
        if dims[i] is None:  # so that all tangents have the batch, in both directions
            args[i] = jnp.broadcast_to(args[i], (axis.size, *args[i].shape))
    held = [None if d is None else 0 for d in dims[: linear.held]]
    dys = linear_p.bind(*args, linear=linear.mapped(axis, held))
    return dys, [0] * len(dys)


batching.fancy_primitive_batchers[linear_p] = _batch
