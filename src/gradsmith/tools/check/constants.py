"""The numbers in an operation's code: thresholds where it may behave differently.

A threshold (`where(x > 1.5, ...)`) is a constant of the body or of the rule, of a
function that they call, or of what they enclose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...core.reach import captured

# Where operations of ours, and wrappers, keep the functions that they are made of.
_ATTRIBUTES = (
    "fn", "vjp_rule", "jvp_rule", "func", "__wrapped__", "__func__", "__self__",
)  # fmt: skip
_DEPTH = 8
_LIMIT = 32
_SMALL, _LARGE = 1e-12, 1e9


def constants_of(op: Any, attributes: Iterable[str] = ()) -> list[float]:
    """The constants in the code of an operation, each once, in order.

    `attributes` are those in which a framework's operations keep their functions.

    >>> constants_of(lambda x: x if x > 1.5 else 0.25 * x)
    [0.25, 1.5]
    """
    found: dict[float, None] = {}
    for c in _numbers(op, _DEPTH, set(), (*_ATTRIBUTES, *attributes)):
        if _SMALL < abs(c) < _LARGE:
            found[abs(float(c))] = None
    return sorted(found)[:_LIMIT]


def _numbers(
    thing: Any, depth: int, seen: set[int], attributes: Sequence[str]
) -> Iterator[float]:
    if depth < 0 or id(thing) in seen or isinstance(thing, ModuleType):
        return
    seen.add(id(thing))
    if isinstance(thing, (int, float)) and not isinstance(thing, bool):
        yield thing
    elif isinstance(thing, CodeType):
        for constant in thing.co_consts:
            yield from _numbers(constant, depth, seen, attributes)
    elif isinstance(thing, (tuple, list)):
        for each in thing[:_LIMIT]:
            yield from _numbers(each, depth - 1, seen, attributes)
    elif isinstance(thing, FunctionType):
        for part in _parts(thing):
            yield from _numbers(part, depth - 1, seen, attributes)
    elif callable(thing):
        for name in attributes:
            yield from _numbers(_held(thing, name), depth - 1, seen, attributes)


def _parts(fn: FunctionType) -> Iterator[Any]:
    """What a function is made of, and what it names of its own module."""
    yield fn.__code__
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()
    yield from (x for _, x in captured(fn))
    for name in fn.__code__.co_names:
        used = fn.__globals__.get(name)
        if getattr(used, "__module__", None) == fn.__module__ or isinstance(
            used, (int, float)
        ):
            yield used
    yield getattr(fn, "__wrapped__", None)


def _held(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody else's class
        return None
