"""Matrix products that a loop nest computes, beside what makes or takes the matrix.

BLAS reads its factors from memory and writes its result there. Where a nest makes a
factor, or alone needs the result, there is no large array at all:

- products whose elements are sums of few numbers: `points @ centers.T`,
- products of powers (`np.vander`) with a vector, on either side,
- and products of the transpose of a narrow matrix with what the nest makes.

The gradient of a least-squares problem with 4096 x 128 powers takes 0.23 of the time,
and a step of k-means with 10,000 points of 8 numbers and 100 clusters 0.5.

Functions of this module stand for such products while steps are grouped. Those that are
in no group become NumPy's again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.rule import index
from .code import PERMUTED, permutation
from .fusion import (
    COLUMN,
    FEWEST,
    FULL,
    ROW,
    SCALAR,
    Nest,
    Node,
    NotFusedError,
    Repeating,
    Repeats,
    refuse,
)
from .graph import Program, Step, Value
from .kernels.scratch import rows_near
from .passes import without_dead

LARGE = 10_000  # elements of the matrix
# Columns of a narrow matrix: 10,000 x 8 times 8 x 100 takes 0.1 ms in a kernel that
# needs the product, and 0.37 by BLAS
NARROW = 16
LARGEST = 1 << 16  # bytes that are read or added to in each row: they must be near


def powers(x: Any, n: int) -> Any:
    """Rows of powers, from 0 on."""
    return np.vander(x, n, increasing=True)


def short(a: Any, b: Any) -> Any:
    """A product whose elements are sums of few numbers."""
    return np.matmul(a, b)


def along(a: Any, x: Any) -> Any:
    """A large matrix times a vector."""
    return np.matmul(a, x)


def across(x: Any, a: Any) -> Any:
    """A vector times a large matrix."""
    return np.matmul(x, a)


def gathered(p: Any, a: Any) -> Any:
    """The transpose of a narrow matrix times a large one of as many rows."""
    return np.matmul(np.transpose(p), a)


# Where the large matrix is among the arguments; None if it is the result
_MATRIX = {powers: None, short: None, along: 0, across: 1, gathered: 1}


def is_inner(step: Step) -> bool:
    return step.fn in _MATRIX


def added_in(step: Step) -> Value | None:
    """The large matrix of which a step adds up the rows, if it does."""
    return _matrix_of(step) if step.fn in (across, gathered) else None


def _matrix_of(step: Step) -> Value:
    at = _MATRIX[step.fn]
    return step.outputs[0] if at is None else step.args[at]


# To these functions, and back


def with_inner(program: Program) -> Program:
    """The program with products that a nest may compute by functions of this module."""
    if all(y.size < LARGE for step in program.steps for y in step.outputs):
        return program
    made = {y: step for step in program.steps for y in step.outputs}
    users: dict[Value, list[Step]] = {y: [] for y in made}
    for step in program.steps:
        for x in step.inputs:
            users.setdefault(x, []).append(step)
    for y in program.results:
        users.pop(y, None)  # which is needed as a whole
    steps: list[Step] = []
    named = {
        y: _increasing(step) for y, step in made.items() if _is_powers(step, users)
    }
    for step in program.steps:
        y = step.outputs[0]
        if y in named:
            args = step.args[0], y.shape[1]
            steps.append(replace(step, fn=powers, args=args, kwargs={}))
        elif not named.keys().isdisjoint(step.inputs):
            steps += _with_vector(step, named)
        elif _is_short(step, users):
            steps.append(replace(step, fn=short))
        else:
            steps += _gathering(step, made)
    return without_dead(replace(program, steps=tuple(steps)))


def _is_powers(step: Step, users: dict[Value, list[Step]]) -> bool:
    """Whether it makes powers of which only products with vectors are needed."""
    y, x = step.outputs[0], step.args[0] if step.args else None
    if step.fn is not np.vander or not isinstance(x, Value) or x.dtype != y.dtype:
        return False
    uses = users.get(y, [])
    return _is_matrix(y) and bool(uses) and all(_takes_vector(s, y) for s in uses)


def _increasing(step: Step) -> bool:
    options = dict(zip(("N", "increasing"), step.args[1:], strict=False))
    return bool((options | step.kwargs).get("increasing"))


def _takes_vector(step: Step, a: Value) -> bool:
    if not _is_product(step, np.float64):
        return False
    x, y = step.args
    return (x is a and y.shape == a.shape[1:]) or (y is a and x.shape == a.shape[:1])


def _with_vector(step: Step, named: dict[Value, bool]) -> list[Step]:
    """A product of powers, whose columns come in increasing order."""
    (y,), (left, right) = step.outputs, step.args
    is_along = left in named
    backwards = slice(None, None, -1)
    x, fn = (right, along) if is_along else (y, across)
    if named[left if is_along else right]:
        return [replace(step, fn=fn)]
    turned = Value(x.shape, x.dtype)
    if is_along:
        first = Step(index, (x, backwards), {}, (turned,), step.place)
        return [first, replace(step, fn=fn, args=(left, turned))]
    last = Step(index, (turned, backwards), {}, (y,), step.place)
    return [replace(step, fn=fn, outputs=(turned,)), last]


def _is_short(step: Step, users: dict[Value, list[Step]]) -> bool:
    """Whether it is a product of narrow matrices, of which other products need none."""
    y, uses = step.outputs[0], users.get(step.outputs[0], [])
    if not _is_product(step, y.dtype) or y.dtype not in (np.float32, np.float64):
        return False
    a, b = step.args
    flat = a.ndim == b.ndim == 2 and _is_matrix(y) and 0 < a.shape[1] <= NARROW
    return flat and bool(uses) and not any(s.fn is np.matmul for s in uses)


def _gathering(step: Step, made: dict[Value, Step]) -> list[Step]:
    """A product of a transpose with a narrow matrix, or its own steps."""
    y = step.outputs[0]
    if not _is_product(step, np.float64) or y.ndim != 2 or y.shape[1] > NARROW:
        return [step]
    a, p = _transposed(step.args[0], made), _untransposed(step.args[1], made)
    if a is None or p.ndim != 2 or not _is_matrix(a):
        return [step]
    turned = Value(y.shape[::-1], y.dtype)
    return [
        replace(step, fn=gathered, args=(p, a), outputs=(turned,)),
        replace(step, fn=np.transpose, args=(turned,)),
    ]


def _is_product(step: Step, dtype: Any) -> bool:
    if step.fn is not np.matmul or step.kwargs or len(step.args) != 2:
        return False
    values = (*step.args, *step.outputs)
    return all(isinstance(x, Value) and x.dtype == dtype for x in values)


def _is_matrix(x: Value) -> bool:
    """Whether it is a large one, of many rows that fill registers."""
    return x.ndim == 2 and x.shape[0] > x.shape[1] >= 2 * FEWEST and x.size >= LARGE


def _transposed(x: Value, made: dict[Value, Step]) -> Value | None:
    """What a value is the transpose of."""
    step = made.get(x)
    if step is None or step.fn not in PERMUTED or x.ndim != 2:
        return None
    return step.args[0] if permutation(step, step.args[0]) == (1, 0) else None


def _untransposed(x: Value, made: dict[Value, Step]) -> Value:
    """The same without two transposes."""
    once = _transposed(x, made)
    twice = None if once is None else _transposed(once, made)
    return x if twice is None else twice


def without_inner(program: Program) -> Program:
    """The program with NumPy's functions where no kernel computes a product."""
    return replace(
        program, steps=tuple(s for step in program.steps for s in _own(step))
    )


