"""What JAX's gradient keeps: the arrays that a pullback holds when it is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Literal

from ...core import trees
from ...core.arrays import framework_of
from .._protocol import Residual
from .observe.equations import evaluated, name_of, place_of, run_of
from .private import from_line

NOTES = ("in compiled code XLA may keep less: this is what JAX hands to it",)


def residuals(fn: Any, args: Any, kwargs: Any) -> list[Residual]:
    """The arrays that a gradient keeps."""
    leaves = trees.leaves((args, kwargs))
    places = [i for i, x in enumerate(leaves) if framework_of(x) == "jax"]

    def flat(*arrays: Any) -> Any:
        full = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            full[i] = x
        given, named = trees.unflatten((args, kwargs), full)
        return [
            y for y in trees.leaves(fn(*given, **named)) if framework_of(y) == "jax"
        ]

    arrays = [leaves[i] for i in places]
    closed = jax.make_jaxpr(flat)(*arrays)
    inlined = lambda *xs: evaluated(closed, xs, _inlined)
    # The leaves alone: JAX's caches would keep the tree, which knows the pullback
    held = lambda *xs: jax.tree.leaves(jax.vjp(inlined, *xs)[1])
    return _made_in(jax.make_jaxpr(held)(*arrays).jaxpr)


def _made_in(code: Any) -> list[Residual]:
    """The outputs, as far as they are made here.

    Arguments, constants and literals are alive anyway.
    """
    kept = {v for v in code.outvars if type(v) is not Literal}
    for eqn in code.eqns:
        if eqn.primitive.name == "reduce_precision" and eqn.outvars[0] in kept:
            kept.add(eqn.invars[0])  # so JAX keeps XLA from computing it again
            kept.discard(eqn.outvars[0])
    return [
        Residual(_name(eqn), place_of(eqn), v.aval.size * v.aval.dtype.itemsize)
        for eqn in code.eqns
        for v in eqn.outvars
        if v in kept and v.aval.size
    ]


def _name(eqn: Any) -> str:
    """The name that a user gave the value (`checkpoint_name`), or the operation's."""
    return eqn.params["name"] if eqn.primitive.name == "name" else name_of(eqn)


def _inlined(eqn: Any, xs: Sequence[Any]) -> Sequence[Any]:
    """Run an equation; what is compiled, as a part of the whole.

    Of a compiled function JAX tells that it kept something, and not which line did.
    """
    if eqn.primitive.name in ("jit", "pjit"):
        return evaluated(eqn.params["jaxpr"], xs, _inlined)
    with from_line(eqn.source_info.traceback):
        return run_of(eqn)(*xs)
