"""A gradient function and the tensors that it captured, told apart.

So the tensors can be saved as PyTorch saves them: released after the walk back, watched
for changes in place, seen by hooks, and replaced by those of another transformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

import torch

from ....core import trees

_NUMBERS = {bool, int, float, complex, str}


class Stripped:
    """A function without the tensors in its cells and defaults.

    A cell is the place of a tensor, a cell without one, or something to be filled.

    >>> def multiply_by(x):
    ...     return lambda dy: dy * x
    >>> tensors = []
    >>> empty = stripped(multiply_by(torch.tensor(2.0)), tensors)
    >>> tensors
    [tensor(2.)]
    >>> empty.restored([torch.tensor(5.0)])(1.0)
    tensor(5.)
    """

    __slots__ = ("attributes", "cells", "code", "defaults", "globals", "keywords")

    def __init__(self, fn: FunctionType, tensors: list[Any], seen: Any) -> None:
        self.code = fn.__code__
        self.globals = fn.__globals__
        self.cells: list[Any] = []
        if seen is not None:
            seen[id(fn)] = self
        for cell in fn.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # it is empty
                self.cells.append(cell)
                continue
            if content.__class__ is torch.Tensor:  # the usual case
                self.cells.append(_place(content, tensors))
            else:
                seen = {id(fn): self} if seen is None else seen
                taken = _taken(content, tensors, seen)
                self.cells.append(cell if taken is content else taken)
        self.defaults = self.keywords = self.attributes = None
        if fn.__defaults__ or fn.__kwdefaults__ or fn.__dict__:
            seen = {id(fn): self} if seen is None else seen
            self.defaults = _taken(fn.__defaults__, tensors, seen)
            self.keywords = _taken(fn.__kwdefaults__, tensors, seen)
            self.attributes = fn.__dict__

    def restored(self, tensors: Sequence[torch.Tensor], made: Any = None) -> Any:
        """The function with these tensors where its own were."""
        if made is not None and self in made:
            return made[self]
        cells, unfilled = [], False
        for content in self.cells:
            if content.__class__ is int:
                cells.append(CellType(tensors[content]))
            elif content.__class__ is CellType:
                cells.append(content)
            else:
                unfilled = True
                cells.append(CellType())
        fn = FunctionType(self.code, self.globals, None, None, tuple(cells))
        if unfilled or self.attributes is not None:
            self._fill(fn, tensors, {} if made is None else made)
        return fn

    def _fill(self, fn: FunctionType, tensors: Sequence[Any], made: Any) -> None:
        made[self] = fn
        for cell, content in zip(fn.__closure__ or (), self.cells, strict=True):
            if content.__class__ is not int and content.__class__ is not CellType:
                cell.cell_contents = _given(content, tensors, made)
        fn.__defaults__ = _given(self.defaults, tensors, made)
        fn.__kwdefaults__ = _given(self.keywords, tensors, made)
        fn.__dict__.update(self.attributes or {})


class _Slot:
    """Where a tensor was."""

    __slots__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i


class _Partial:
    """A `functools.partial` without its tensors: function, arguments and keywords."""

    __slots__ = ("parts",)

    def __init__(self, parts: Any) -> None:
        self.parts = parts


def stripped(grad: Any, tensors: list[Any]) -> Any:
    """A gradient function without its tensors, which are added to `tensors`."""
    if grad.__class__ is FunctionType:
        return Stripped(grad, tensors, None)
    return _taken(grad, tensors, {})


def restored(grad: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """The gradient function with these tensors in place of its own."""
    if grad.__class__ is Stripped:
        return grad.restored(tensors)
    return _given(grad, tensors, {})


def alike(grad: Any, other: Any) -> bool:
    """Whether two stripped functions are the same code with the same numbers."""
    if grad.__class__ is not Stripped or other.__class__ is not Stripped:
        return True
    return grad.code is other.code and all(map(_alike, grad.cells, other.cells))


def _alike(a: Any, b: Any) -> bool:
    if a.__class__ is CellType and b.__class__ is CellType:
        a, b = content(a), content(b)
    return a.__class__ not in _NUMBERS or (a.__class__ is b.__class__ and a == b)


def content(cell: CellType) -> Any:
    """What is in a cell; None if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _place(x: torch.Tensor, tensors: list[Any]) -> int:
    for i, known in enumerate(tensors):
        if known is x:
            return i
    tensors.append(x)
    return len(tensors) - 1


def _taken(value: Any, tensors: list[Any], seen: Any) -> Any:
    """A value without its tensors; the value itself if it has none."""
    if isinstance(value, torch.Tensor):
        return _Slot(_place(value, tensors))
    if value.__class__ is FunctionType:
        if value.__closure__ or value.__defaults__ or value.__kwdefaults__:
            return seen.get(id(value)) or Stripped(value, tensors, seen)
    elif value.__class__ is partial:
        parts = (value.func, value.args, value.keywords)
        taken = _taken(parts, tensors, seen)
        return value if taken is parts else _Partial(taken)
    elif not trees.is_leaf(value):
        taken = trees.map(lambda leaf: _taken(leaf, tensors, seen), value)
        pairs = zip(trees.leaves(taken), trees.leaves(value), strict=True)
        if any(a is not b for a, b in pairs):
            return taken
    return value


def _given(value: Any, tensors: Sequence[torch.Tensor], made: Any) -> Any:
    """A value with tensors where its own were."""
    if value.__class__ is _Slot:
        return tensors[value.i]
    if value.__class__ is Stripped:
        return value.restored(tensors, made)
    if value.__class__ is _Partial:
        fn, args, keywords = _given(value.parts, tensors, made)
        return partial(fn, *args, **keywords)
    if trees.is_leaf(value):
        return value
    return trees.map(lambda leaf: _given(leaf, tensors, made), value)
