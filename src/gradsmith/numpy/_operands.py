"""Arguments as arrays of the dtypes that NumPy would compute in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..frameworks._dtypes import NUMBERS, kind_of_value
from ._dispatch import arrays_in, kernels_of_one


def is_array(K: Any, x: Any) -> bool:
    """Whether an argument is an array of these kernels' framework."""
    return kernels_of_one(x) is K


def kind_of(K: Any, x: Any) -> Any:
    """The dtype of an operand, as promotion sees it."""
    if is_array(K, x):
        return K.operand_kind(x)
    if holds_arrays(x):  # the numbers beside them are arrays too, as in np.array
        return K.result_type(*[K.result_type(kind_of(K, part)) for part in x])
    cls = type(x)
    return cls if cls in NUMBERS else K.evaluated(kind_of_value, x)


def converted(K: Any, x: Any, name: str, like: Any = None) -> Any:
    """An operand as an array of a dtype; of a list with arrays in it, one array."""
    if holds_arrays(x):
        return K.stack([converted(K, part, name, like) for part in x], 0)
    return K.cast(x, name) if is_array(K, x) else K.constant(x, name, like)


def promoted(K: Any, *xs: Any) -> list[Any]:
    """Operands as arrays of the one dtype that NumPy would promote them to."""
    if len(xs) == 2 and is_array(K, xs[0]) and is_array(K, xs[1]):
        floats = K.as_floats("", *xs)
        if floats is not None:  # 2 us less
            return list(floats)
    name = K.result_type(*[kind_of(K, x) for x in xs])
    like = first_array(K, xs)
    return [converted(K, x, name, like) for x in xs]


def first_array(K: Any, xs: Iterable[Any]) -> Any:
    for x in xs:
        found = first_array(K, x) if isinstance(x, (list, tuple)) else x
        if is_array(K, found):
            return found
    return None


def holds_arrays(x: Any) -> bool:
    """Whether an argument is a list, however nested, with arrays in it."""
    return isinstance(x, (list, tuple)) and any(True for _ in arrays_in(x))


def operand(K: Any, x: Any, like: Any = None) -> Any:
    """An argument as an array of its own dtype."""
    if is_array(K, x):
        return x
    like = first_array(K, (like, x))
    return converted(K, x, K.result_type(kind_of(K, x)), like)
