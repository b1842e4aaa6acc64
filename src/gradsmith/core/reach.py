"""What functions and objects hold: in closures, globals, attributes, containers."""

from __future__ import annotations

import dis
import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
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
from .symbolic import Symbolic
from .tape import Traced

_PLAIN = (
    str, bytes, int, float, complex, type(None), type, ModuleType, BuiltinFunctionType,
    np.ndarray, np.generic, np.dtype, Traced,
)  # fmt: skip
_ATOMS = {*_PLAIN, bool} - {np.ndarray, np.generic, Traced}  # found the fastest way
_DEPTH = 6  # from a function to its helper, to an object, to a dict in it
_MOST = 2000


def captured(fn: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function took from where it was defined, by name.

    >>> def power(n):
    ...     return lambda x: x**n
    >>> dict(captured(power(3)))
    {'n': 3}
    """
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def reached(
    *roots: Any, stop: Callable[[Any], bool], globals: bool = True
) -> Iterator[Any]:
    """Whatever `stop` says yes to, in closures, globals, attributes and containers.

    Nothing is looked for inside of that. Without `globals`, only what is held: not what
    a function finds by its name when it runs.

    >>> rng = np.random.default_rng(0)
    >>> f = lambda x: x * rng.random()
    >>> list(reached(f, stop=lambda x: x is rng)) == [rng]
    True
    """
    seen: dict[int, Any] = {}
    level: list[Any] = list(roots)
    for deeper in range(_DEPTH, -1, -1):
        following: list[Any] = []
        for value in level:
            if value.__class__ in _ATOMS or id(value) in seen or len(seen) > _MOST:
                continue
            if stop(value):
                seen[id(value)] = value
                yield value
            elif deeper and not isinstance(value, _PLAIN):
                seen[id(value)] = value
                following += _inside(value, globals)
        level = following


def parts_of(x: Any, deeper: int = 4) -> Iterator[Any]:
    """What an object consists of: what has parts by its class, the others as they are.

    >>> list(parts_of({"at": [1.0, 2.0]}))
    [<class 'dict'>, 'at', <class 'list'>, 1.0, 2.0]
    """
    if not deeper or isinstance(x, (*_PLAIN, FunctionType)):
        yield x
        return
    yield x.__class__
    if isinstance(x, dict):
        yield from x
    for part in _inside(x, globals=False):
        yield from parts_of(part, deeper - 1)


class Captures:
    """Where a function finds what it captures, to look there again and again.

    A closure's variables, globals by their names and attributes of objects may hold a
    tensor where they held an array before. Functions among them are looked into once,
    so that a look takes 0.3 us for each place; `reached` takes 2 to 90 in all.
    """

    def __init__(self, fn: Any) -> None:
        self._cells: list[Any] = []
        self._names: list[tuple[dict[str, Any], str]] = []
        self._owners: list[Any] = []
        self._find(fn, set())

    def _find(self, fn: Any, seen: set[int]) -> None:
        if id(fn) in seen:
            return
        seen.add(id(fn))
        if isinstance(fn, partial):
            self._owners.append((fn.args, fn.keywords))
            self._find(fn.func, seen)
            return
        if isinstance(fn, MethodType):
            self._owners.append(fn.__self__)
            fn = fn.__func__
        elif not isinstance(fn, FunctionType):
            self._owners.append(fn)
            fn = type(fn).__call__
        if isinstance(fn, FunctionType):
            self._find_in(fn, seen)

    def _find_in(self, fn: FunctionType, seen: set[int]) -> None:
        known = fn.__globals__
        ours = (fn.__module__ or "").startswith("gradsmith.")
        names = [] if ours else [n for n in names_in(fn.__code__) if n in known]
        self._cells += fn.__closure__ or ()
        self._names += [(known, n) for n in names if not isinstance(known[n], _FIXED)]
        for value in _of_function(fn, globals=not ours):
            if isinstance(value, (FunctionType, MethodType, partial)):
                self._find(value, seen)

    def hold_tensors(self) -> bool:
        """Whether there is a tensor now, which is not of a trace, not too deep."""
        if any(_holds_tensor(known.get(name)) for known, name in self._names):
            return True
        for cell in self._cells:
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if _holds_tensor(value):
                return True
        return any(map(_holds_tensor, self._owners))


_FIXED = (ModuleType, FunctionType, BuiltinFunctionType, type, np.ufunc)
_NO_TENSOR = _ATOMS | {np.ndarray, FunctionType}


def _holds_tensor(x: Any, deeper: int = 2) -> bool:
    if x.__class__ in _NO_TENSOR:
        return False
    if isinstance(x, Traced):
        return not isinstance(x.value, Symbolic)
    if not deeper or isinstance(x, _FIXED):
        return False
    return any(_holds_tensor(part, deeper - 1) for part in _inside(x, globals=False))


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


def _inside(value: Any, globals: bool) -> list[Any]:
    if value.__class__ is FunctionType:
        return _of_function(value, globals)
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


def _of_function(fn: FunctionType, globals: bool) -> list[Any]:
    known = fn.__globals__
    names = names_in(fn.__code__) if globals else ()
    values = [known[name] for name in names if name in known]
    if fn.__defaults__:
        values += fn.__defaults__
    if fn.__kwdefaults__:
        values += fn.__kwdefaults__.values()
    for cell in fn.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    if fn.__dict__ and "__wrapped__" in fn.__dict__:
        values.append(fn.__dict__["__wrapped__"])
    return values


@cache
def names_in(code: CodeType) -> frozenset[str]:
    """The names of globals, among others, in a function and those inside of it."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return frozenset(code.co_names).union(*map(names_in, inner))


@lru_cache(maxsize=4096)
def global_names(code: CodeType) -> tuple[str, ...]:
    """The names of the globals that a function, or one inside of it, reads.

    >>> global_names((lambda x: np.sin(x.gc)).__code__)
    ('np',)
    """
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    read = [i.argval for i in dis.get_instructions(code) if i.opname in _READS]
    return tuple(dict.fromkeys([*read, *(n for c in inner for n in global_names(c))]))


_READS = ("LOAD_GLOBAL", "LOAD_NAME")


def arrays_kept(*roots: Any, beside: Iterable[Any] = ()) -> Iterator[np.ndarray]:
    """The arrays that objects keep alive, however deep inside.

    Each memory once: of views the array that has it. What is `beside` is left out.

    >>> x = np.zeros(4)
    >>> [kept.size for kept in arrays_kept((x[1:], {"x": x}))]
    [4]
    """
    seen: dict[int, Any] = {id(x): x for x in beside}
    stack = list(roots)
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, _WITHOUT_ARRAYS):
            continue
        seen[id(x)] = x
        if isinstance(x, np.ndarray):
            base = x.base.obj if isinstance(x.base, memoryview) else x.base
            if isinstance(base, np.ndarray):
                stack.append(base)
            else:
                yield x
        elif isinstance(x, FunctionType):
            stack += _of_function(x, globals=False)
        else:
            # A compiled function is of another type, and refers to its module's names
            names = x.__globals__ if hasattr(type(x), "__globals__") else None
            stack += [y for y in gc.get_referents(x) if y is not names]


_WITHOUT_ARRAYS = (type, ModuleType, str, bytes, int, float)
