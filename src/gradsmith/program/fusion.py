"""What of a program is one loop nest over rows, and in how many passes over each row.

A nest runs over rows, and within a row over its columns, which are the axes that are
reduced. Every value of it is one number ("scalar"), one for each row, one for each
column, or one for each element ("full"). What is computed from a reduction needs the
row once more, so that a reduction ends a pass. Nothing here knows what the nest is
written in.

With `repeats`, an array may also have some of the axes that the rows are made of: its
rows are read again and again. And sums may be over such axes: each row is added to what
is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import exp, inf, isnan, nan, prod
from operator import add, mul, neg, sub, truediv
from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.places import Place
from ..core.rule import convert, index
from .graph import Program, Step, Value, is_uniform
from .kernels.primitives import PRIMITIVES, SUMS

SCALAR, ROW, COLUMN, FULL = "scalar", "row", "column", "full"


@dataclass(frozen=True, eq=False)
class Node:
    """One value of a nest: what computes it, of what, how often, and after which pass.

    `data` is what an "input" (its number), a "number" (itself) is, and of which input a
    "repeated" row is, or where a "total" is added up: `Repeats`. A "part" is one of the
    numbers of a row of an input, a "line" one of its rows. `level` is the pass in which
    it is known.
    """

    op: str
    args: tuple[Node, ...]
    dtype: np.dtype[Any]
    kind: str
    level: int = 0
    data: Any = None


@dataclass(frozen=True)
class Repeats:
    """Which row of an array belongs to each row of the nest; `i` is its number.

    Row r of the nest is number `r // each % count` along an axis. The array has the
    axes `own`, each with the rows that lie between two of its numbers; along `others`
    its rows repeat.
    """

    own: tuple[tuple[int, int, int], ...]  # each, count and rows of the array
    others: tuple[tuple[int, int], ...]  # each and count
    i: int = -1


@dataclass(frozen=True, eq=False)
class Pass:
    """One run over the columns of a row: what it reduces, writes, keeps and takes up.

    What is kept stays in fast memory for a later pass, where computing it again would
    take longer than reading it.
    """

    reductions: list[Node] = field(default_factory=list)
    stores: list[tuple[int, Node]] = field(default_factory=list)
    keeps: list[Node] = field(default_factory=list)
    takes: list[Node] = field(default_factory=list)

    @property
    def roots(self) -> list[Node]:
        stored = [node for _, node in self.stores]
        return [*[r.args[0] for r in self.reductions], *stored, *self.keeps]

    @property
    def nodes(self) -> list[Node]:
        """What the loop computes, and takes up."""
        return _within(self.roots, lambda node: node in self.takes)


@dataclass(frozen=True, eq=False)
class Nest:
    """A program as one loop nest.

    `inputs` are the kinds of its arrays, the program's and then its `constants`, and
    their shapes. A nest without rows or reductions is `flat`: its columns may be cut
    anywhere. Outputs are arrays of their own, unless `places` says where in which array
    each of them is.
    """

    name: str
    rows: int
    columns: int
    inputs: list[tuple[str, np.dtype[Any]]]
    constants: list[np.ndarray]
    outputs: list[Node]
    shapes: list[tuple[int, ...]]
    passes: list[Pass]
    # Of each of the outputs: the array, where in a row of it, and how long the row is
    places: list[tuple[int, int, int]] | None = None

    @property
    def flat(self) -> bool:
        kinds = {kind for kind, _ in self.inputs} | {y.kind for y in self.outputs}
        return self.rows == 1 and len(self.passes) == 1 and kinds <= {SCALAR, FULL}

    @property
    def nodes(self) -> list[Node]:
        """All that is computed, each after what it is computed of."""
        return ordered(self.outputs)


class NotFusedError(UnsupportedOperationError):
    """A program that is not one loop nest; says which step is in the way."""


def refuse(what: str, place: Place | None = None) -> NotFusedError:
    where = "" if place is None else f" ({place})"
    return NotFusedError(
        f"{what} can't be part of a fused kernel{where}\n"
        "  what to do: leave it out of what is fused, or do without gs.fuse"
    )


# Elementwise functions of NumPy, by the name that emitters know them by
_ARITHMETIC = {
    np.add: "add", np.subtract: "subtract", np.multiply: "multiply",
    np.true_divide: "divide", np.negative: "negative", np.positive: "positive",
    np.absolute: "absolute", np.fabs: "absolute", np.maximum: "maximum",
    np.minimum: "minimum", np.exp: "exp", np.expm1: "expm1", np.log: "log",
    np.log1p: "log1p", np.tanh: "tanh", np.sqrt: "sqrt", np.square: "square",
    np.reciprocal: "reciprocal", np.sin: "sin", np.cos: "cos", np.power: "power",
    np.floor: "floor", np.ceil: "ceil", np.trunc: "trunc", np.rint: "rint",
    np.sign: "sign", np.copysign: "copysign", np.exp2: "exp2", np.log2: "log2",
    np.log10: "log10", np.right_shift: "right_shift",
}  # fmt: skip
_COMPARISONS = {
    np.less: "less", np.less_equal: "less_equal", np.greater: "greater",
    np.greater_equal: "greater_equal", np.equal: "equal", np.not_equal: "not_equal",
}  # fmt: skip
_TESTS = {np.isnan: "isnan", np.isfinite: "isfinite", np.isinf: "isinf"}
_LOGIC = {
    np.logical_and: "and", np.logical_or: "or", np.logical_xor: "xor",
    np.logical_not: "not", np.bitwise_and: "and", np.bitwise_or: "or",
    np.bitwise_xor: "xor", np.invert: "not",
}  # fmt: skip
# What arithmetic of flags is; as numbers of one bit they would have a sign
_OF_FLAGS = {
    "add": "or", "maximum": "or", "max": "any", "multiply": "and", "minimum": "and",
    "min": "all",
}  # fmt: skip
# What is computed of floats alone: NumPy has it for whole numbers too
_OF_FLOATS = {"floor", "ceil", "trunc", "rint", "power", "reciprocal"}
_REDUCTIONS = {
    np.sum: "sum", np.max: "max", np.min: "min", np.any: "any", np.all: "all",
    np.mean: "mean", np.count_nonzero: "count",
}  # fmt: skip
REDUCING = ("sum", "max", "min", "any", "all", *SUMS.values())
_POSITIONS = {np.argmax: "max", np.argmin: "min"}
RESHAPING = {
    np.reshape, np.expand_dims, np.squeeze, np.ravel, np.ascontiguousarray, np.copy,
    np.asarray, np.array,
}  # fmt: skip
_FILLED = {np.zeros_like: 0, np.ones_like: 1, np.zeros: 0, np.ones: 1}
# What is read again from fast memory, since computing it takes longer
LONG = {
    "exp",
    "exp_times",
    "expm1",
    "log",
    "log1p",
    "log_sum",
    "tanh",
    "erf",
    "erfc",
    "sin",
    "cos",
    "power",
    "powers",
    "product",
}


def takes_long(fn: Any) -> bool:
    """Whether computing a function takes longer than reading its result."""
    return (_special(fn) or _ARITHMETIC.get(fn)) in LONG


def nest_of(
    program: Program, repeated: dict[int, str] | None = None, *, repeats: bool = False
) -> Nest:
    """The program as one loop nest; raises `NotFusedError` if it is none.

    `repeated` says of inputs, by number, that their elements repeat: an expanded array
    is in memory a number, or one for each row. With `repeats`, rows of arrays may.
    """
    error: NotFusedError | None = None
    for shape, k in _frames(program):
        for guess in _guesses(program, shape, k):
            try:
                return Builder(program, shape, k, guess, repeated or {}).nest()
            except NotFusedError as e:
                error = error or e
    for shape, k in _frames_of_repeats(program) if repeats else ():
        try:
            return Repeating(program, shape, k, {}, {}).nest()
        except NotFusedError as e:
            error = error or e
    raise error or refuse(f"the program {program.name!r}")


def _frames_of_repeats(program: Program) -> list[tuple[tuple[int, ...], int]]:
    """The same where rows repeat, those with the longest rows first."""
    values = [v for s in program.steps for v in (*s.inputs, *s.outputs)]
    shape = max((v.shape for v in values), key=prod, default=())
    found = [(shape, k) for k in range(len(shape) - 1, 0, -1)]
    for step in program.steps:
        if step.fn in _REDUCTIONS and len(step.inputs) == 1:
            x = step.inputs[0]
            axes = axes_of(step, x)
            if x.shape == shape and axes[-1:] == (len(shape) - 1,):
                return [(shape, len(axes))]
    return found


def _frames(program: Program) -> list[tuple[tuple[int, ...], int]]:
    """The shapes of an element of the nest, and how many of its axes are columns."""
    for step in program.steps:
        if step.fn in _REDUCTIONS or step.fn in _POSITIONS:
            x = step.inputs[0]
            return [(x.shape, len(axes_of(step, x)))]
        if step.fn is np.take_along_axis:
            return [(step.inputs[0].shape, 1)]
    values = [*program.inputs, *(y for s in program.steps for y in s.outputs)]
    shape = max((v.shape for v in values), key=prod, default=())
    n = prod(shape)
    if all(v.size in (1, n) for v in values):
        return [(shape, len(shape))]
    return [(shape, k) for k in range(1, len(shape))]


def _guesses(
    program: Program, shape: tuple[int, ...], k: int
) -> Iterator[dict[Value, str]]:
    """What each array is that has the shape of rows and of columns alike.

    What it is combined with tells; of those that nothing tells, each is the same.
    """
    rows, columns = shape[: len(shape) - k], shape[len(shape) - k :]
    if rows != columns or prod(rows) == 1:
        yield {}
        return
    told = _told(program, shape, k)
    given = [v for v in [*program.inputs, *program.constants] if v.shape == rows]
    for kind in (ROW, COLUMN):
        yield {v: told.get(v, kind) for v in given}


def _told(program: Program, shape: tuple[int, ...], k: int) -> dict[Value, str]:
    """The kinds of arrays of a row's shape, as far as the steps tell them.

    Those that are combined element by element are of one kind.
    """
    rows, ones = shape[: len(shape) - k], (1,) * k
    groups: dict[Value, set[Value]] = {}
    found: list[tuple[Value, str]] = []
    for step in program.steps:
        values = (*step.inputs, *step.outputs)
        alike = [v for v in values if v.shape == rows]
        joined = {member for v in alike for member in groups.get(v, {v})}
        groups.update(dict.fromkeys(joined, joined))
        # Beside the nest's own shape it is repeated for each row, or reduces one
        is_result = not any(v in step.inputs for v in alike)
        kinds = {shape: ROW if is_result else COLUMN}
        kinds |= {rows + ones: ROW, ones + rows: COLUMN}
        found += [
            (alike[0], kinds[v.shape]) for v in values if alike and v.shape in kinds
        ]
    return {member: kind for v, kind in found for member in groups[v]}


def axes_of(step: Step, x: Value) -> tuple[int, ...]:
    axis = step.args[1] if len(step.args) > 1 else step.kwargs.get("axis")
    if axis is None:
        return tuple(range(x.ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(a % x.ndim for a in axes))


class Builder:
    """Reads a program, step by step."""

    def __init__(
        self,
        program: Program,
        shape: tuple[int, ...],
        k: int,
        guess: dict[Value, str],
        repeated: dict[int, str],
    ) -> None:
        self.program = program
        self.shape = shape
        self.k = k
        self.guess = guess
        self.repeated = repeated
        cut = len(shape) - k
        self.rows, self.columns = prod(shape[:cut]), prod(shape[cut:])
        self.known: dict[Value, Node] = {}
        self.inputs: list[tuple[str, np.dtype[Any]]] = []
        self.constants: list[np.ndarray] = []
        self._same: dict[Any, Node] = {}

    def nest(self) -> Nest:
        for i, value in enumerate(self.program.inputs):
            self.known[value] = self._array(value, self.repeated.get(i))
        for value, array in self.program.constants.items():
            self.known[value] = self._constant(value, array)
        for step in self.program.steps:
            self._step(step)
        outputs = [self._output(v) for v in self.program.results]
        shapes = [v.shape for v in self.program.results]
        passes = passes_of(outputs)
        name = self.program.name
        return Nest(
            name, self.rows, self.columns, self.inputs, self.constants, outputs,
            shapes, passes,
        )  # fmt: skip

    def _kind_of(self, value: Value) -> str:
        shape = value.shape
        if value in self.guess:
            return self.guess[value]
        if value.size == 1:
            return SCALAR
        cut = len(self.shape) - self.k
        rows, columns = self.shape[:cut], self.shape[cut:]
        if shape == self.shape:
            return FULL
        if shape in (rows, rows + (1,) * self.k):
            return ROW
        if shape == columns or shape == (1,) * cut + columns:
            return COLUMN
        if value.size == self.rows * self.columns:
            return FULL
        raise refuse(
            f"an array of shape {shape} beside one of shape {self.shape}", None
        )

    def _array(self, value: Value, kind: str | None = None) -> Node:
        return self._input(value, kind or self._kind_of(value))

    def _input(self, value: Value, kind: str) -> Node:
        self.inputs.append((kind, value.dtype))
        return Node("input", (), value.dtype, kind, data=len(self.inputs) - 1)

    def _constant(self, value: Value, array: np.ndarray) -> Node:
        if array.size and is_uniform(array):
            return self._number(array.flat[0].item(), array.dtype)
        if array.dtype.kind == "i" and is_counted(array):
            kind = self._kind_of(value)
            if kind == COLUMN or (kind == FULL and self.rows == 1):
                return Node("index", (), array.dtype, COLUMN)
        self.constants.append(np.ascontiguousarray(array))
        return self._array(value)

    def _number(self, x: Any, dtype: np.dtype[Any]) -> Node:
        return Node("number", (), dtype, SCALAR, data=x)

    def _node(self, op: str, args: Sequence[Node], dtype: Any, kind: str) -> Node:
        """A node, or the one that computes the same."""
        args = tuple(args)
        if args and args[0].dtype == bool:
            op = _OF_FLAGS.get(op, op)
        key = (op, tuple(map(_identity, args)), dtype, kind)
        found = self._same.get(key)
        if found is None:
            level = max((a.level for a in args), default=0)
            found = Node(op, args, np.dtype(dtype), kind, level)
            self._same[key] = found
        return found

    def _as(self, node: Node, dtype: Any) -> Node:
        if node.dtype == dtype:
            return node
        if node.op == "number":
            return self._number(_as_half(node.data, dtype), np.dtype(dtype))
        return self._node("convert", [node], dtype, node.kind)

    def _operand(self, x: Any, dtype: Any, step: Step, shape: tuple[int, ...]) -> Node:
        """An argument in a dtype, which takes part in a result of some shape."""
        if not isinstance(x, Value):
            if isinstance(x, (int, float, bool, np.number, np.bool_)):
                return self._number(_as_half(x, dtype), np.dtype(dtype))
            if isinstance(x, np.ndarray) and x.size == 1:
                return self._number(_as_half(x.item(), dtype), np.dtype(dtype))
            raise self._refused(step)
        self._require_aligned(self.known[x].kind, x, shape, step)
        return self._as(self.known[x], dtype)

    def _require_aligned(
        self, kind: str, x: Value, into: tuple[int, ...], step: Step
    ) -> None:
        """Raise if broadcasting repeats a value along others than its own axes."""
        shape = x.shape
        if kind == SCALAR or shape == into or (kind == ROW and self.rows == 1):
            return
        k = self.k
        right = {
            ROW: shape[-k:] == (1,) * k and prod(shape) == prod(into[:-k]),
            COLUMN: prod(shape) == prod(into[-k:]) == prod(shape[-k:]),
            FULL: prod(shape) == prod(into),
        }[kind]
        if not right:
            raise self._refused(step)

    def _refused(self, step: Step) -> NotFusedError:
        name = getattr(step.fn, "__name__", str(step.fn))
        shapes = ", ".join(str(v.shape) for v in step.inputs)
        return refuse(f"{name} of shape {shapes}", step.place)

    def _step(self, step: Step) -> None:
        if len(step.outputs) != 1:
            raise self._refused(step)
        (y,) = step.outputs
        self.known[y] = self._computed(step, y)

    def _computed(self, step: Step, y: Value) -> Node:
        fn, args = step.fn, step.args
        if step.kwargs.get("where", True) is not True or "out" in step.kwargs:
            raise self._refused(step)
        name = _special(fn)
        if fn in _ARITHMETIC or name is not None:
            return self._elementwise(name or _ARITHMETIC[fn], step, y, y.dtype)
        if fn is np.cosh:
            return self._cosh(step, y)
        if fn in _COMPARISONS:
            common = _common(args)
            if not all(_fits(x, common) for x in args):
                raise self._refused(step)
            common = np.dtype("int8") if common.kind == "b" else common
            return self._elementwise(_COMPARISONS[fn], step, y, common)
        if fn in _TESTS and args[0].dtype.kind == "f":
            return self._elementwise(_TESTS[fn], step, y, args[0].dtype)
        if fn in _LOGIC:
            dtype = bool if y.dtype == bool else y.dtype
            return self._elementwise(_LOGIC[fn], step, y, dtype)
        if fn is np.where:
            return self._where(step, y)
        if fn is np.clip:
            return self._clip(step, y)
        if fn is np.round and y.dtype.kind == "f" and not _decimals(step):
            x = self._operand(args[0], y.dtype, step, y.shape)
            return self._node("rint", [x], y.dtype, x.kind)
        if fn in SUMS:
            return self._over_row(SUMS[fn], self._reduced_operand(step), y.dtype)
        if fn in _REDUCTIONS:
            return self._reduction(_REDUCTIONS[fn], step, y)
        if fn in _POSITIONS:
            return self._position(_POSITIONS[fn], step, y)
        if fn in _FILLED:
            return self._number(_FILLED[fn], y.dtype)
        if fn in (np.full_like, np.full):
            return self._operand(args[1], y.dtype, step, y.shape)
        if fn is convert or getattr(fn, "__name__", "") == "astype":
            return self._as(self.known[args[0]], y.dtype)
        if fn is np.arange:
            return self._counted(step, y)
        if fn is np.broadcast_to:
            return self._operand(args[0], y.dtype, step, y.shape)
        if fn in RESHAPING or fn is index:
            return self._reshaped(step, y)
        if fn is np.take_along_axis:
            return self._gather(step, y)
        raise self._refused(step)

    def _elementwise(self, op: str, step: Step, y: Value, dtype: Any) -> Node:
        args = [self._operand(x, dtype, step, y.shape) for x in step.args]
        simple = _simplified(op, args)
        if simple is not None:
            op, args = simple
        if op in _OF_FLOATS and y.dtype.kind != "f":
            raise self._refused(step)
        return self._node(op, args, y.dtype, _join(args))

    def _cosh(self, step: Step, y: Value) -> Node:
        """(e * e + 1 / (e * e)) / 2 with e = exp(|x| / 2), which does not overflow."""
        if y.dtype.itemsize < 4:
            raise self._refused(step)
        x = self._operand(step.args[0], y.dtype, step, y.shape)
        half = self._number(0.5, y.dtype)

        def make(op: str, *args: Node) -> Node:
            return self._node(op, args, y.dtype, x.kind)

        e = make("exp", make("multiply", make("absolute", x), half))
        down = make("divide", half, make("multiply", e, e))
        return make("add", make("multiply", make("multiply", half, e), e), down)

    def _where(self, step: Step, y: Value) -> Node:
        if len(step.args) != 3:
            raise self._refused(step)
        condition = self._operand(step.args[0], bool, step, y.shape)
        args = [self._operand(x, y.dtype, step, y.shape) for x in step.args[1:]]
        return self._node(
            "where", [condition, *args], y.dtype, _join([condition, *args])
        )

    def _clip(self, step: Step, y: Value) -> Node:
        given = [*step.args, None, None][:3]
        for i, names in ((1, ("a_min", "min")), (2, ("a_max", "max"))):
            for name in names:
                given[i] = step.kwargs.get(name, given[i])
        node = self._operand(given[0], y.dtype, step, y.shape)
        for op, bound in (("maximum", given[1]), ("minimum", given[2])):
            if bound is not None:
                args = [node, self._operand(bound, y.dtype, step, y.shape)]
                node = self._node(op, args, y.dtype, _join(args))
        return node

    def _reduction(self, op: str, step: Step, y: Value) -> Node:
        node = self._reduced_operand(step)
        if op in ("any", "all", "count"):
            node = self._as(node, bool)
        elif op in ("sum", "mean"):
            node = self._as(node, y.dtype)
        if op == "count":
            op, node = "sum", self._as(node, y.dtype)
        mean = op == "mean"
        found = self._over_row("sum" if mean else op, node, y.dtype)
        if mean:
            count = self._number(self.columns, y.dtype)
            found = self._node("divide", [found, count], y.dtype, ROW)
        return found

    def _reduced_operand(self, step: Step) -> Node:
        """What a step reduces, if that is the nest's rows."""
        (x,) = step.inputs[:1]
        node, axes = self.known[x], axes_of(step, x)
        n = x.ndim - len(axes)
        trailing = axes == tuple(range(n, x.ndim))
        if set(step.kwargs) - {"axis", "keepdims", "dtype"} or len(step.args) > 2:
            raise self._refused(step)
        if not trailing or prod(x.shape[n:]) != self.columns or x.size == 0:
            raise self._refused(step)
        if prod(x.shape[:n]) != self.rows:
            raise self._refused(step)
        if node.kind in (ROW, SCALAR):
            node = self._node("spread", [node], node.dtype, FULL)
        return node

    def _over_row(self, op: str, node: Node, dtype: Any) -> Node:
        """One number for each row, after the pass that makes it."""
        found = self._node(op, [node], dtype, ROW)
        if found.level == node.level:
            found = Node(found.op, found.args, found.dtype, ROW, node.level + 1)
            self._same[(found.op, (_identity(node),), dtype, ROW)] = found
        return found

    def _position(self, op: str, step: Step, y: Value) -> Node:
        """The first place of the greatest or least; of a NaN if there is one."""
        node = self._reduced_operand(step)
        if node.dtype == bool:
            node = self._as(node, np.int8)
        extreme = self._over_row(op, node, node.dtype)
        found = self._node("equal", [node, extreme], bool, FULL)
        if node.dtype.kind == "f":  # the extreme is NaN then, and equal to nothing
            is_nan = self._node("isnan", [node], bool, node.kind)
            found = self._node("or", [found, is_nan], bool, FULL)
        dtype = np.dtype("int32" if self.columns < 2**31 else "int64")
        index = Node("index", (), dtype, COLUMN)
        beyond = self._number(self.columns, dtype)
        place = self._node("where", [found, index, beyond], dtype, FULL)
        return self._as(self._over_row("min", place, dtype), y.dtype)

    def _reshaped(self, step: Step, y: Value) -> Node:
        (x,) = step.inputs[:1]
        plain = step.fn is not index or _is_reshaping(step.args[1])
        if len(step.inputs) != 1 or x.size != y.size or not plain:
            raise self._refused(step)
        if step.kwargs.get("order", "C") not in ("C", "K", "A"):
            raise self._refused(step)
        return self._as(self.known[x], y.dtype)

    def _counted(self, step: Step, y: Value) -> Node:
        """0, 1, 2... along the columns, or over all elements."""
        if len(step.args) != 1:
            raise self._refused(step)
        if y.size == self.rows * self.columns:
            return Node("index", (), y.dtype, FULL)
        if y.size != self.columns or self.k != 1:
            raise self._refused(step)
        return Node("index", (), y.dtype, COLUMN)

    def _gather(self, step: Step, y: Value) -> Node:
        x, places = step.args[0], step.args[1]
        axis = step.args[2] if len(step.args) > 2 else step.kwargs.get("axis", -1)
        node, at = self.known[x], self.known[places]
        if axis is None or axis % x.ndim != x.ndim - 1 or self.k != 1:
            raise self._refused(step)
        if node.kind not in (FULL, COLUMN) or at.kind not in (ROW, SCALAR):
            raise self._refused(step)
        if at.dtype.kind not in "iu" or places.shape != (*x.shape[:-1], 1):
            raise self._refused(step)
        return self._node("gather", [node, self._as(at, np.int64)], y.dtype, ROW)

    def _output(self, value: Value) -> Node:
        """A result, written once for each number of its shape."""
        node = self.known[value]
        kind = self._kind_of_result(value, node)
        if kind != node.kind:
            node = self._node("spread", [node], node.dtype, kind)
        return node

    def _kind_of_result(self, value: Value, node: Node) -> str:
        n = self.rows * self.columns
        if value.size == n and (node.kind != ROW or self.rows != n):
            return FULL
        if value.size == self.rows:
            return ROW
        raise refuse(f"a result of shape {value.shape} from {self.shape}")


