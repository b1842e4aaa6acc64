"""Sets: functions that choose elements, each of which moves along with its choice.

Of elements that are equal the first one is chosen, in the order of the arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.rule import composite, nondifferentiable, primitive
from .axes import as_array

_NOTE = "the first of equal elements has the gradient"


@primitive
def unique_parts(x: Any, axis: Any, equal_nan: bool) -> Any:
    """Where the distinct elements come first, their places, and how many are equal."""
    return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]


@primitive
def first_places(x: Any, fn: Any, args: Any, options: Any) -> Any:
    """Where in x the elements stand of which the set `fn(*args)` consists."""
    chosen = fn(*args, **options)
    order = np.argsort(x, kind="stable")
    return order[np.searchsorted(x, chosen, sorter=order)]


nondifferentiable("it returns positions", unique_parts, first_places)


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True,
    sorted: bool = True,
) -> Any:  # fmt: skip
    ar = as_array(ar)
    parts = unique_parts(ar, axis, equal_nan)
    values = np.take(ar, parts[0], axis)
    wanted = (return_index, return_inverse, return_counts)
    given = [part for part, want in zip(parts, wanted, strict=True) if want]
    return (values, *given) if given else values


def unique_all(x: Any) -> Any:
    return _result(np.unique_all)(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> Any:
    found = unique(x, return_counts=True, equal_nan=False)
    return _result(np.unique_counts)(*found)


def unique_inverse(x: Any) -> Any:
    found = unique(x, return_inverse=True, equal_nan=False)
    return _result(np.unique_inverse)(*found)


def unique_values(x: Any) -> Any:
    return chosen(np.unique_values, [x], {})


def _result(fn: Any) -> Any:
    return type(fn(np.zeros(1)))  # has no public name


def chosen(fn: Any, args: list[Any], options: Any) -> Any:
    """The elements of the arguments that are in the set `fn(*args)`."""
    args = [as_array(arg) for arg in args]
    every = np.concatenate([np.ravel(arg) for arg in args])
    return every[first_places(every, fn, args, options)]


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    values = chosen(np.intersect1d, [ar1, ar2], {"assume_unique": assume_unique})
    if not return_indices:
        return values
    return values, *common_places(as_array(ar1), as_array(ar2), assume_unique)


@primitive
def common_places(ar1: Any, ar2: Any, assume_unique: bool) -> Any:
    return np.intersect1d(ar1, ar2, assume_unique, return_indices=True)[1:]


nondifferentiable("it returns positions", common_places)


def _of_two(fn: Any) -> Any:
    return lambda ar1, ar2, *rest, **options: chosen(
        lambda a, b: fn(a, b, *rest, **options), [ar1, ar2], {}
    )


composite(np.unique, unique, note=_NOTE)
composite(np.unique_all, unique_all, note=_NOTE)
composite(np.unique_counts, unique_counts, note=_NOTE)
composite(np.unique_inverse, unique_inverse, note=_NOTE)
composite(np.unique_values, unique_values, note=_NOTE)
composite(np.intersect1d, intersect1d, note=_NOTE)
for _fn in (np.union1d, np.setdiff1d, np.setxor1d):
    composite(_fn, _of_two(_fn), note=_NOTE)
