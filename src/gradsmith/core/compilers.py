"""What compilers do not look into: functions of ours that they call as they are.

A tool says so here, whether or not a compiler is there yet; a framework that has one
registers how it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
Tell = Callable[[type, str, str], Any]
_methods: list[tuple[type, str, str]] = []  # with the class, and the reason
_compilers: list[Tell] = []
_rewriters: list[str] = []  # the attributes that they look for
_not_rewritten: WeakSet[Any] = WeakSet()


def not_rewritten(fn: T) -> T:
    """Mark a function, or the objects of a class, that nobody rewrites.

    Else a compiler that rewrites Python does so with the function, or with the one
    that this wraps, each time that it traces.
    """
    if not _rewriters:  # a set is nothing to change while a compiler traces
        _not_rewritten.add(fn)
    for attribute in _rewriters:
        setattr(fn, attribute, {})
    return fn


def add_rewriter(attribute: str) -> None:
    """Mark what is not rewritten by an attribute that a compiler looks for."""
    _rewriters.append(attribute)
    for fn in _not_rewritten:
        setattr(fn, attribute, {})


def not_traced(cls: type, *methods: str, reason: str) -> None:
    """Let compilers run methods in Python; `reason` is for who forbids that."""
    for name in methods:
        _methods.append((cls, name, reason))
        for tell in _compilers:
            tell(cls, name, reason)


def add_compiler(tell: Tell) -> None:
    """Call `tell(cls, name, reason)` for each method that is not traced."""
    _compilers.append(tell)
    for method in _methods:
        tell(*method)