class Repeating(Builder):
    """A nest in which rows of arrays repeat, and rows are added up."""

    def nest(self) -> Nest:
        self.repeating: set[Value] = set()
        self.totals: set[Value] = set()
        self.whole = self.shape, self.shape[: -self.k] + (1,) * self.k
        if self.rows == 1:
            raise refuse(f"the program {self.program.name!r}")
        found = super().nest()
        is_long = any(node.op in LONG for node in found.nodes)
        if is_long and self.columns % 8 and self.columns < 16:
            raise refuse("a long function of rows of few elements")
        return found

    def _array(self, value: Value, kind: str | None = None) -> Node:
        try:
            return super()._array(value, kind)
        except NotFusedError:
            kind, repeats = self._repeats(value.shape)
        self.repeating.add(value)
        self.inputs.append((kind, value.dtype))
        data = replace(repeats, i=len(self.inputs) - 1)
        return Node("repeated", (), value.dtype, kind, data=data)

    def _repeats(self, shape: tuple[int, ...]) -> tuple[str, Repeats]:
        """Which row of an array belongs to each row: by broadcasting to all axes."""
        n = len(self.shape)
        shape = (1,) * (n - len(shape)) + shape
        rows, rest = self.shape[: n - self.k], shape[n - self.k :]
        given = shape[: n - self.k]
        kinds = {self.shape[n - self.k :]: FULL, (1,) * self.k: ROW}
        if len(shape) > n or rest not in kinds:
            raise refuse(f"an array of shape {shape} beside one of shape {self.shape}")
        own, others, each, between = [], [], 1, 1
        for length, count in zip(given[::-1], rows[::-1], strict=True):
            if length == count > 1:
                own.append((each, count, between))
                between *= count
            elif length == 1 < count:
                others.append((each, count))
            elif length != count:
                raise refuse(f"an array of shape {shape} beside {self.shape}")
            each *= count
        return kinds[rest], Repeats(_joined(own), tuple(others))

    def _require_aligned(
        self, kind: str, x: Value, into: tuple[int, ...], step: Step
    ) -> None:
        if x not in self.repeating:
            super()._require_aligned(kind, x, into, step)
        elif into not in self.whole or np.broadcast_shapes(x.shape, into) != into:
            raise self._refused(step)

    def _step(self, step: Step) -> None:
        if not self.totals.isdisjoint(step.inputs):
            raise self._refused(step)  # they are known at the end
        each = isinstance(step.fn, np.ufunc) or step.fn in (np.where, np.clip)
        if not self.repeating.isdisjoint(step.inputs) and not each:
            raise self._refused(step)
        super()._step(step)

    def _reduction(self, op: str, step: Step, y: Value) -> Node:
        if op == "sum" and adds_rows(step):
            return self._total(step, y, axes_of(step, step.inputs[0]))
        return super()._reduction(op, step, y)

    def _total(self, step: Step, y: Value, axes: tuple[int, ...]) -> Node:
        """A sum of rows. In float64: the others would need memory of more digits."""
        x = step.inputs[0]
        node, shape = self.known[x], [*x.shape]
        for axis in axes:
            shape[axis] = 1
        plain = set(step.kwargs) <= {"axis", "keepdims"} and len(step.args) < 3
        doubles = x.dtype == y.dtype == np.float64
        if not plain or not doubles or x.shape != self.shape or self.columns < FEWEST:
            raise self._refused(step)
        if node.kind in (ROW, SCALAR, COLUMN):
            raise self._refused(step)
        kind, repeats = self._repeats(tuple(shape))
        if kind != FULL:
            raise self._refused(step)
        self.totals.add(y)
        return Node("total", (node,), y.dtype, FULL, node.level, repeats)

    def _output(self, value: Value) -> Node:
        return self.known[value] if value in self.totals else super()._output(value)


