"""Long arrays of short vectors or matrices: a loop over the rows, each in registers.

Of arrays of shape (n, 3) or (n, 2, 11) a nest over rows and columns computes a few
numbers at a time, and can't take columns apart or put them together. Here every number
of a row is a value of its own, of which the loop computes as many rows at once as fit
into a register. So all that NumPy does with the axes behind the first one (slices,
joins, sums, cross products) is done while the program is read, by the same functions of
NumPy on arrays of nodes, and costs nothing when it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..core.rule import index, is_basic
from ..rules.indexing import scatter
from .code import permutation, slices_of
from .fusion import (
    FULL,
    RESHAPING,
    SCALAR,
    Builder,
    Nest,
    Node,
    NotFusedError,
    axes_of,
    passes_of,
    reduction_name,
    refuse,
)
from .graph import Program, Step, Value, is_uniform
from .kernels.lanes import KINDS

SHORTEST = 256  # rows
WIDEST = 32  # numbers in a row
MOST = 1500  # numbers of a row that one loop computes: compiled in about a second

_FOLDED = {
    "sum": "add", "mean": "add", "count": "add", "max": "maximum", "min": "minimum",
    "any": "or", "all": "and",
}  # fmt: skip
_PERMUTED = (np.transpose, np.swapaxes, np.moveaxis, np.matrix_transpose)


def lengths_of(program: Program) -> list[int]:
    """Numbers of rows that several steps have in common, the most frequent first."""
    found = Counter(
        y.shape[0]
        for step in program.steps
        for y in step.outputs
        if len(y.shape) > 1 and y.shape[0] >= SHORTEST and prod(y.shape[1:]) <= WIDEST
    )
    return [n for n, times in found.most_common() if times > 1]


def with_slices(program: Program) -> Program:
    """The program with a slice for each of the pieces that arrays are cut into."""
    steps: list[Step] = []
    for step in program.steps:
        keys = slices_of(step) if step.fn is np.split else []
        pieces = zip(step.outputs, keys, strict=True) if keys else ()
        steps += [
            Step(index, (step.args[0], key), {}, (y,), step.place) for y, key in pieces
        ] or [step]
    return replace(program, steps=tuple(steps))


def unrolled_nest(program: Program, n: int) -> Nest:
    """The program as a loop over n rows; raises `NotFusedError` if it is none."""
    return _Unrolled(program, n).nest()


class _Unrolled(Builder):
    """Reads a program with an array of nodes for each value: those of one row.

    A value without an axis of n rows is the same for all of them.
    """

    def __init__(self, program: Program, n: int) -> None:
        super().__init__(program, (n,), 1, {}, {})
        self.parts: dict[Value, np.ndarray] = {}

    def nest(self) -> Nest:
        for value in self.program.inputs:
            self.parts[value] = self._strided(value)
        for value, array in self.program.constants.items():
            self.parts[value] = self._of_constant(value, array)
        for step in self.program.steps:
            self.parts[step.outputs[0]] = self._unrolled(step)
        outputs, places = [], []
        for k, value in enumerate(self.program.results):
            if not self._has_rows(value):
                raise _unfit(value)
            nodes = [*self.parts[value].flat]
            outputs += map(self._full, nodes)
            places += [(k, j, len(nodes)) for j in range(len(nodes))]
        return Nest(
            self.program.name, 1, self.columns, self.inputs, self.constants, outputs,
            [v.shape for v in self.program.results], passes_of(outputs), places,
        )  # fmt: skip

    def _full(self, node: Node) -> Node:
        full = node.kind == FULL
        return node if full else self._node("spread", [node], node.dtype, FULL)

    def _has_rows(self, value: Value) -> bool:
        return value.shape[:1] == (self.columns,)

    def _rest(self, value: Value) -> tuple[int, ...]:
        """The shape of a row."""
        rest = value.shape[1:] if self._has_rows(value) else value.shape
        if prod(rest) > WIDEST or value.dtype.name not in KINDS:
            raise _unfit(value)
        return rest

    # Arrays in memory

    def _strided(self, value: Value) -> np.ndarray:
        rest, kind = self._rest(value), FULL if self._has_rows(value) else SCALAR
        self.inputs.append((kind, value.dtype))
        i, count = len(self.inputs) - 1, prod(rest)
        if count == 1:
            return _array([Node("input", (), value.dtype, kind, data=i)], rest)
        stride = count if kind == FULL else 0
        return _array(
            [
                Node("strided", (), value.dtype, kind, data=(i, j, stride))
                for j in range(count)
            ],
            rest,
        )

    def _of_constant(self, value: Value, array: np.ndarray) -> np.ndarray:
        rest = self._rest(value)
        rows = array.reshape(-1, prod(rest))
        if all(is_uniform(column) for column in rows.T):
            return _array([self._number(x.item(), array.dtype) for x in rows[0]], rest)
        self.constants.append(np.ascontiguousarray(array))
        return self._strided(value)

    # Steps

    def _unrolled(self, step: Step) -> np.ndarray:
        y, fn = step.outputs[0], step.fn
        if len(step.outputs) > 1 or not self._has_rows(y):
            raise self._refused(step)
        rest = self._rest(y)
        if fn in RESHAPING or fn is index or fn is scatter or fn in _PERMUTED:
            parts = self._moved(step, y)
        elif fn in (np.concatenate, np.stack):
            parts = self._joined(step, y)
        elif fn is np.cross:
            parts = self._cross(step, y)
        elif (name := reduction_name(fn)) is not None:
            parts = self._folded(name, step, y)
        else:
            parts = self._each(step, y)
        if parts.shape != rest:
            raise self._refused(step)
        return parts

    def _require_aligned(self, *_: Any) -> None:
        """Parts are aligned by NumPy."""

    def _spread(self, x: Value, y: Value, step: Step) -> Any:
        """The nodes of an operand, one for each of the result's."""
        parts = self.parts[x]
        if len(x.shape) == len(y.shape) and not self._has_rows(x):
            if x.shape[0] != 1:
                raise self._refused(step)
            parts = parts[0, ...]
        elif len(x.shape) != len(y.shape) and self._has_rows(x):
            raise self._refused(step)
        return np.broadcast_to(parts, y.shape[1:])

    def _each(self, step: Step, y: Value) -> np.ndarray:
        """An elementwise step, number by number."""
        operands = {x: self._spread(x, y, step) for x in step.inputs}
        nodes = []
        for place in np.ndindex(y.shape[1:]):
            self.known = {x: parts[place] for x, parts in operands.items()}
            nodes.append(self._computed(step, y))
        return _array(nodes, y.shape[1:])

    def _folded(self, name: str, step: Step, y: Value) -> np.ndarray:
        x, options = step.inputs[0], set(step.kwargs)
        axes = axes_of(step, x)
        plain = options <= {"axis", "keepdims"} and len(step.args) < 3
        if not plain or 0 in axes or name not in _FOLDED or not self._has_rows(x):
            raise self._refused(step)
        count = prod(x.shape[a] for a in axes)
        ends = [a - 1 for a in axes], range(-len(axes), 0)
        lines = np.moveaxis(self.parts[x], *ends).reshape(-1, count)
        return _array([self._fold(name, line, y.dtype) for line in lines], y.shape[1:])

    def _fold(self, name: str, line: Any, dtype: Any) -> Node:
        """One node for several."""
        if name in ("any", "all", "count"):
            line = [self._as(node, np.dtype(bool)) for node in line]
        total, *others = (self._as(node, dtype) for node in line)
        for node in others:
            total = self._pair(_FOLDED[name], total, node)
        if name == "mean":
            return self._pair("divide", total, self._number(len(line), dtype))
        return total

    def _pair(self, op: str, x1: Node, x2: Node) -> Node:
        kind = FULL if FULL in (x1.kind, x2.kind) else SCALAR
        return self._node(op, [x1, x2], x1.dtype, kind)

    def _moved(self, step: Step, y: Value) -> np.ndarray:
        """The same numbers of each row, some of them or with zeros between."""
        x = step.inputs[0] if len(step.inputs) == 1 else None
        if x is None or x is not step.args[0] or not self._has_rows(x):
            raise self._refused(step)
        parts = self.parts[x]
        if step.fn in _PERMUTED:
            first, *others = permutation(step, x)
            if first:
                raise self._refused(step)
            return parts.transpose([axis - 1 for axis in others])
        if step.fn is index:
            return np.asarray(parts[self._key(step)], object)
        if step.fn is scatter:
            zero = self._number(0, y.dtype)
            found = _array([zero] * prod(y.shape[1:]), y.shape[1:])
            key = self._key(step)
            # One number of each row is a node, which has no shape
            if getattr(found[key], "shape", ()) != parts.shape:
                raise self._refused(step)
            found[key] = parts if parts.shape else parts[()]
            return found
        in_order = "order" not in step.kwargs and len(step.args) < 3
        if not in_order or (step.fn is np.ravel and len(step.args) > 1):
            raise self._refused(step)
        return parts.reshape(y.shape[1:])

    def _key(self, step: Step) -> tuple[Any, ...]:
        """What a key takes of each row, if it takes all rows."""
        given = step.args[1]
        first, *others = given if isinstance(given, tuple) and given else (given,)
        if not is_basic((first, *others)) or given == ():
            raise self._refused(step)
        if isinstance(first, slice) and first == slice(None):
            return tuple(others)
        if first is Ellipsis and len(others) < len(step.args[0].shape):
            return (first, *others)
        raise self._refused(step)

    def _joined(self, step: Step, y: Value) -> np.ndarray:
        arrays, *options = step.args
        axis = options[0] if options else step.kwargs.get("axis", 0)
        known = len(options) < 2 and step.kwargs.keys() <= {"axis"}
        if not known or axis is None or not isinstance(arrays, (list, tuple)):
            raise self._refused(step)
        axis %= len(y.shape)
        if not axis or not all(isinstance(x, Value) for x in arrays):
            raise self._refused(step)
        if not all(map(self._has_rows, arrays)):
            raise self._refused(step)
        parts = step.fn([self.parts[x] for x in arrays], axis - 1)
        return _array([self._as(node, y.dtype) for node in parts.flat], parts.shape)

    def _cross(self, step: Step, y: Value) -> np.ndarray:
        xs = step.args
        if step.kwargs or len(xs) != 2 or y.shape[-1] != 3 or len(step.inputs) != 2:
            raise self._refused(step)
        if any(x.shape[-1] != 3 for x in xs):
            raise self._refused(step)
        a, b = (self._spread(x, y, step) for x in xs)
        made = np.empty(y.shape[1:], object)
        for place in np.ndindex(y.shape[1:-1]):
            u, v = ([self._as(n, y.dtype) for n in x[place]] for x in (a, b))
            for k in range(3):
                i, j = (k + 1) % 3, (k + 2) % 3
                first = self._pair("multiply", u[i], v[j])
                second = self._pair("multiply", u[j], v[i])
                made[(*place, k)] = self._pair("subtract", first, second)
        return made


