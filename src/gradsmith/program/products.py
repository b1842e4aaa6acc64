"""Matrix products made smaller: sums and numbers are moved to where there is less.

Gradients are full of products that are summed, or that take an array only to change its
sign. A sum over the rows of A @ B is the sum over the rows of A, times B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import frexp
from typing import Any

import numpy as np

from .code import PERMUTED
from .fusion import axes_of
from .graph import Program, Step, Value

LONG = 1000  # elements of the sums in a product
MUCH = 4  # times as many numbers: where moving another product pays


def with_smaller_products(program: Program) -> Program:
    """Sum before a product instead of after it, and change signs after it."""
    if not any(step.fn is np.matmul for step in program.steps):
        return program
    return _Products(program).rewritten()


class _Products:
    """Reads a program, and writes what is less to compute instead."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made = {y: step for step in program.steps for y in step.outputs}
        self.uses = Counter(x for step in program.steps for x in step.inputs)
        self.uses.update(program.results)
        self.steps: list[Step] = []
        self.sums: dict[Any, Value] = {}

    def rewritten(self) -> Program:
        for step in self.program.steps:
            if not self._summed(step):
                self._product(step) if _is_product(step) else self.steps.append(step)
        return replace(self.program, steps=tuple(self.steps))

    def _write(
        self, fn: Any, *args: Any, shape: Any, dtype: Any, **options: Any
    ) -> Any:
        y = Value(tuple(shape), dtype)
        self.steps.append(Step(fn, args, options, (y,)))
        return y

    # Sums

    def _summed(self, step: Step) -> bool:
        """A sum of products, without the products.

        The sum of A's rows may be infinite where the products are not: that is left to
        float32 and float64, which have room for it.
        """
        x, y = step.args[0] if step.args else None, step.outputs[0]
        plain = step.fn is np.sum and step.kwargs.keys() <= {"axis", "keepdims"}
        if not plain or not isinstance(x, Value) or len(step.args) > 2:
            return False
        if x.dtype not in (np.float32, np.float64) or x.dtype != y.dtype or not x.size:
            return False
        axes = axes_of(step, x)
        if not self._drops_product(x, axes):
            return False
        total = self._total(x, axes)
        self.steps.append(
            replace(step, fn=np.reshape, args=(total, y.shape), kwargs={})
        )
        return True

    def _drops_product(self, x: Value, axes: Sequence[int]) -> bool:
        """Whether a product is needed no more if its sum is known otherwise."""
        step = self.made.get(x)
        if step is None or self.uses[x] > 1:
            return False
        if _is_product(step):
            return self._side(step, axes) is not None
        return any(self._drops_product(a, axes) for a in self._linear_in(step, axes))

    def _side(self, step: Step, axes: Sequence[int]) -> int | None:
        """The factor that a sum over a product's rows, or its columns, is one of."""
        y = step.outputs[0]
        for i, axis in ((0, y.ndim - 2), (1, y.ndim - 1)):
            x: Any = step.args[i]
            if tuple(axes) == (axis,) and x.shape[:-2] == y.shape[:-2]:
                return i
        return None

    def _linear_in(self, step: Step, axes: Sequence[int]) -> list[Value]:
        """The arguments of whose sums the sum of a step can be computed."""
        y = step.outputs[0]
        if step.kwargs or any(x.dtype != y.dtype for x in _floats(step)):
            return []
        whole = [x for x in step.args if isinstance(x, Value) and x.shape == y.shape]
        others = [x for x in step.args if not any(x is each for each in whole)]
        if step.fn in (np.add, np.subtract):
            return whole if len(whole) == 2 and not others else []
        if step.fn is np.multiply and len(whole) == 1 and len(others) == 1:
            return whole if _repeats(others[0], y, axes) else []
        if step.fn is np.where and len(whole) == 1 and len(step.args) == 3:
            mask, zero, x = step.args
            masked = isinstance(mask, Value) and _repeats(mask, y, axes)
            return whole if masked and x is whole[0] and _is_zero(zero) else []
        return []

    def _total(self, x: Value, axes: tuple[int, ...]) -> Value:
        """The sum of a value, with axes of length 1 in the place of those summed."""
        key = (x, axes)
        if key not in self.sums:
            self.sums[key] = self._new_total(x, axes)
        return self.sums[key]

    def _new_total(self, x: Value, axes: tuple[int, ...]) -> Value:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        spec = {"shape": shape, "dtype": x.dtype}
        step = self.made.get(x)
        if self._drops_product(x, axes) and step is not None:
            if _is_product(step):
                side = self._side(step, axes)
                factors: list[Any] = list(step.args)
                along = factors[side or 0].ndim - (1 if side else 2)
                factors[side or 0] = self._total(factors[side or 0], (along,))
                return self._write(np.matmul, *factors, **spec)
            terms = self._linear_in(step, axes)
            totals = {t: self._total(t, axes) for t in terms}
            args = [totals.get(a, a) if isinstance(a, Value) else a for a in step.args]
            return self._write(step.fn, *args, **spec)
        linear = self._linear_in(step, axes) if step is not None else []
        if step is not None and len(linear) == 1 and self.uses[x] == 1:
            total = self._total(linear[0], axes)
            args = [total if a is linear[0] else a for a in step.args]
            return self._write(step.fn, *args, **spec)
        return self._write(np.sum, x, axis=axes, keepdims=True, **spec)

    # Products

    def _product(self, step: Step) -> None:
        """A product; what one factor is multiplied by is as well done later.

        By a power of 2 the digits are the same. A kernel that wrote 10,000 x 100
        numbers with both signs takes 0.7 of its time without the second.
        """
        y = step.outputs[0]
        for i in (0, 1):
            args, x = [*step.args], step.args[i]
            found, other = self._scaled(x), args[1 - i]
            if found is None:
                continue
            whole, number = found
            alone = self.uses[x] == self.uses[whole.outputs[0]] == 1
            if (1 if alone else MUCH) * y.size < x.size:
                args[i] = self._unscaled(x)
                y = Value(y.shape, y.dtype)
                self._product(replace(step, args=tuple(args), outputs=(y,)))
                self.steps.append(replace(step, fn=np.multiply, args=(y, number)))
                return
            if MUCH * other.size < min(x.size, y.size):
                args[i], spec = self._unscaled(x), (other.shape, other.dtype)
                args[1 - i] = self._write(
                    np.multiply, other, number, shape=spec[0], dtype=spec[1]
                )
                self._product(replace(step, args=tuple(args)))
                return
        self._oriented(step)

    def _scaled(self, x: Value) -> tuple[Step, Any] | None:
        """The step that multiplies a factor, or what it is the transpose of.

        If there are others that need its result, they must do without it too.
        """
        step = self.made.get(x)
        if step is not None and step.fn in PERMUTED:
            step = self.made.get(step.args[0])
        found = _exact_factor(step)
        if step is None or found is None or not self._is_for_products(step.outputs[0]):
            return None
        return step, found[1]

    def _unscaled(self, x: Value) -> Value:
        """The same factor without the number."""
        step = self.made[x]
        if step.fn not in PERMUTED:
            return _exact_factor(step)[0]  # type: ignore[index]
        before = _exact_factor(self.made[step.args[0]])[0]  # type: ignore[index]
        spec = {"shape": x.shape, "dtype": x.dtype}
        return self._write(step.fn, before, *step.args[1:], **spec, **step.kwargs)

    def _is_for_products(self, x: Value) -> bool:
        """Whether a value is a factor of products alone, or a transpose of it is."""
        return x not in self.program.results and all(
            _is_product(step)
            or (step.fn in PERMUTED and self._is_for_products(step.outputs[0]))
            for step in self.program.steps
            if x in step.inputs
        )

    def _oriented(self, step: Step) -> None:
        """A product of few rows and many columns with rows and columns swapped.

        BLAS takes 0.7 of the time for 8 x 10,000 times 10,000 x 100.
        """
        y, (a, b) = step.outputs[0], step.args
        flat = a.ndim == b.ndim == 2
        if not flat or a.shape[1] < LONG or not 4 < 4 * y.shape[0] <= y.shape[1]:
            self.steps.append(step)
            return
        left, right = (
            self._write(np.transpose, x, shape=x.shape[::-1], dtype=x.dtype)
            for x in (b, a)
        )
        shape = y.shape[::-1]
        turned = self._write(np.matmul, left, right, shape=shape, dtype=y.dtype)
        self.steps.append(replace(step, fn=np.transpose, args=(turned,)))


