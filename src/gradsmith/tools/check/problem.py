"""An operation as a function from a list of NumPy arrays to another.

Whatever the framework, the dtype and the structure of the arguments: the checker moves
`xs`, the arrays of floating numbers among the arguments, and looks at `ys`, those among
the outputs. It computes in NumPy, in double precision; each call converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...core import trees
from ...frameworks._protocol import Framework
from ...operations.info import OperationInfo, is_floating
from .body import Body
from .bounds import Bounds, within
from .linear import Arrays, Gradients, Linear, wide


@dataclass(frozen=True)
class Problem:
    """An operation, with all that doesn't change while it is checked."""

    info: OperationInfo
    framework: Framework
    call: Callable[..., Any]  # the operation, or an altered copy of it
    inputs: Any  # (args, kwargs), with all arrays as NumPy's
    names: tuple[str, ...]  # of the arrays of floating numbers
    dtypes: tuple[str, ...]  # what they are given as
    held: frozenset[str] = frozenset()  # the names of those that are not moved
    symmetric: frozenset[str] = frozenset()  # of which one triangle is read
    bounds: tuple[Bounds, ...] = ()  # of all of these arrays, if any has some
    fixed: bool = False  # it takes these dtypes only

    @property
    def arrays(self) -> Any:
        """The framework's part of that name."""
        return self.framework.arrays

    @property
    def calculus(self) -> Any:
        return self.framework.calculus

    # --- running it

    def value(self, xs: Sequence[np.ndarray]) -> Arrays:
        """The outputs."""
        with self._precision():
            ys = self.calculus.value(self.native, self.given(xs))
            return [wide(self.arrays.numpy(y)) for y in ys]

    def is_inside(self) -> bool:
        """Whether no index is out of bounds, as far as the framework can tell."""
        with self._precision():
            return self.calculus.in_bounds(self.native, self.given(self.xs))

    def computed(self) -> tuple[Arrays, str]:
        """The outputs, and the lowest precision among them."""
        with self._precision():
            ys = self.calculus.value(self.native, self.given(self.xs))
            names = {_REAL.get(name, name) for name in map(self.arrays.dtype_name, ys)}
            values = [wide(self.arrays.numpy(y)) for y in ys]
        lower = [name for name in ("bfloat16", "float16", "float32") if name in names]
        return values, lower[0] if lower else "float64"

    def linear(self, xs: Sequence[np.ndarray]) -> Linear:
        """The outputs and the gradients by the rule."""
        with self._precision():
            ys, pull = self.calculus.vjp(self.native, self.given(xs))
            dtypes = [self.arrays.dtype_name(y) for y in ys]
            values = [wide(self.arrays.numpy(y)) for y in ys]

        def pull_numpy(dys: Sequence[np.ndarray]) -> Gradients:
            with self._precision():
                given = map(self.arrays.array, dys, dtypes)
                return [self._back(dx) for dx in pull(list(given))]

        return Linear(values, pull_numpy)

    def push(self, xs: Sequence[np.ndarray], dxs: Sequence[np.ndarray]) -> Arrays:
        """The tangents of the outputs, by forward mode."""
        with self._precision():
            _, dys = self.calculus.jvp(self.native, self.given(xs), self.given(dxs))
            return [wide(self.arrays.numpy(dy)) for dy in dys]

    def curve(
        self,
        xs: Sequence[np.ndarray],
        dys: Sequence[np.ndarray],
        vs: Sequence[np.ndarray],
    ) -> Gradients:
        """The gradient of <pull(dys), vs>, by differentiating the rule."""
        with self._precision():
            given = self.given(xs)
            like = self.calculus.value(self.native, given)
            dtypes = [self.arrays.dtype_name(y) for y in like]
            upstream = list(map(self.arrays.array, dys, dtypes))
            second = self.calculus.second
            by_xs, _ = second(self.native, given, upstream, self.given(vs))
            return [self._back(dx) for dx in by_xs]

    @cached_property
    def native(self) -> Body:
        """The operation on the framework's own arrays."""
        return Body(self.call, self.arrays, self.inputs, self._typed, self.held)

    def given(self, xs: Sequence[np.ndarray]) -> list[Any]:
        """Arrays of the framework, in the dtypes of the arguments."""
        dtypes = [dtype for name, dtype in self._typed if name not in self.held]
        return list(map(self.arrays.array, xs, dtypes))

    def _back(self, dx: Any) -> np.ndarray | None:
        return None if dx is None else wide(self.arrays.numpy(dx))

    def _precision(self) -> Any:
        widest = max(self.dtypes, key=lambda name: np.isin(name, _WIDE).item())
        return self.arrays.precision(widest)

    # --- another problem like this one

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the arrays that are moved."""
        return tuple(name for name in self.names if name not in self.held)

    @property
    def xs(self) -> Arrays:
        """The arrays that are moved, as given."""
        arrays = [x for x in trees.leaves(self.inputs) if _moves(x)]
        pairs = zip(self.names, arrays, strict=True)
        return [x for name, x in pairs if name not in self.held]

    @property
    def _typed(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.dtypes, strict=True))

    def holding(self, names: Iterable[str]) -> Problem:
        """With some of the arrays not moved."""
        return replace(self, held=self.held | set(names))

    def at_moved(self, xs: Iterable[np.ndarray]) -> Problem:
        """With other values, perhaps of other shapes, for the arrays that are moved."""
        new, names = map(np.asarray, xs), iter(self.names)

        def leaf(x: Any) -> Any:
            moves = _moves(x) and next(names) not in self.held
            return np.asarray(next(new)) if moves else x

        return self.with_inputs(trees.map(leaf, self.inputs))

    def with_inputs(self, inputs: Any) -> Problem:
        """With other inputs, within the bounds of the given ones."""
        return replace(self, inputs=within(inputs, self.bounds))

    def in_dtype(self, dtype: str) -> Problem:
        """With all of the arrays in one precision; complex ones stay complex."""
        if self.fixed:
            return self
        complexes = {"float64": "complex128", "float32": "complex64"}
        return replace(
            self,
            dtypes=tuple(
                complexes.get(dtype, old) if old.startswith("complex") else dtype
                for old in self.dtypes
            ),
        )

    @contextmanager
    def altered(self, around: Any) -> Any:
        """The problem of a copy whose rule is the one that `around` gives."""
        assert self.info.altered is not None
        with self.info.altered(around) as call:
            yield replace(self, call=call)


_WIDE = ("float64", "complex128")
_REAL = {"complex64": "float32", "complex128": "float64"}


def _moves(x: Any) -> bool:
    return isinstance(x, np.ndarray) and is_floating(x)