def _unfit(value: Value) -> NotFusedError:
    return refuse(f"an array of shape {value.shape}")


def _array(nodes: Sequence[Node], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(len(nodes), object)
    made[:] = nodes
    return made.reshape(shape)


def groups_of(program: Program, fits: Sequence[bool]) -> list[list[int]]:
    """Steps that fit, in groups that can run at once, one group after the other.

    A group has what does not need, by way of a step that does not fit, what is in it.
    Long ones are cut.
    """
    group: dict[int, int] = {}
    since: dict[Value, int] = {}  # the first group that can read a value,
    within: set[Value] = set()  # and which of them this group itself computes
    for i, step in enumerate(program.steps):
        at = max((since.get(x, 0) for x in step.inputs), default=0)
        if fits[i]:
            group[i] = at
            within.update(step.outputs)
        elif any(x in within and since[x] == at for x in step.inputs):
            at += 1
        since.update(dict.fromkeys(step.outputs, at))
    _defer(program, group)
    found: dict[tuple[int, int], list[int]] = {}
    numbers: Counter[int] = Counter()
    for i, at in group.items():
        numbers[at] += prod(program.steps[i].outputs[0].shape[1:])
        found.setdefault((at, numbers[at] // MOST), []).append(i)
    return [*found.values()]


def _defer(program: Program, group: dict[int, int]) -> None:
    """Compute what only later groups need in the first of them, if that reads less."""
    users: dict[Value, set[int | None]] = {y: {None} for y in program.results}
    for i, step in reversed([*enumerate(program.steps)]):
        if i in group:
            (y,) = step.outputs
            later = users.get(y, {None})
            smaller = sum(x.size for x in step.inputs) <= y.size
            if None not in later and smaller:
                group[i] = min(n for n in later if n is not None)
        for x in step.inputs:
            users.setdefault(x, set()).add(group.get(i))
