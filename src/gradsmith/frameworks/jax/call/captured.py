"""Finding traced values that a body or a rule captures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import jax
from jax.core import Tracer

from ....core import trees

_DEPTH = 6  # of functions in functions and objects in objects
_MOST = 2000  # things looked at: a static argument may be a whole data set


class CapturedError(Exception):
    """A body turned out to capture a traced value, and must be staged to follow it."""


def tracers_in(*things: Any) -> list[Any]:
    """The traced values that functions and objects hold, as far as can be seen."""
    found: dict[int, Any] = {}
    for thing in things:
        _look(thing, found, set(), _DEPTH)
    return list(found.values())


def _look(thing: Any, found: dict[int, Any], seen: set[int], depth: int) -> None:
    if isinstance(thing, Tracer):
        found[id(thing)] = thing
    elif depth and len(seen) < _MOST and id(thing) not in seen:
        seen.add(id(thing))
        for part in _parts(thing):
            _look(part, found, seen, depth - 1)


def _parts(thing: Any) -> Iterator[Any]:
    """What a function, a container or a user's object holds."""
    if isinstance(thing, FunctionType):
        yield from thing.__defaults__ or ()
        yield from (thing.__kwdefaults__ or {}).values()
        for cell in thing.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                continue
    elif isinstance(thing, MethodType):
        yield thing.__func__
        yield thing.__self__
    elif isinstance(thing, partial):
        yield thing.func
        yield from thing.args
        yield from thing.keywords.values()
    elif not trees.is_leaf(thing):
        yield from (child for _, child in trees.children(thing) or ())
    elif not isinstance(thing, (type, ModuleType, jax.Array)):
        yield from [*getattr(thing, "__dict__", {}).values()]
        slots = getattr(type(thing), "__slots__", ())
        names = [slots] if isinstance(slots, str) else slots
        yield from (getattr(thing, name, None) for name in names if name[:2] != "__")
