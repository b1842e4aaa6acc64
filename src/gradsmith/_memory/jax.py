"""What JAX's gradient keeps: the residuals that it tells of."""

from __future__ import annotations

import re
from typing import Any

from jax._src.ad_checkpoint import saved_residuals

from .. import _tree
from .._arrays import framework_of
from .._nan.places import Place, place_at
from .model import Kept

_LINE = re.compile(r"from (\S+?):(\d+)(?::\d+)? \((.*)\)")
_NOTE = "in compiled code XLA may keep less: this is what JAX hands to it"


def look(fn: Any, args: Any, kwargs: Any) -> tuple[list[Kept], tuple[str, ...]]:
    leaves = _tree.leaves((args, kwargs))
    places = [i for i, x in enumerate(leaves) if framework_of(x) == "jax"]

    def flat(*arrays: Any) -> Any:
        full = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            full[i] = x
        given, named = _tree.unflatten((args, kwargs), full)
        return [
            y for y in _tree.leaves(fn(*given, **named)) if framework_of(y) == "jax"
        ]

    found = []
    residuals: Any = saved_residuals(flat, *(leaves[i] for i in places))
    for aval, why in residuals:
        # Arguments, constants and literals are alive anyway.
        if why.startswith(("output of", "named")) and aval.size:
            found.append(Kept(_operation(why), _place(why), _size(aval)))
    return found, (_NOTE,)


def _size(aval: Any) -> int:
    return aval.size * aval.dtype.itemsize


def _operation(why: str) -> str:
    """From "output of sin from f.py:3 (f)"."""
    named = re.match(r"(?:named '(.*?)'|output of (.*?)) from ", why)
    return (named[1] or named[2]) if named else why


def _place(why: str) -> Place | None:
    found = _LINE.search(why)
    return place_at(found[1], int(found[2]), found[3]) if found else None
