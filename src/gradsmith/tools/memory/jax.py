"""What JAX's gradient keeps: the residuals that it tells of."""

from __future__ import annotations

import re
from typing import Any

import jax
from jax._src.ad_checkpoint import saved_residuals
from jax._src.source_info_util import user_context
from jax.extend.core import Literal

from ...core import trees
from ...core.arrays import framework_of
from ...core.places import Place, place_at
from .model import Kept

_LINE = re.compile(r"from (\S+?):(\d+)(?::\d+)? \((.*)\)")
_NOTE = "in compiled code XLA may keep less: this is what JAX hands to it"


def look(fn: Any, args: Any, kwargs: Any) -> tuple[list[Kept], tuple[str, ...]]:
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

    found = []
    arrays = [leaves[i] for i in places]
    closed = jax.make_jaxpr(flat)(*arrays)
    inlined = lambda *xs: _run(closed.jaxpr, closed.consts, xs)
    residuals: Any = saved_residuals(inlined, *arrays)
    for aval, why in residuals:
        # Arguments, constants and literals are alive anyway.
        if why.startswith(("output of", "named")) and aval.size:
            found.append(Kept(_operation(why), _place(why), _size(aval)))
    return found, (_NOTE,)


def _run(jaxpr: Any, consts: Any, xs: Any) -> list[Any]:
    """Run a program, and what it calls compiled as a part of it.

    Of a compiled function JAX tells that it kept something, and not which line did.
    """
    known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *xs), strict=True))
    value = lambda x: x.val if isinstance(x, Literal) else known[x]
    for eqn in jaxpr.eqns:
        given = [value(x) for x in eqn.invars]
        if eqn.primitive.name in ("jit", "pjit"):
            inner = eqn.params["jaxpr"]
            ys = _run(inner.jaxpr, inner.consts, given)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            with user_context(eqn.source_info.traceback):
                ys = eqn.primitive.bind(*given, **params)
            ys = ys if eqn.primitive.multiple_results else [ys]
        known.update(zip(eqn.outvars, ys, strict=True))
    return [value(x) for x in jaxpr.outvars]


def _size(aval: Any) -> int:
    return aval.size * aval.dtype.itemsize


def _operation(why: str) -> str:
    """From "output of sin from f.py:3 (f)"."""
    named = re.match(r"(?:named '(.*?)'|output of (.*?)) from ", why)
    return (named[1] or named[2]) if named else why


def _place(why: str) -> Place | None:
    found = _LINE.search(why)
    return place_at(found[1], int(found[2]), found[3]) if found else None