def _own(step: Step) -> list[Step]:
    if step.fn is powers:
        return [replace(step, fn=np.vander, kwargs={"increasing": True})]
    if step.fn is gathered:  # BLAS takes 0.7 of the time for the transpose of it
        (y,), (p, a) = step.outputs, step.args
        left, product = (Value(x.shape[::-1], x.dtype) for x in (a, y))
        return [
            replace(step, fn=np.transpose, args=(a,), outputs=(left,)),
            replace(step, fn=np.matmul, args=(left, p), outputs=(product,)),
            replace(step, fn=np.transpose, args=(product,)),
        ]
    return [replace(step, fn=np.matmul)] if is_inner(step) else [step]


# As part of a nest


def inner_nest(program: Program) -> Nest:
    """The program as a nest over the rows of the matrix of its products."""
    shapes = {_matrix_of(step).shape for step in program.steps if is_inner(step)}
    if len(shapes) > 1:
        raise refuse("products of matrices of different shapes")
    return _Inner(program, shapes.pop(), 1, {}, {}).nest()


class _Inner(Repeating):
    """A nest with products among its steps."""

    def nest(self) -> Nest:
        steps = self.program.steps
        of = {short: (0, 1), gathered: (0,)}
        self.factors = {s.args[i] for s in steps for i in of.get(s.fn, ())}
        self.alone: set[Value] = set()  # factors that are nothing else here
        self.number: dict[Value, int] = {}
        found = super().nest()
        if 8 * rows_near(found) * self.columns > LARGEST:
            raise refuse("products with so many numbers for each row")
        return found

    def _array(self, value: Value, kind: str | None = None) -> Node:
        if value not in self.factors:
            return super()._array(value, kind)
        self.number[value] = len(self.inputs)
        try:
            return super()._array(value, kind)
        except NotFusedError:
            self.alone.add(value)
            return self._input(value, ROW)

    def _step(self, step: Step) -> None:
        if not is_inner(step):
            if not self.alone.isdisjoint(step.inputs):
                raise self._refused(step)
            super()._step(step)
            return
        if not self.totals.isdisjoint(step.inputs):
            raise self._refused(step)
        (y,) = step.outputs
        self.known[y] = _WAYS[step.fn](self, step, y)

    def _powers(self, step: Step, y: Value) -> Node:
        return self._node("powers", [self._vector(step, 0, ROW)], y.dtype, FULL)

    def _short(self, step: Step, y: Value) -> Node:
        a, b = step.args
        lines = self._lines(step, b)
        return self._node("product", [*self._parts(step, a), *lines], y.dtype, FULL)

    def _along(self, step: Step, y: Value) -> Node:
        factors = [self._matrix(step), self._vector(step, 1, COLUMN)]
        product = self._node("multiply", factors, y.dtype, FULL)
        return self._over_row("sum", product, y.dtype)

    def _across(self, step: Step, y: Value) -> Node:
        return self._summed(step, y, [self._vector(step, 0, ROW)])

    def _gathered(self, step: Step, y: Value) -> Node:
        return self._summed(step, y, self._parts(step, step.args[0]))

    def _total(self, step: Step, y: Value, axes: tuple[int, ...]) -> Node:
        found = super()._total(step, y, axes)
        if found.data.own:
            return found
        one = self._number(1, y.dtype)
        return replace(found, op="totals", args=(*found.args, one))

    def _gather(self, step: Step, y: Value) -> Node:
        raise self._refused(step)  # of powers there is none alone

    def _summed(self, step: Step, y: Value, factors: Sequence[Node]) -> Node:
        """The rows times a number of each, added up: for each factor."""
        args = (self._matrix(step), *factors)
        self.totals.add(y)
        level = max(a.level for a in args)
        everywhere = Repeats((), ((1, self.rows),))
        return Node("totals", args, y.dtype, FULL, level, everywhere)

    # What products are of

    def _matrix(self, step: Step) -> Node:
        x = _matrix_of(step)
        node = self.known[x]
        if x.shape != self.shape or x in self.repeating:
            raise self._refused(step)
        full = node.kind == FULL
        return node if full else self._node("spread", [node], node.dtype, FULL)

    def _vector(self, step: Step, i: int, kind: str) -> Node:
        node = self.known[step.args[i]]
        if node.kind not in (kind, SCALAR):
            raise self._refused(step)
        return node

    def _parts(self, step: Step, x: Value) -> list[Node]:
        """The numbers of a row of a narrow matrix, which lies in memory."""
        i, n = self._in_memory(step, x), x.shape[1]
        return [Node("part", (), x.dtype, ROW, data=(i, k, n)) for k in range(n)]

    def _lines(self, step: Step, x: Value) -> list[Node]:
        """The rows of a matrix of few, which lies in memory."""
        i = self._in_memory(step, x)
        n = x.shape[0]
        return [Node("line", (), x.dtype, COLUMN, data=(i, k, n)) for k in range(n)]

    def _in_memory(self, step: Step, x: Value) -> int:
        i = self.number.get(x)
        if i is None or i == len(self.inputs):
            raise self._refused(step)
        return i


_WAYS = {
    powers: _Inner._powers,
    short: _Inner._short,
    along: _Inner._along,
    across: _Inner._across,
    gathered: _Inner._gathered,
}
