"""The shapes and dtypes that calls of NumPy's functions give.

Elementwise functions are asked for the dtype with one element each, and the shape is
that of broadcasting; reductions with one element along each axis. All others run once,
on arrays of the true shapes that take no memory: a rule of shapes for each would be a
second NumPy.
"""

from __future__ import annotations

import warnings
from math import isqrt, prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..core.cotangent import Spec
from ..core.rule import convert, name_of
from ..core.symbolic import Symbolic
from .refusals import refuse_open


class NumberSpec(Spec):
    """Of one of NumPy's numbers, which is no array: nobody can write into it."""

    __slots__ = ()


# Functions of shapes and dtypes, whose results are known
STRUCTURAL = {
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.iscomplexobj,
    np.isrealobj, np.common_type, np.min_scalar_type, np.shares_memory,
    np.may_share_memory,
}  # fmt: skip
# Functions whose results have a shape that depends on the elements of the arguments at
# these places
_ALWAYS = (
    np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values,
    np.nonzero, np.flatnonzero, np.argwhere, np.trim_zeros, np.union1d, np.intersect1d,
    np.setdiff1d, np.setxor1d, np.roots, np.polydiv, np.polymul, np.linalg.lstsq,
)  # fmt: skip
_OPEN: dict[Any, tuple[int, ...]] = {
    **dict.fromkeys(_ALWAYS, (0, 1)),
    np.bincount: (0,),
    np.extract: (0,),
    np.compress: (0,),
    np.delete: (1,),
}


