"""`spec`: a shape and a dtype in place of an array, with names of axes and bounds."""

from __future__ import annotations

from numbers import Integral
from operator import index
from typing import Any

import numpy as np

from ..core.arrays import is_array
from ..core.cotangent import Spec
from ..core.errors import GradsmithError


class InputSpec(Spec):
    """The spec of an input that is yet to be made up.

    `axes` holds a length, the name of one that is chosen later, or None, for each axis;
    `shape` has None for both of the latter. Values lie between `low` and `high`.
    """

    __slots__ = ("axes", "high", "low")

    def __init__(
        self,
        axes: tuple[int | str | None, ...],
        dtype: np.dtype[Any],
        low: float | None,
        high: float | None,
    ) -> None:
        shape: Any = tuple(None if isinstance(n, str) else n for n in axes)
        super().__init__(shape, dtype)
        self.axes = axes
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        axes = " ".join("_" if n is None else str(n) for n in self.axes)
        ends = {"low": self.low, "high": self.high}
        bounds = "".join(f", {k}={v}" for k, v in ends.items() if v is not None)
        return f"spec({axes!r}, {self.dtype}{bounds})"


def spec(
    shape: Any,
    dtype: Any = "float64",
    *,
    low: float | None = None,
    high: float | None = None,
) -> Spec:
    """A shape and a dtype in place of an array.

    To say what a function returns without running it:

    >>> import gradsmith as gs
    >>> gs.spec((2, 3), "float32")
    Spec(shape=(2, 3), dtype=float32)

    or which inputs `check` should make up. There a shape can be a string: digits are
    lengths; names are lengths that are chosen, the same for the same name in all specs
    of a call; `_` is any length, like None in a tuple. Values are normally distributed,
    or between the bounds if these are given.

    >>> gs.spec("batch 3", "float32", low=0)
    spec('batch 3', float32, low=0)

    If the shape is None, all axes are open, and so is their number.

    Raises
    ------
    GradsmithError
        If a word is neither a length nor a name, or bounds are given in the wrong
        order, without a shape, or for a dtype that is not real.
    """
    axes: Any = _named(shape) if isinstance(shape, str) else _lengths(shape)
    dtype = as_dtype(dtype)
    if low is None and high is None and not isinstance(shape, str):
        return Spec(axes, dtype)
    _require_bounds(low, high, dtype)
    if axes is None:
        raise GradsmithError("low= and high= need a shape: how many axes, at least")
    return InputSpec(axes, dtype, low, high)


def _lengths(shape: Any) -> Any:
    if shape is None:
        return None
    axes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    return tuple(n if n is None or _is_symbol(n) else index(n) for n in axes)


def _is_symbol(n: Any) -> bool:
    """Whether a length is a symbol of a compiler, which `index` would fix."""
    return hasattr(n, "__index__") and not (isinstance(n, Integral) or is_array(n))


def _named(words: str) -> tuple[int | str | None, ...]:
    axes = []
    for word in words.split():
        if not (word.isdecimal() or word.isidentifier()):
            raise GradsmithError(
                f"gs.spec({words!r}): {word!r} is neither a length nor a name\n  what "
                'to do: separate axes by spaces, such as "batch 3" or "n n"'
            )
        name = None if word == "_" else word
        axes.append(int(word) if word.isdecimal() else name)
    return tuple(axes)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of NumPy, or of a framework, as NumPy's."""
    try:
        return np.dtype(dtype)
    except TypeError:
        # dtypes of frameworks go by the same name
        name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
        return np.dtype(name)


def _require_bounds(low: Any, high: Any, dtype: np.dtype[Any]) -> None:
    if (low, high) == (None, None):
        return
    if dtype.kind not in "fiu" and dtype.name != "bfloat16":
        raise GradsmithError(f"low= and high= are for real numbers, not for {dtype}")
    if low is not None and high is not None and not low <= high:
        raise GradsmithError(f"low={low} is not below high={high}")
