"""Where an operation is defined, and what it is called there."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from ...core.reach import captured

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
# What holds the function that was written, in all kinds of wrappers
GENERATED = "__autograph_generated_file"  # by a compiler
_INSIDE = ("__func__", "func", "__wrapped__", "python_function", "fun")


@dataclass(frozen=True)
class Definition:
    """An operation's name, and the lines that define it."""

    name: str
    module: str
    file: str
    line: int

    @property
    def root(self) -> str:
        """The package that it belongs to."""
        return self.module.partition(".")[0]

    @property
    def first_line(self) -> int:
        """Of a class, which knows its methods alone, the line that names it."""
        above = linecache.getlines(self.file)[: self.line]
        name = re.compile(rf"\s*class {re.escape(self.name.rpartition('.')[2])}\b")
        found = (i for i in range(len(above), 0, -1) if name.match(above[i - 1]))
        return next(found, self.line)


def definition_of(name: str, *definitions: Any) -> Definition:
    """That of the first object that was written in Python.

    >>> definition_of("f", len, definition_of).module
    'gradsmith.tools.recording.definitions'
    """
    for definition in definitions:
        for fn in _written(definition):
            file, line = fn.__code__.co_filename, _first_line(definition, fn)
            module = fn.__globals__.get("__name__", "")
            if GENERATED in file:
                file, line = _written_at(_short(name), fn.__globals__)
            return Definition(_short(name), module, file, line)
    module = getattr(definitions[0], "__module__", None) or ""
    return Definition(_short(name), module, "", 0)


def _written_at(name: str, module: dict[str, Any]) -> tuple[str, int]:
    """Where a function is written of which a compiler made another; ("", 0) if that is
    not clear.
    """
    file = module.get("__file__") or ""
    definition = re.compile(rf"\s*def {re.escape(name.rpartition('.')[2])}\b")
    lines = linecache.getlines(file) if file else []
    found = [i for i, line in enumerate(lines, 1) if definition.match(line)]
    if len(found) != 1:
        return "", 0
    (line,) = found
    while line > 1 and lines[line - 2].lstrip().startswith("@"):
        line -= 1
    return file, line


def _first_line(definition: Any, fn: FunctionType) -> int:
    lines = [code.co_firstlineno for code in _codes(definition, fn.__code__)]
    return min(lines, default=fn.__code__.co_firstlineno)


def _codes(definition: Any, first: CodeType) -> Iterator[CodeType]:
    """Those of a class's own methods: it starts a line above the first."""
    for member in vars(definition).values() if isinstance(definition, type) else ():
        code = getattr(getattr(member, "__func__", member), "__code__", None)
        if code is not None and code.co_filename == first.co_filename:
            yield code


def _written(definition: Any) -> Iterator[FunctionType]:
    """The functions that a definition consists of."""
    if isinstance(definition, type):
        for member in vars(definition).values():
            yield from _written(getattr(member, "__func__", None))
        return
    seen = 0
    while definition is not None and not isinstance(definition, FunctionType):
        inside = (getattr(definition, name, None) for name in _INSIDE)
        definition = next((fn for fn in inside if fn is not None), None)
        seen += 1
        if seen > 20:  # objects that answer to any name
            return
    if definition is not None:
        yield definition


def _short(qualname: str) -> str:
    """A name without the functions that it is local to.

    >>> _short("test_it.<locals>.Layer.act")
    'Layer.act'
    """
    return qualname.rpartition("<locals>.")[2]


def captured_by(*definitions: Any) -> tuple[str, ...]:
    """The numbers and words that functions took from where they were defined.

    >>> def power(n):
    ...     return lambda x: x**n
    >>> captured_by(power(3))
    ('n=3',)
    """
    functions = [fn for each in definitions for fn in _written(each)]
    cells = [cell for fn in functions for cell in captured(fn)]
    found = [f"{name}={x!r}" for name, x in cells if is_plain(x)]
    return tuple(dict.fromkeys(found))


def is_plain(x: Any) -> bool:
    """Whether a value is known by how it is written."""
    return isinstance(x, _PLAIN)
