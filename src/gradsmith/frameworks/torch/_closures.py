"""A gradient function and the tensors that it captured, told apart.

So the tensors can be saved as PyTorch saves them: released after the walk back, watched
for changes in place, seen by hooks, and replaced by those of another transformation.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CellType, FunctionType
from typing import Any

import torch

from ... import _tree


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


def stripped(grad: Any, tensors: list[Any]) -> Any:
    """A gradient function without its tensors, which are added to `tensors`."""
    return Stripped(grad, tensors, None) if grad.__class__ is FunctionType else grad


def restored(grad: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """The gradient function with these tensors in place of its own."""
    return grad.restored(tensors) if grad.__class__ is Stripped else grad


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
    elif isinstance(value, (tuple, list, dict)):
        taken = _tree.map(lambda leaf: _taken(leaf, tensors, seen), value)
        pairs = zip(_tree.leaves(taken), _tree.leaves(value), strict=True)
        if any(a is not b for a, b in pairs):
            return taken
    return value


def _given(value: Any, tensors: Sequence[torch.Tensor], made: Any) -> Any:
    """A value with tensors where its own were."""
    if value.__class__ is _Slot:
        return tensors[value.i]
    if value.__class__ is Stripped:
        return value.restored(tensors, made)
    if _tree.is_leaf(value):
        return value
    return _tree.map(lambda leaf: _given(leaf, tensors, made), value)
