"""Arrays of the user's code that it may write into again, after it returned them.

A solver may keep a buffer and return it from each call: `np.exp(x, out=buffer)`. Two
results would be one. So an array that somebody else holds is copied, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount
from types import FunctionType
from typing import Any

import numpy as np

from ..core.pool import is_lent
from ..core.reach import captured


def own(y: Any, grad: Any = None, beside: Iterable[Any] = (), *, held: int = 0) -> Any:
    """An array, or a copy of it if its memory is held by others.

    The caller holds it in `held` places. What `grad` captured does not count, nor does
    the memory of the arrays `beside`, which the user's code can't write into.
    """
    if y.__class__ is not np.ndarray:
        return y
    base, count = y.base, getrefcount(y) - _ALONE - held
    if base is None or is_lent(y):
        kept = count and count > sum(x is y for x in _captured_by(grad))
        return _copied(y) if kept else y
    if any(base is _memory(x) for x in beside):
        return y
    is_arrays = base.__class__ is np.ndarray and base.base is None
    count += getrefcount(base) - _BASE if is_arrays else 1
    kept = count and count > sum(_memory(x) is base for x in _captured_by(grad))
    return _copied(y) if kept else y


def _copied(y: np.ndarray) -> np.ndarray:
    return y.copy()


def _captured_by(grad: Any) -> list[Any]:
    if grad.__class__ is not FunctionType:
        return []
    return [x for _, x in captured(grad) if x.__class__ is np.ndarray]


def _memory(x: Any) -> Any:
    return x.base if x.__class__ is np.ndarray and x.base is not None else x


def _references(y: Any, grad: Any = None, *, held: int = 0) -> tuple[int, int]:
    """The references that `own` sees to an array and its base, if others have none."""
    base, count = y.base, getrefcount(y)
    return count, getrefcount(base)


_ALONE, _BASE = _references([np.empty(1).view()].pop())
