"""Arrays of other types beside tensors: who answers, and what is refused.

A rule is about NumPy's arithmetic. A type that has its own (a matrix, a masked array, a
quantity with a unit) is asked to compute by itself, or refused; its elements are not
taken out without a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import UnsupportedOperationError
from .infinite import Infinite
from .rule import name_of
from .symbolic import Symbolic
from .tape import Traced

PRIORITY = 1000  # of tensors: who has a higher one answers their operators
_USUAL = {np.ndarray, Infinite, int, float, bool, str, tuple, list, type(None)}
_NEVER_FIRST = (
    *(Traced, np.generic, Symbolic, Infinite),
    *(int, float, complex, list, tuple),
)
_PROTOCOLS = ("__array_ufunc__", "__array_function__")
_ARITHMETIC = tuple(
    f"__{prefix}{name}__"
    for prefix in ("", "r")
    for name in ("add", "sub", "mul", "truediv", "pow", "matmul")
)


def computes_differently(cls: type) -> bool:
    """Whether an array type has its own way with operators or NumPy's functions.

    >>> [*map(computes_differently, (np.ndarray, np.memmap, np.matrix))]
    [False, False, True]
    """
    if cls in _USUAL or issubclass(cls, (Traced, np.generic, Symbolic)):
        return False
    if not issubclass(cls, np.ndarray):
        return any(hasattr(cls, name) for name in _PROTOCOLS)
    if _is_own(cls, "__array_wrap__") and not issubclass(cls, np.memmap):
        return True
    return any(_is_own(cls, name) for name in _PROTOCOLS + _ARITHMETIC)


def _is_own(cls: type, name: str) -> bool:
    found = getattr(cls, name, None)
    return found is not None and found is not getattr(np.ndarray, name)


def goes_first(cls: type, reflected: str) -> bool:
    """Whether `tensor * other` is the other type's to answer, as for NumPy's arrays."""
    if issubclass(cls, _NEVER_FIRST):
        return False
    if issubclass(cls, np.ndarray):
        return _is_own(cls, reflected)
    if not hasattr(cls, "__array_ufunc__"):
        above = getattr(cls, "__array_priority__", 0) > PRIORITY
        return above and hasattr(cls, reflected)
    return cls.__array_ufunc__ is None or hasattr(cls, reflected)


def answer_of(x: Any, protocol: str, fn: Any, *call: Any, **kwargs: Any) -> Any:
    """What a type that has its own way with a function makes of a call with tensors."""
    cls = type(x)
    if hasattr(cls, protocol) and _is_own(cls, protocol):
        y = getattr(cls, protocol)(x, *call, **kwargs)
        if y is not NotImplemented:
            return y
    raise UnsupportedOperationError(
        f"{name_of(fn)} was given a gs.Tensor together with a {cls.__name__}, and "
        "neither knows the other: a rule would compute something else than "
        f"{cls.__name__} does. Convert it first: np.asarray(...)."
    )


_READABLE = ("__array__", "__array_interface__", "__array_struct__", "__len__")


def read(x: Any, fn: Any) -> Any:
    """An array of what NumPy reads as one, a frame or a deque, say; others as they are.

    A sparse matrix has a shape as well, but NumPy reads a single object.
    """
    cls = type(x)
    if issubclass(cls, _NEVER_FIRST) or not any(hasattr(cls, p) for p in _READABLE):
        return x
    array = np.asarray(x)
    if array.dtype.kind == "O" and not array.ndim and getattr(x, "shape", ()) != ():
        raise UnsupportedOperationError(
            f"{name_of(fn)} was given a gs.Tensor together with a {cls.__name__}, "
            "which NumPy can't read as an array. Convert it first (x.toarray() of a "
            "sparse one), or define an operation with its own gradient by gs.python_op."
        )
    return array


def refuse_as_tensor(x: Any, what: str) -> None:
    """A tensor of such an array would forget what makes it special."""
    if isinstance(x, np.ndarray) and computes_differently(type(x)):
        raise UnsupportedOperationError(
            f"{what} is a {type(x).__name__}, which has its own arithmetic, and the "
            "engine differentiates NumPy's. Pass np.asarray(x) to mean its elements."
        )


def foreign_in(x: Any) -> Any:
    """The first array in the arguments that computes differently, if there is one."""
    if isinstance(x, (list, tuple)):
        found = (foreign_in(part) for part in x)
        return next((part for part in found if part is not None), None)
    return x if computes_differently(type(x)) else None