def _joined(own: list[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Axes that follow each other as one."""
    found: list[tuple[int, int, int]] = []
    for each, count, between in own:
        if found and found[-1][0] * found[-1][1] == each:
            before = found.pop()
            found.append((before[0], before[1] * count, before[2]))
        else:
            found.append((each, count, between))
    return tuple(found)


def adds_rows(step: Step) -> bool:
    """Whether it is a sum of rows, if it is part of a nest."""
    if step.fn is not np.sum or not step.inputs:
        return False
    x = step.inputs[0]
    axes = axes_of(step, x)
    return bool(axes) and axes[-1] != x.ndim - 1


# Columns from which on rows are added up: a register of them
FEWEST = 8


def reduction_name(fn: Any) -> str | None:
    """How emitters call a reduction."""
    return _REDUCTIONS.get(fn)


def _decimals(step: Step) -> Any:
    """Those that `np.round` leaves."""
    return step.args[1] if len(step.args) > 1 else step.kwargs.get("decimals", 0)


def is_counted(array: np.ndarray) -> bool:
    """Whether it is 0, 1, 2..."""
    return np.array_equal(array.ravel(), np.arange(array.size))


def _special(fn: Any) -> str | None:
    """The name of a function of SciPy's, or one of that name, or of a kernel's own."""
    name = getattr(fn, "__name__", "")
    return name if name in ("erf", "erfc") else PRIMITIVES.get(fn)


def _identity(node: Node) -> Any:
    if node.op == "number":
        return (repr(node.data), node.dtype)
    return id(node)


def _common(args: Sequence[Any]) -> np.dtype[Any]:
    """The dtype in which arguments are compared."""
    return np.result_type(*[a.dtype if isinstance(a, Value) else a for a in args])


def _as_half(x: Any, dtype: Any) -> Any:
    """A number as float16 has it, which kernels compute in float32."""
    if dtype != np.float16:
        return x
    with np.errstate(over="ignore"):
        return float(np.float16(x))


def _fits(x: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a whole number is one of a dtype, in which it would be another."""
    if type(x) is not int or dtype.kind not in "iu":
        return True
    return np.iinfo(dtype).min <= x <= np.iinfo(dtype).max


def _join(args: Sequence[Node]) -> str:
    kinds = {a.kind for a in args} - {SCALAR}
    if not kinds:
        return SCALAR
    return kinds.pop() if len(kinds) == 1 else FULL


def _simplified(op: str, args: list[Node]) -> tuple[str, list[Node]] | None:
    """The same by cheaper operations."""
    if op == "power" and args[1].op == "number":
        n = args[1].data
        known = {2: "square", 1: "positive", 0.5: "sqrt", -1: "reciprocal"}
        return (known[n], args[:1]) if n in known and n != 0.5 else None
    return None


def _is_reshaping(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(k is None or k is Ellipsis or k == slice(None) for k in keys)


def passes_of(outputs: list[Node]) -> list[Pass]:
    nodes = ordered(outputs)
    reductions = [n for n in nodes if n.op in REDUCING]
    last = max([n.level - 1 for n in reductions], default=-1)
    last = max([last, *[y.level for y in outputs if y.kind == FULL]])
    passes = [Pass() for _ in range(last + 1)]
    for node in reductions:
        passes[node.level - 1].reductions.append(node)
    for i, y in enumerate(outputs):
        if y.kind == FULL:
            passes[y.level].stores.append((i, y))
    first: dict[int, int] = {}  # the pass that computes a node first
    for i, each in enumerate(passes):

        def is_known(node: Node, i: int = i) -> bool:
            is_long = node.op in LONG and node.kind == FULL
            return is_long and first.get(id(node), i) < i

        for node in _within(each.roots, is_known, usual=True):
            if is_known(node):
                each.takes.append(node)
                if node not in passes[first[id(node)]].keeps:
                    passes[first[id(node)]].keeps.append(node)
            first.setdefault(id(node), i)
    return passes


def range_of(
    node: Node, known: dict[int, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """Between which numbers a value is, as far as its steps tell, unless NaN.

    What is `known` of others is added to.
    """
    known = {} if known is None else known
    for each in ordered([node]):
        if id(each) not in known:
            known[id(each)] = _range_after(each, [known[id(a)] for a in each.args])
    return known[id(node)]


def _range_after(node: Node, of: list[tuple[float, float]]) -> tuple[float, float]:
    """The range of a value by those of what it is computed of."""
    if node.op == "number":
        return float(node.data), float(node.data)
    if node.op not in _RANGES or node.dtype.kind != "f":
        return -inf, inf
    is_square = node.op == "multiply" and node.args[0] is node.args[1]
    ends = _square(of[0]) if is_square else _RANGES[node.op](*of)
    if any(map(isnan, ends)):
        return -inf, inf
    # Each step rounds, by less than this
    low, high = ends
    if node.op in _ROUNDED:
        low, high = low - abs(low) * 2.0**-20, high + abs(high) * 2.0**-20
    return low, high


Range = tuple[float, float]


def _ends(fn: Any) -> Any:
    """By a function that is monotonic in each argument: at the ends of the ranges."""

    def ends(*ranges: Range) -> Range:
        found = [fn(*each) for each in product(*ranges)]
        return (nan, nan) if any(map(isnan, found)) else (min(found), max(found))

    return ends


def _exp(x: float) -> float:
    return exp(x) if x < 709 else inf


def _absolute(x: Range) -> Range:
    return (0.0 if x[0] <= 0 <= x[1] else min(map(abs, x))), max(map(abs, x))


def _square(x: Range) -> Range:
    low, high = _absolute(x)
    return low * low, high * high


def _quotient(x: Range, y: Range) -> Range:
    return (-inf, inf) if y[0] <= 0 <= y[1] else _ends(truediv)(x, y)


def _either(x: Range, y: Range) -> Range:
    """Of two numbers; one that is NaN is in no range."""
    if isnan(x[0]) or isnan(y[0]):
        return y if isnan(x[0]) else x
    return min(x[0], y[0]), max(x[1], y[1])


_RANGES: dict[str, Any] = {
    "absolute": _absolute, "square": _square, "negative": _ends(neg),
    "positive": lambda x: x, "minimum": _ends(min), "maximum": _ends(max),
    "add": _ends(add), "subtract": _ends(sub), "multiply": _ends(mul),
    "divide": _quotient,
    "exp": _ends(_exp), "exp_total": lambda x: (0.0, 2.0**40),
    "tanh": lambda x: (-1.0, 1.0),
    "where": lambda c, a, b: _either(a, b),
}  # fmt: skip
_ROUNDED = ("square", "add", "subtract", "multiply", "divide", "exp")


def is_choice(node: Node) -> bool:
    """Whether it is one of two, for a whole row."""
    return node.op == "where" and node.kind == FULL and node.args[0].kind == ROW


def usual_of(choice: Node) -> Node:
    """What is mostly chosen: few rows are equal to something, or special."""
    condition, then, otherwise = choice.args
    likely = condition.op in ("not_equal", "not", "isfinite")
    return then if likely else otherwise


def _within(roots: Sequence[Node], stop: Any, *, usual: bool = False) -> list[Node]:
    """What is computed in the loop for some nodes; not beyond those that stop it.

    If `usual`, only for what is mostly chosen: it is not worth keeping more.
    """
    seen: dict[int, Node] = {}
    todo = [n for n in roots if n.kind in (FULL, COLUMN)]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if not stop(node):
            args = [usual_of(node)] if usual and is_choice(node) else node.args
            todo += [a for a in args if a.kind in (FULL, COLUMN)]
    return [*seen.values()]


def ordered(roots: Sequence[Node]) -> list[Node]:
    done: dict[int, Node] = {}
    todo: list[tuple[Node, bool]] = [(n, False) for n in reversed(roots)]
    while todo:
        node, ready = todo.pop()
        if id(node) in done:
            continue
        if ready:
            done[id(node)] = node
        else:
            todo.append((node, True))
            todo += [(a, False) for a in node.args]
    return [*done.values()]
