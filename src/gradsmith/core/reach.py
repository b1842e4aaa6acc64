"""What a function reaches: the arguments, and what it captures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from . import trees
from .arrays import FRAMEWORKS, NUMPY, framework_of
from .tape import Traced

_PLAIN = (
    str, bytes, int, float, complex, type(None), type, ModuleType, BuiltinFunctionType,
    np.ndarray, np.generic, np.dtype, Traced,
)  # fmt: skip
_DEPTH = 6  # from a function to its helper, to an object, to a dict in it
_MOST = 2000


def reached(*roots: Any, stop: Callable[[Any], bool]) -> Iterator[Any]:
    """Whatever `stop` says yes to, in closures, globals, attributes and containers.

    >>> rng = np.random.default_rng(0)
    >>> f = lambda x: x * rng.random()
    >>> list(reached(f, stop=lambda x: x is rng)) == [rng]
    True
    """
    seen: dict[int, Any] = {}
    level: list[Any] = list(roots)
    for _ in range(_DEPTH):
        following: list[Any] = []
        for value in level:
            if id(value) in seen or len(seen) > _MOST:
                continue
            if stop(value):
                seen[id(value)] = value
                yield value
            elif not is_plain(value):
                seen[id(value)] = value
                following += _inside(value)
        level = following


def framework_reached(fn: Any, args: Any, kwargs: Any) -> str:
    """The framework of the arguments; if they are plain, of what the function captures.

    A layer may be called with a NumPy array, or a function with nothing at all.
    """
    plain = True
    for x in trees.leaves((args, kwargs)):
        if _is_foreign(x):
            return framework_of(x) or NUMPY
        plain = plain and not isinstance(x, Traced)
    others = (each for each in FRAMEWORKS.values() if each.name != NUMPY)
    if plain and any(each.is_imported for each in others):
        for x in reached(fn, stop=_is_foreign):
            return framework_of(x) or NUMPY
    return NUMPY


def _is_foreign(x: Any) -> bool:
    return framework_of(x) not in (None, NUMPY)


def is_plain(value: Any) -> bool:
    """Whether nothing is inside of it."""
    return isinstance(value, _PLAIN)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(islice(value.values(), _MOST))
    if isinstance(value, (list, tuple, set, deque)):
        return list(islice(value, _MOST))
    if isinstance(value, GeneratorType):
        return list(value.gi_frame.f_locals.values()) if value.gi_frame else []
    attributes = getattr(value, "__dict__", None)
    found = list(attributes.values()) if isinstance(attributes, dict) else []
    return found + _in_slots(value)


def _in_slots(value: Any) -> list[Any]:
    found = []
    for cls in type(value).__mro__:
        members = vars(cls).values() if "__slots__" in vars(cls) else ()
        for slot in members:
            if isinstance(slot, MemberDescriptorType):
                try:
                    found.append(slot.__get__(value))
                except AttributeError:  # not assigned yet
                    continue
    return found


def _of_function(fn: FunctionType) -> list[Any]:
    names = _names_in(fn.__code__)
    values = [fn.__globals__[name] for name in names if name in fn.__globals__]
    values += fn.__defaults__ or ()
    values += (fn.__kwdefaults__ or {}).values()
    for cell in fn.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    wrapped = getattr(fn, "__wrapped__", None)
    return values if wrapped is None else [*values, wrapped]


@cache
def _names_in(code: CodeType) -> frozenset[str]:
    """The names of globals, among others, in a function and those inside of it."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return frozenset(code.co_names).union(*map(_names_in, inner))