def result_of(fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The spec of the result; a list or tuple of specs if there are several."""
    _refuse_open(fn, args, kwargs)
    if isinstance(fn, np.ufunc) and not kwargs:
        if fn.signature is None:
            return _elementwise(fn, args)
        if "|" not in fn.signature:
            return _of_cores(fn, args)
    if fn in _LIKE_UFUNCS and len(args) >= _LIKE_UFUNCS[fn]:
        return _elementwise(fn, args, kwargs)
    if fn in _REDUCTIONS and len(args) < 3 and _OF_REDUCTIONS.issuperset(kwargs):
        return _reduction(fn, *args, **kwargs)
    if fn in (np.zeros, np.ones):
        return Spec(args[0], fn(1, *args[1:], **kwargs).dtype)
    found = specs(tried(fn, args, kwargs))
    if any(x.dtype.kind in "iub" for x in _symbols((args, kwargs))):
        # Whole numbers may be lengths, and flags may choose.
        try:
            others = specs(tried(fn, args, kwargs, 1))
        except (IndexError, ValueError):
            return found  # an index that is too large, and the like
        if str(found) != str(others):
            refuse_open(fn)
    return found


def _refuse_open(fn: Any, args: Any, kwargs: dict[str, Any]) -> None:
    given = [*args, *kwargs.values()]
    deciding = [x for i, x in enumerate(given) if i in _OPEN.get(fn, ())]
    if (
        next(_symbols(deciding), None) is not None
        or (fn is np.where and len(given) == 1)
        or (fn in _BINNED and any(isinstance(x, str) for x in given))
    ):
        refuse_open(fn)
    if fn in _COMPLEX and (given[0].dtype.kind == "c") == _COMPLEX[fn]:
        refuse_open(fn, "dtype")


_BINNED = (np.histogram, np.histogram_bin_edges)
# Functions that may return real or complex numbers: for complex arguments, or real ones
_COMPLEX = {
    np.real_if_close: True,
    np.poly: True,
    np.linalg.eig: False,
    np.linalg.eigvals: False,
}


# Functions that compute element by element and are no ufuncs, and how many arguments
# they have then
_LIKE_UFUNCS = {np.where: 3, np.clip: 3, convert: 2}
_REDUCTIONS = {
    np.sum, np.prod, np.max, np.min, np.mean, np.any, np.all, np.count_nonzero,
}  # fmt: skip

_OF_REDUCTIONS = {"axis", "keepdims", "dtype"}


def _reduction(
    fn: Any, x: Any, axis: Any = None, *, keepdims: Any = False, **options: Any
) -> Spec:
    y = fn(_one(x), **options)
    n = np.ndim(x)
    axes = range(n) if axis is None or not n else normalize_axis_tuple(axis, n)
    if fn in (np.max, np.min) and 0 in [np.shape(x)[i] for i in axes]:
        raise ValueError(f"{name_of(fn)} of an axis of length 0 has no result")
    shape = [
        1 if i in axes else length
        for i, length in enumerate(np.shape(x))
        if keepdims in (True, 1) or i not in axes  # np.average gives neither
    ]
    return _spec(tuple(shape), np.asarray(y).dtype)


def _elementwise(fn: Any, args: Any, kwargs: Any = MappingProxyType({})) -> Any:
    xs = [_one(x) for x in args]
    with np.errstate(all="ignore"):
        y = fn(*xs, **kwargs)
    if fn is convert:
        args = args[:1]
    shape = np.broadcast_shapes(*map(np.shape, args))
    if isinstance(y, tuple):
        return tuple(_spec(shape, part.dtype) for part in y)
    is_array = fn is np.where or (fn is convert and not _is_number(args[0]))
    return Spec(shape, y.dtype) if is_array else _spec(shape, y.dtype)


def _spec(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Spec:
    """Of what NumPy returns as a number if it has no axes."""
    return Spec(shape, dtype) if shape else NumberSpec(shape, dtype)


def _is_number(x: Any) -> bool:
    return isinstance(x, np.generic) or getattr(x, "is_number", False)


def _one(x: Any) -> Any:
    """One element of the dtype; Python's numbers as they are."""
    if isinstance(x, (Symbolic, np.ndarray)):
        return np.ones(1, x.dtype)  # type: ignore[attr-defined]
    return x


def _of_cores(ufunc: np.ufunc, args: Any) -> Any:
    """A generalized ufunc, as matmul: by the axes in its signature."""
    inputs, _, outputs = str(ufunc.signature).partition("->")
    sizes: dict[str, int] = {}
    loops, ones = [], []
    shapes = [np.shape(x) for x in args]
    for shape, core in zip(shapes, _cores(inputs), strict=True):
        missing = len(core) - len(shape)
        used = [n for n in core if not (missing > 0 and n.endswith("?"))]
        n = len(used)
        if len(shape) < n:
            raise ValueError(f"{name_of(ufunc)}: shapes {shapes} have too few axes")
        for name, length in zip(used, shape[len(shape) - n :], strict=True):
            if sizes.setdefault(name, length) != length:
                raise ValueError(f"{name_of(ufunc)}: shapes {shapes} don't match")
        loops.append(shape[: len(shape) - n])
    for x in args:
        dtype = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
        ones.append(np.ones((1,) * np.ndim(x), dtype))
    dtype = ufunc(*ones).dtype
    (core,) = _cores(outputs)
    shape = np.broadcast_shapes(*loops) + tuple(sizes[n] for n in core if n in sizes)
    return _spec(shape, dtype)


def _cores(text: str) -> list[list[str]]:
    parts = text.strip("()").split("),(")
    return [[name for name in part.split(",") if name] for part in parts]


def specs(y: Any) -> Any:
    """Arrays replaced by their specs."""
    if isinstance(y, np.ndarray):
        return Spec(y.shape, y.dtype)
    if isinstance(y, (tuple, list)):
        parts = [specs(part) for part in y]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    if isinstance(y, (np.generic, bool, float, complex)):
        return NumberSpec((), np.asarray(y).dtype)
    return y


def tried(fn: Any, args: Any, kwargs: Any, whole: int = 0) -> Any:
    """Run on arrays without memory: ones, and `whole` for whole numbers."""
    linear = "linalg" in (getattr(fn, "__module__", None) or "")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        first = None
        for fill in (_identity if linear else _ones, _whole_identity, _mixed):
            filled = _filled((args, kwargs), fill, whole)
            try:
                return fn(*filled[0], **filled[1])
            except ValueError as error:  # LinAlgError too: these elements are no good
                first = first or error
        raise first or AssertionError


def _ones(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.broadcast_to(np.ones((), dtype), shape)


def _identity(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Matrices that have an inverse, and are positive."""
    if len(shape) < 2:
        return _ones(shape, dtype)
    return np.broadcast_to(np.eye(*shape[-2:], dtype=dtype), shape)


def _whole_identity(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """All axes together as a matrix that has an inverse."""
    n = isqrt(prod(shape))
    return np.resize(np.eye(n, dtype=dtype), shape)


def _mixed(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.random(shape) + 9).astype(dtype)


def _filled(x: Any, fill: Any, whole: int) -> Any:
    """Arguments with arrays in the places of symbols."""
    if isinstance(x, Symbolic):
        shape, dtype = x.shape, x.dtype  # type: ignore[attr-defined]
        if dtype.kind in "iub":
            filled = np.broadcast_to(np.asarray(whole, dtype), shape)
        else:
            filled = fill(shape, dtype)
        return filled[()] if _is_number(x) else filled
    if isinstance(x, (list, tuple)):
        parts = [_filled(part, fill, whole) for part in x]
        if hasattr(x, "_fields"):
            return type(x)(*parts)
        return parts if isinstance(x, list) else tuple(parts)
    if isinstance(x, dict):
        return {key: _filled(part, fill, whole) for key, part in x.items()}
    return x  # a slice too: NumPy asks a symbol in it for its number, which raises


def _symbols(x: Any) -> Any:
    if isinstance(x, Symbolic):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from _symbols(part)
    elif isinstance(x, dict):
        yield from _symbols([*x.values()])
    elif isinstance(x, slice):
        yield from _symbols((x.start, x.stop, x.step))
