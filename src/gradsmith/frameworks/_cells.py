"""Functions with other tensors in place of those that they captured."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

_DEPTH = 4  # from a gradient to its helper, to a list of tensors


def with_captured(fn: Any, swap: Callable[[Any], Any], depth: int = _DEPTH) -> Any:
    """A copy of a function with `swap(x)` for each x that it captured.

    Looks into lists, tuples, dicts and functions; what `swap` returns as it is, stays.
    """
    return _swapped(fn, swap, depth)


def _swapped(x: Any, swap: Callable[[Any], Any], depth: int) -> Any:
    if not depth:
        return x
    inner = lambda x: _swapped(x, swap, depth - 1)
    if type(x) is FunctionType and x.__closure__:
        return _with_cells(x, inner)
    if type(x) is list or type(x) is tuple:
        found: Any = type(x)([inner(part) for part in x])
        return found if any(a is not b for a, b in zip(found, x, strict=True)) else x
    if type(x) is dict:
        found = {key: inner(part) for key, part in x.items()}
        return found if any(found[key] is not x[key] for key in x) else x
    return swap(x)


def _with_cells(fn: FunctionType, inner: Callable[[Any], Any]) -> FunctionType:
    cells = [_with_contents(cell, inner) for cell in fn.__closure__ or ()]
    if all(a is b for a, b in zip(cells, fn.__closure__ or (), strict=True)):
        return fn
    code, defaults = fn.__code__, fn.__defaults__
    copy = FunctionType(code, fn.__globals__, fn.__name__, defaults, tuple(cells))
    copy.__kwdefaults__ = fn.__kwdefaults__
    return copy


def _with_contents(cell: CellType, inner: Callable[[Any], Any]) -> CellType:
    if cell == CellType():  # not assigned yet
        return cell
    found = inner(cell.cell_contents)
    return cell if found is cell.cell_contents else CellType(found)
