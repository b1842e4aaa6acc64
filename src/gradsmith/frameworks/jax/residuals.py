"""What JAX's gradient keeps: the residuals that it tells of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax

from ...core import trees
from ...core.arrays import framework_of
from ...core.places import Place, place_at
from .._residuals import Residual
from .observe.equations import evaluated, run_of
from .private import from_line, saved_residuals

NOTES = ("in compiled code XLA may keep less: this is what JAX hands to it",)
_LINE = re.compile(r"from (\S+?):(\d+)(?::\d+)? \((.*)\)")


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
    return [
        Residual(_operation(why), _place(why), aval.size * aval.dtype.itemsize)
        for aval, why in saved_residuals(inlined, *arrays)
        # Arguments, constants and literals are alive anyway.
        if why.startswith(("output of", "named")) and aval.size
    ]


def _inlined(eqn: Any, xs: Sequence[Any]) -> Sequence[Any]:
    """Run an equation; what is compiled, as a part of the whole.

    Of a compiled function JAX tells that it kept something, and not which line did.
    """
    if eqn.primitive.name in ("jit", "pjit"):
        return evaluated(eqn.params["jaxpr"], xs, _inlined)
    with from_line(eqn.source_info.traceback):
        return run_of(eqn)(*xs)


def _operation(why: str) -> str:
    """From "output of sin from f.py:3 (f)"."""
    named = re.match(r"(?:named '(.*?)'|output of (.*?)) from ", why)
    return (named[1] or named[2]) if named else why


def _place(why: str) -> Place | None:
    found = _LINE.search(why)
    return place_at(found[1], int(found[2]), found[3]) if found else None
