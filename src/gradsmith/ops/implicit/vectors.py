"""Trees of arrays as one vector, and parameters as a list of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from ...core import trees
from ...core.arrays import framework_of
from ...core.errors import GradsmithError
from .parts import compiled_of


class Shape:
    """How a tree of arrays is laid out in one vector."""

    def __init__(self, tree: Any, what: str, dtype: Any = None) -> None:
        self.tree = trees.map(lambda x: None, tree)
        found = trees.leaves(tree)
        for x in found:
            if not _is_array(x) or not is_float(x):
                raise GradsmithError(
                    f"{what} must be an array of floating-point numbers, or a tree of "
                    f"them; got {getattr(x, 'dtype', type(x).__name__)}"
                )
        if not found:
            raise GradsmithError(f"{what} holds no array")
        self.what = what
        self.shapes = [tuple(x.shape) for x in found]
        self.dtypes = [x.dtype for x in found]
        self.dtype = dtype or working(*found)
        self.sizes = [prod(shape) for shape in self.shapes]

    def vector(self, tree: Any, name: str | None = None) -> Any:
        """The leaves of a tree, one after the other."""
        found = trees.leaves(tree)
        shapes = [tuple(getattr(x, "shape", ())) for x in found]
        if shapes != self.shapes:
            raise GradsmithError(
                f"{name or self.what} does not fit\n  expected: the shapes "
                f"{_shown(self.shapes)} of {self.what}\n  got: {_shown(shapes)}"
            )
        flat = [_cast(gnp.reshape(x, (-1,)), self.dtype) for x in found]
        return flat[0] if len(flat) == 1 else gnp.concatenate(flat)

    def arrays(self, vector: Any) -> Any:
        """The tree of a vector, in the vector's numbers."""
        found, start = [], 0
        for shape, size in zip(self.shapes, self.sizes, strict=True):
            found.append(gnp.reshape(vector[start : start + size], shape))
            start += size
        return trees.unflatten(self.tree, found)

    def result(self, vector: Any) -> Any:
        """The tree of a vector, in the numbers of the tree that it was made for."""
        found = trees.leaves(self.arrays(vector))
        cast = [_cast(x, dtype) for x, dtype in zip(found, self.dtypes, strict=True)]
        return trees.unflatten(self.tree, cast)


def working(*arrays: Any) -> Any:
    """The numbers to solve in: no equation is solved in half precision."""
    dtype = gnp.result_type(*arrays)
    return gnp.result_type(*arrays, "float32") if _is_half(dtype) else dtype


def is_float(x: Any) -> bool:
    return "float" in str(x.dtype)


def _is_half(dtype: Any) -> bool:
    return "float16" in str(dtype)  # bfloat16 too


def _cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else gnp.astype(x, dtype)


_ARRAY = object()  # the place of an array


def _shown(shapes: Sequence[Any]) -> str:
    return ", ".join(map(str, shapes)) or "none"


def _is_array(x: Any) -> bool:
    return framework_of(x) is not None or isinstance(x, np.generic)


def split(params: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The arrays of a tree, and what puts others in their places."""
    arrays = [x for x in trees.leaves(params) if _is_array(x)]
    # What stays must not hold the arrays: they may be tracers.
    rest = trees.map(lambda x: _ARRAY if _is_array(x) else x, params)

    def rebuild(arrays: Sequence[Any]) -> Any:
        others = iter(arrays)
        return trees.map(lambda x: next(others) if x is _ARRAY else x, rest)

    return arrays, rebuild


def on_vectors(
    fn: Callable[..., Any], x: Any, params: Any, what: str, returned: Callable[..., Any]
) -> tuple[Shape, Any, Callable[..., Any], list[Any]]:
    """A function of trees as one of a vector and a list of arrays.

    What it captures is among these where nothing else would find it. `returned(shape,
    y)` makes what it returns fit.
    """
    shape = Shape(x, what)
    arrays, rebuild = split(params)
    arrays = [_cast(p, shape.dtype) if _is_half(p.dtype) else p for p in arrays]

    def pure(v: Any, arrays: Any) -> Any:
        return returned(shape, fn(shape.arrays(v), *rebuild(arrays)))

    vector = shape.vector(x)
    pure, arrays = compiled_of(x, arrays).converted(pure, vector, arrays)
    return shape, vector, pure, arrays