def _is_product(step: Step) -> bool:
    """Whether it is a product of matrices, of floats of one dtype."""
    if step.fn is not np.matmul or step.kwargs or len(step.args) != 2:
        return False
    y = step.outputs[0]
    values = [x for x in step.args if isinstance(x, Value) and x.ndim > 1]
    return len(values) == 2 and all(x.dtype == y.dtype for x in values)


def _exact_factor(step: Step | None) -> tuple[Value, Any] | None:
    """What a step multiplies by a power of 2, not too far from 1, and that number."""
    if step is None or step.fn is not np.multiply or step.kwargs:
        return None
    y = step.outputs[0]
    for x, number in (step.args, step.args[::-1]):
        if not isinstance(x, Value) or not isinstance(number, (int, float)):
            continue
        exact = abs(frexp(number)[0]) == 0.5 and 2.0**-8 <= abs(number) <= 2.0**8
        roomy = y.dtype in (np.float32, np.float64)  # float16 ends at 65,504
        if exact and roomy and (x.shape, x.dtype) == (y.shape, y.dtype):
            return x, number
    return None


def _floats(step: Step) -> list[Value]:
    """The values among the arguments, but for masks."""
    return [x for x in step.inputs if x.dtype.kind != "b"]


def _repeats(x: Any, y: Value, axes: Sequence[int]) -> bool:
    """Whether an argument is the same along some axes of the result."""
    if not isinstance(x, Value):
        return isinstance(x, (int, float, np.floating)) and np.isfinite(x)
    shape = (1,) * (y.ndim - x.ndim) + x.shape
    return all(shape[axis] == 1 for axis in axes)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0
