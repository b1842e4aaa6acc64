"""The values of a nest in the code of a kernel: single numbers, and those of a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

from ..fusion import COLUMN, ROW, SCALAR, Nest, Node, Repeats
from .arrays import Arrays, load
from .elementwise import computed
from .lanes import Code, Lane, kind_of, where
from .near import Near
from .scratch import kept_kind


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compute values of a loop; nodes go by their id."""

    chosen: dict[int, Node] = field(default_factory=dict)  # instead of choices
    inverses: dict[int, Lane] = field(default_factory=dict)  # of divisors


@dataclass(slots=True)
class Scope:
    """Where in a loop values are computed, and what is known of them there.

    What is `taken` is read from memory.
    """

    column: Lane
    width: int
    mask: Lane | None = None
    taken: set[int] = field(default_factory=set)
    way: Way = field(default_factory=Way)
    # What a stage leaves for the next one: memory, its kind and the place there
    left: dict[int, tuple[str, str, Lane]] = field(default_factory=dict)
    known: dict[int, Lane] = field(default_factory=dict)


class Values:
    """What is known so far, by the id of nodes."""

    def __init__(
        self,
        code: Code,
        nest: Nest,
        arrays: Arrays,
        kept: list[Node],
        homes: dict[int, int],
    ) -> None:
        self.code, self.nest, self.arrays = code, nest, arrays
        self.nodes = nest.nodes
        self.row, self.columns = code.named("r"), code.named("columns")
        self.one: dict[int, Lane] = {}  # values of one number: scalars and this row's
        self.base = code.number(0, "i64")  # where the row starts
        self.rows_of: dict[Repeats, Lane] = {}  # which row of an array belongs to it
        self.first: dict[Repeats, Lane] = {}  # whether that is the first one there
        self.lines: dict[int, Near] = {}  # inputs, of whose rows each one is needed
        self._homes = homes
        self._kept = {id(n): i for i, n in enumerate(kept)}

    # Single numbers

    def compute_scalars(self) -> None:
        for node in self.nodes:
            if node.kind == SCALAR:
                self._compute_one(node)

    def begin_row(self) -> None:
        """Find where the row lies in the arrays."""
        self.base = self.row * self.columns
        for node in self.nodes:
            if isinstance(node.data, Repeats):
                self._begin_repeats(node.data)
        self.compute_row(0)

    def compute_row(self, level: int) -> None:
        """Compute what is known of the row after so many passes."""
        for node in self.nodes:
            if node.kind == ROW and node.level == level and id(node) not in self.one:
                self._compute_one(node)

    def _begin_repeats(self, data: Repeats) -> None:
        at, first = self.code.number(0, "i64"), self.code.number(1, "i1")
        for each, count, between in data.own:
            at = at + self._along_axis(each, count) * between
        for each, count in data.others:
            first = first & self._along_axis(each, count).equals(0)
        self.rows_of[data], self.first[data] = at, first

    def _along_axis(self, each: int, count: int) -> Lane:
        """The number of the row along an axis, as `Repeats` says."""
        at, value = self.row, self.code.value
        if each != 1:
            at = value(f"udiv i64 {at.name}, {each}", "i64", 1)
        if each * count == self.nest.rows:
            return at
        return value(f"urem i64 {at.name}, {count}", "i64", 1)

    def _compute_one(self, node: Node) -> None:
        if node.op == "gather":
            y = self._gathered(node)
        elif node.op == "number":
            y = self.code.number(node.data, kind_of(node.dtype))
        elif node.op in ("input", "strided", "part", "repeated"):
            y = self._read_one(node)
        else:
            y = computed(node, lambda a: self.one[id(a)])
        self.one[id(node)] = y

    def _read_one(self, node: Node) -> Lane:
        i = node.data
        if node.op == "input":
            place = self.row if node.kind == ROW else self.code.number(0, "i64")
        elif node.op == "strided":
            i, at, _ = node.data
            place = self.code.number(at, "i64")
        elif node.op == "part":
            i, k, n = node.data
            place = self.row * n + k
        else:
            i, place = node.data.i, self.rows_of[node.data]
        return self.arrays.read(i, place, kind_of(node.dtype), 1)

    def _gathered(self, node: Node) -> Lane:
        """A full value at one column."""
        code = self.code
        at = self.one[id(node.args[1])]
        at = where(at < 0, at + self.columns, at)
        out = (at < 0) | (at >= self.columns)
        before = code.named(code.name("was"), "i32")
        code.write(f"  {before.name} = load i32, ptr %bad")
        now = before | out.converted("i32")
        code.write(f"  store i32 {now.name}, ptr %bad")
        y = self.at(node.args[0], Scope(where(out, 0, at), 1))
        return where(out, nan, y) if y.is_float else y

    # Values in a loop

    def at(self, node: Node, scope: Scope) -> Lane:
        """A value at the columns of a scope."""
        node = scope.way.chosen.get(id(node), node)
        found = scope.known.get(id(node))
        if found is None:
            found = scope.known[id(node)] = self._new(node, scope)
        return found

    def _new(self, node: Node, scope: Scope) -> Lane:
        kind, width = kind_of(node.dtype), scope.width
        if node.kind in (SCALAR, ROW):
            return self.one[id(node)].spread(width)
        if id(node) in scope.taken:
            kept = self.kept_at(node, scope)
            return load(self.code, *kept, kind, width, scope.mask)
        if node.op in ("input", "line", "repeated", "strided"):
            return self._read(node, scope)
        if node.op == "index":
            y = self._place(node, scope).converted(kind).spread(width)
            return y + self.code.numbers(range(width), kind) if width > 1 else y
        if node.op == "divide" and id(node.args[1]) in scope.way.inverses:
            inverse = scope.way.inverses[id(node.args[1])].spread(width)
            return self.at(node.args[0], scope) * inverse
        return computed(node, lambda a: self.at(a, scope))

    def _read(self, node: Node, scope: Scope) -> Lane:
        kind, width, column = kind_of(node.dtype), scope.width, scope.column
        if node.op == "line":
            i, k, _ = node.data
            return self.lines[i].read(k, column, width)
        if node.op == "strided":
            i, at, stride = node.data
            return self.arrays.read_strided(
                i, column, at, stride, kind, width, scope.mask
            )
        if node.op == "repeated":
            i, place = node.data.i, self.rows_of[node.data] * self.columns + column
        else:
            i, place = node.data, self._place(node, scope)
        return self.arrays.read(i, place, kind, width, scope.mask)

    def _place(self, node: Node, scope: Scope) -> Lane:
        """Where in an array of its kind a value is."""
        return scope.column if node.kind == COLUMN else self.base + scope.column

    def kept_at(self, node: Node, scope: Scope) -> tuple[str, str]:
        """The address at which a value is kept, and its kind there."""
        address, column = self.code.address, scope.column
        if id(node) in scope.left:
            memory, kind, at = scope.left[id(node)]
            return address(memory, kind, at), kind
        kind = kept_kind(node)
        if id(node) in self._homes:
            return address(f"%out{self._homes[id(node)]}", kind, column), kind
        first = self.columns * self._kept[id(node)]  # there are 8 bytes for each number
        return address(address("%kept", "i64", first), kind, column), kind
