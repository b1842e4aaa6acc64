"""A loop nest as LLVM's assembly: `assembly(nest, storage)`.

The function takes the addresses of inputs, outputs and of memory for one row, and which
rows (of a flat nest: which columns) to compute. Columns go by as many at once as fit
into a register, the last of them under a mask. It returns 1 if a place to read from was
out of bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import inf, nan
from typing import Any

from ..fusion import (
    COLUMN,
    FULL,
    ROW,
    SCALAR,
    Nest,
    Node,
    Pass,
    Repeats,
    is_choice,
    range_of,
    usual_of,
)
from . import functions
from .lanes import (
    TYPES,
    Code,
    Lane,
    abs_,
    copysign,
    fma,
    maximum,
    minimum,
    rounded,
    sqrt,
    suffix,
    type_of,
    where,
)
from .machine import Machine
from .near import LINE, Added, Memory, Near, added, nbytes, nbytes_added
from .stages import BLOCK, stages_of

# How a dtype is computed in, and how it lies in memory
KINDS = {
    "float16": ("f32", "f16"), "bfloat16": ("f32", "i16"), "float32": ("f32", "f32"),
    "float64": ("f64", "f64"), "bool": ("i1", "i8"), "int8": ("i8", "i8"),
    "int16": ("i16", "i16"), "int32": ("i32", "i32"), "int64": ("i64", "i64"),
}  # fmt: skip

# Numbers up to which a sum is as NumPy's: on 8 lanes, one after the other
FEW = 128


def _kind(node: Node) -> str:
    return KINDS[node.dtype.name][0]


def _sign(x: Lane) -> Lane:
    return where(x > 0, 1, where(x < 0, -1, x + 0))  # of -0.0, 0.0


def _isfinite(x: Lane) -> Lane:
    return abs_(x) < inf


def _shifted(x: Lane, n: Lane) -> Lane:
    return x >> minimum(n, int(x.kind[1:]) - 1)  # a longer shift is no number


def _libm(fn: str) -> Callable[..., Lane]:
    return lambda x, *more: x.code.call(fn, x.kind, x, *more)


OPS: dict[str, Callable[..., Lane]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "spread": lambda x: x,
    "total": lambda x: x,
    "totals": lambda x, *_: x,
    "absolute": abs_,
    "maximum": maximum,
    "minimum": minimum,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sqrt": sqrt,
    "sign": _sign,
    "copysign": copysign,
    "exp": functions.exp,
    "exp_times": functions.exp_times,
    "expm1": functions.expm1,
    "fma": fma,
    "log": functions.log,
    "log_sum": functions.log,
    "log1p": functions.log1p,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "erfc": functions.erfc,
    "log2": _libm("log2"),
    "log10": _libm("log10"),
    "exp2": _libm("exp2"),
    "sin": _libm("sin"),
    "cos": _libm("cos"),
    "power": _libm("pow"),
    **{name: lambda x, n=name: rounded(x, n) for name in ("floor", "ceil", "trunc")},
    "rint": lambda x: rounded(x, "rint"),
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a.equals(b),
    "not_equal": lambda a, b: a.differs(b),
    "isnan": lambda x: x.is_nan(),
    "isfinite": _isfinite,
    "isinf": lambda x: abs_(x).equals(inf),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda x: ~x,
    "right_shift": _shifted,
    "where": where,
}


def _product_and_number(node: Node) -> tuple[Node, Node, int, Any] | None:
    """The factors, their sign and the number of a sum of a product and a number.

    That is rounded once: polynomials take half the time. Of two products neither is:
    what is subtracted from a product to get the rounding error of it would be wrong.
    """
    if node.op not in ("add", "subtract") or node.dtype.kind != "f":
        return None
    x, y = node.args
    if x.op == "multiply" and y.op == "number":
        a, b = x.args
        return a, b, 1, y.data if node.op == "add" else -y.data
    if y.op == "multiply" and x.op == "number":
        a, b = y.args
        return a, b, 1 if node.op == "add" else -1, x.data
    return None


def _summed_products(args: Sequence[Lane]) -> Lane:
    """The sum of the products of the first half of some numbers with the second."""
    n = len(args) // 2
    found = args[0] * args[n]
    for a, b in zip(args[1:n], args[n + 1 :], strict=True):
        found = fma(a, b, found)
    return found


def assembly(
    nest: Nest,
    storage: Sequence[str],
    machine: Machine,
    in_place: Sequence[tuple[int, int]] = (),
) -> str:
    """The function `kernel`; `storage` are the dtypes of inputs, then of outputs.

    Pairs of an input and an output that are products `in_place` may have the same
    address: then nothing is done in a row where all the factors are 1.
    """
    return _Emitter(nest, storage, machine, in_place).text()


def kept_in(nest: Nest) -> list[Node]:
    """The values that a later pass takes up."""
    return [node for each in nest.passes for node in each.keeps]


def homes(nest: Nest, storage: Sequence[str]) -> dict[int, int]:
    """Outputs in whose memory values are kept, until the output itself is written.

    If there is one row alone, that is memory which has to be in the cache anyway: the
    gradient of logsumexp of 10**6 numbers takes 0.85 of the time. Of many rows, one row
    that is used again and again is nearer.
    """
    found: dict[int, int] = {}
    stored = {i: k for k, each in enumerate(nest.passes) for i, _ in each.stores}
    for node in kept_in(nest) if nest.rows == 1 else ():
        last = max(k for k, each in enumerate(nest.passes) if node in each.takes)
        for i, k in stored.items():
            kind = KINDS[storage[len(nest.inputs) + i]][1]
            if k >= last and kind == _kept_kind(node) and i not in found.values():
                found[id(node)] = i
                break
    return found


# Outputs that are sums of the same rows, and the numbers that these are multiplied by;
# what is known last comes last
Sums = list[tuple[int, Sequence[Node]]]


def near_in(nest: Nest) -> tuple[dict[int, tuple[str, int]], dict[int, Sums]]:
    """Inputs of whose rows each is needed, their kind and number; and sums of rows."""
    lines: dict[int, tuple[str, int]] = {}
    sums: dict[int, Sums] = {}
    for node in nest.nodes:
        if node.op == "line":
            i, _, rows = node.data
            lines[i] = _kind(node), rows
    for i, y in sorted(enumerate(nest.outputs), key=lambda each: each[1].level):
        if y.op == "totals":
            sums.setdefault(id(y.args[0]), []).append((i, y.args[1:]))
    return lines, sums


def rows_near(nest: Nest) -> int:
    """The memory for these, as so many times 8 bytes for each column."""
    lines, sums = near_in(nest)
    if not lines and not sums:
        return 0
    n = nest.columns
    size = LINE + sum(nbytes(kind, rows, n) for kind, rows in lines.values())
    for of in sums.values():
        size += nbytes_added(n, sum(len(factors) for _, factors in of))
    return -(-size // (8 * n))


def _kept_kind(node: Node) -> str:
    return "i8" if _kind(node) == "i1" else _kind(node)


class _Emitter:
    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        machine: Machine,
        in_place: Sequence[tuple[int, int]],
    ) -> None:
        self.nest, self.in_place = nest, in_place
        self.stored = [KINDS[name][1] for name in storage]
        self.bfloat = [name == "bfloat16" for name in storage]
        self.code = Code(fma=machine.fma, scales=machine.scales)
        self.nodes = nest.nodes
        wide = any(_kind(n) == "f64" and n.kind == FULL for n in self.nodes)
        self.width = machine.bytes // (8 if wide else 4)
        self.homes = {} if in_place else homes(nest, storage)
        kept = [n for n in kept_in(nest) if id(n) not in self.homes]
        self.kept = {id(n): i for i, n in enumerate(kept)}
        self.one: dict[int, Lane] = {}  # values of one number: scalars and this row's
        self.inverse: dict[int, Lane] = {}  # of divisors, where a product will do
        self.base: Lane | None = None  # where the row starts
        self.rows_of: dict[Repeats, Lane] = {}  # which row of an array belongs to it
        self.first: dict[Repeats, Lane] = {}  # whether that is the first one there
        # What a stage leaves for the next one: memory, its kind and the place there
        self.left: dict[int, tuple[str, str, Lane]] = {}
        self.lines: dict[int, Near] = {}  # inputs, of whose rows each one is needed
        # Outputs that are sums of the same rows, with their factors, by what these are
        self.totals: dict[int, tuple[Sums, Added]] = {}
        self.powers: list[_Powers] = []  # of the loop that is written
        self.start = self.stop = self.columns = self._argument("columns")

    def _argument(self, name: str) -> Lane:
        return Lane(self.code, f"%{name}", "i64", 1)

    def text(self) -> str:
        code, nest = self.code, self.nest
        pointers = [f"in{i}" for i in range(len(nest.inputs))]
        pointers += [f"out{i}" for i in range(len(nest.shapes))]
        # An output may be the memory of an input: to leave that open costs nothing
        apart = "" if self.in_place or nest.flat else "noalias "
        given = [f"ptr {apart}%{p}" for p in pointers]
        given += ["ptr noalias %kept", "i64 %start", "i64 %stop", "i64 %columns"]
        head = f"define i32 @kernel({', '.join(given)}) #0 {{"
        code.label("entry")
        code.write("  %bad = alloca i32")
        code.write("  store i32 0, ptr %bad")
        self._begin_near()
        for node in self.nodes:
            if node.kind == SCALAR:
                self._compute_one(node)
        if nest.flat:
            self.start, self.stop = self._argument("start"), self._argument("stop")
            self.base = code.number(0, "i64")
            self._skip("done")
            self._pass(nest.passes[0])
            code.write("  br label %done")
            code.label("done")
        else:
            self.start, self.stop = code.number(0, "i64"), self._argument("columns")
            self._rows()
        for of, sums in self.totals.values():
            start = 0
            for i, factors in of:
                sums.totals.end(f"%out{i}", start, len(factors))
                start += len(factors)
        code.write("  %answer = load i32, ptr %bad")
        code.write("  ret i32 %answer")
        body = "\n".join(code.lines)
        # What is kept on the stack lies in one cache line each: 0.9 of the time
        attributes = (
            "attributes #0 = { nounwind mustprogress alignstack=64 "
            '"prefer-vector-width"="512" "min-legal-vector-width"="512" }'
        )
        declared = "\n".join(sorted(code.declared))
        return f"{declared}\n{attributes}\n{head}\n{body}\n}}\n"

    def _begin_near(self) -> None:
        columns = self.nest.columns
        lines, sums = near_in(self.nest)
        if not lines and not sums:
            return
        start = self.code.number(columns * len(self.kept), "i64")
        memory = Memory(self.code, self._address("%kept", "i64", start))
        for i, (kind, rows) in lines.items():
            self.lines[i] = memory.array(kind, rows, columns)
            self.lines[i].begin(f"%in{i}")
        for x, of in sums.items():
            n = sum(len(factors) for _, factors in of)
            self.totals[x] = of, added(memory, columns, n, self.width)

    def _factors(self, of: Sums) -> list[Lane]:
        return [self.one[id(x)] for _, factors in of for x in factors]

    def _rows(self) -> None:
        code = self.code
        code.write("  %some = icmp slt i64 %start, %stop")
        code.write("  br i1 %some, label %row, label %done")
        code.label("row")
        code.write("  %r = phi i64 [%start, %entry], [%next, %rowend]")
        row = self._argument("r")
        self.base = row * self.columns
        for node in self.nodes:
            if isinstance(node.data, Repeats):
                self._begin_repeats(node.data)
        self._row_values(0)
        self._skip("rowend")
        for i, each in enumerate(self.nest.passes):
            self._pass(each)
            self._row_values(i + 1)
        for i, y in enumerate(self.nest.outputs):
            if y.kind == ROW:
                self._write(i, self.one[id(y)], row)
        for of, sums in self.totals.values():
            sums.end_row(row, self._argument("stop"), self._factors(of))
        code.write("  br label %rowend")
        code.label("rowend")
        code.write("  %next = add i64 %r, 1")
        code.write("  %more = icmp slt i64 %next, %stop")
        code.write("  br i1 %more, label %row, label %done")
        code.label("done")

    def _begin_repeats(self, data: Repeats) -> None:
        row, value = self._argument("r"), self.code.value

        def number(each: int, count: int) -> Lane:
            """The number along an axis."""
            at = row if each == 1 else value(f"udiv i64 {row.name}, {each}", "i64", 1)
            if each * count == self.nest.rows:
                return at
            return value(f"urem i64 {at.name}, {count}", "i64", 1)

        at, first = self.code.number(0, "i64"), self.code.number(1, "i1")
        for each, count, between in data.own:
            at = at + number(each, count) * between
        for each, count in data.others:
            first = first & number(each, count).equals(0)
        self.rows_of[data], self.first[data] = at, first

    def _skip(self, label: str) -> None:
        """Go there if all that is left to do is to multiply in place by 1."""
        if not self.in_place:
            return
        code = self.code
        every = code.number(1, "i1")
        for i, k in self.in_place:
            x, y = self.nest.outputs[k].args
            factor = y if (x.op, x.data) == ("input", i) else x
            same = code.value(f"icmp eq ptr %in{i}, %out{k}", "i1", 1)
            every = every & same & self.one[id(factor)].equals(1)
        code.write(f"  br i1 {every.name}, label %{label}, label %some.to.do")
        code.label("some.to.do")

    def _row_values(self, level: int) -> None:
        for node in self.nodes:
            if node.kind == ROW and node.level == level and id(node) not in self.one:
                self._compute_one(node)

    def _compute_one(self, node: Node) -> None:
        """A value that is one number, here."""
        if node.op == "gather":
            self.one[id(node)] = self._gathered(node)
            return
        row = self._argument("r") if node.kind == ROW else None
        self.one[id(node)] = self._value(node, lambda a: self.one[id(a)], row, 1)

    def _gathered(self, node: Node) -> Lane:
        """A full value at one column."""
        code = self.code
        at = self.one[id(node.args[1])]
        at = where(at < 0, at + self.columns, at)
        out = (at < 0) | (at >= self.columns)
        code.write(f"  %was{(n := code.name())} = load i32, ptr %bad")
        now = Lane(code, f"%was{n}", "i32", 1) | out.converted("i32")
        code.write(f"  store i32 {now.name}, ptr %bad")
        y = self._loop_value(node.args[0], _Scope(where(out, 0, at), 1))
        return where(out, nan, y) if y.is_float else y

    def _value(
        self, node: Node, arg: Callable[[Node], Lane], place: Lane | None, width: int
    ) -> Lane:
        code = self.code
        if node.op == "number":
            return code.number(node.data, _kind(node), width)
        if node.op == "input":
            at = code.number(0, "i64") if place is None else place
            return self._read(node.data, at, _kind(node), width, None)
        if node.op == "strided":
            i, at, _ = node.data
            return self._read(i, code.number(at, "i64"), _kind(node), width, None)
        if node.op == "part":
            i, k, n = node.data
            return self._read(i, self._argument("r") * n + k, _kind(node), width, None)
        if node.op == "product":
            return _summed_products([arg(a) for a in node.args])
        if node.op == "repeated":  # a number for each row
            at = self.rows_of[node.data]
            return self._read(node.data.i, at, _kind(node), width, None)
        fused = _product_and_number(node)
        if fused is not None:
            a, b, sign, c = fused
            factor = arg(a)
            return fma(-factor if sign < 0 else factor, arg(b), c)
        args = [arg(a) for a in node.args]
        if node.op == "convert":
            if node.dtype.name == "float16":  # computed in float32, but rounded here
                return args[0].converted("f32").converted("f16").converted("f32")
            return args[0].converted(_kind(node))
        if node.op in ("exp", "exp_times"):
            return OPS[node.op](*args, within=range_of(node.args[0]))
        return OPS[node.op](*args)

    def _loop_value(self, node: Node, scope: _Scope) -> Lane:
        """A value at the columns of a scope."""
        node = scope.chosen.get(id(node), node)
        found = scope.known.get(id(node))
        if found is None:
            found = scope.known[id(node)] = self._new_value(node, scope)
        return found

    def _new_value(self, node: Node, scope: _Scope) -> Lane:
        column, width, kind = scope.column, scope.width, _kind(node)
        if node.kind in (SCALAR, ROW):
            return self.one[id(node)].spread(width)
        if id(node) in scope.taken:
            return self._memory(*self._kept(node, column), kind, width, scope.mask)
        if node.op == "input":
            assert self.base is not None
            place = column if node.kind == COLUMN else self.base + column
            return self._read(node.data, place, kind, width, scope.mask)
        if node.op == "line":
            i, k, _ = node.data
            return self.lines[i].read(k, column, width)
        if node.op == "repeated":
            place = self.rows_of[node.data] * self.columns + column
            return self._read(node.data.i, place, kind, width, scope.mask)
        if node.op == "strided":
            i, at, stride = node.data
            places = self._places(column, at, stride, width)
            return self._gather(i, places, kind, scope.mask)
        if node.op == "index":
            assert self.base is not None
            place = column if node.kind == COLUMN else self.base + column
            y = place.converted(kind).spread(width)
            each = ", ".join(f"{kind} {i}" for i in range(width))
            return y + Lane(self.code, f"<{each}>", kind, width) if width > 1 else y
        if node.op == "divide" and id(node.args[1]) in self.inverse:
            inverse = self.inverse[id(node.args[1])].spread(width)
            return self._loop_value(node.args[0], scope) * inverse
        return self._value(node, lambda a: self._loop_value(a, scope), None, width)

    # Memory

    def _address(self, pointer: str, kind: str, place: Lane) -> str:
        name = "%" + self.code.name("p")
        t = type_of(kind, 1)
        self.code.write(
            f"  {name} = getelementptr {t}, ptr {pointer}, i64 {place.name}"
        )
        return name

    def _kept(self, node: Node, column: Lane) -> tuple[str, str]:
        """Where a value of this row is kept."""
        if id(node) in self.left:
            memory, kind, at = self.left[id(node)]
            return self._address(memory, kind, at), kind
        kind = _kept_kind(node)
        if id(node) in self.homes:
            return self._address(f"%out{self.homes[id(node)]}", kind, column), kind
        first = self.columns * self.kept[id(node)]  # there are 8 bytes for each number
        return self._address(self._address("%kept", "i64", first), kind, column), kind

    def _read(
        self, i: int, place: Lane, kind: str, width: int, mask: Lane | None
    ) -> Lane:
        stored = self.stored[i]
        address = self._address(f"%in{i}", stored, place)
        return self._memory(address, stored, kind, width, mask)

    def _memory(
        self, address: str, stored: str, kind: str, width: int, mask: Lane | None
    ) -> Lane:
        t, size = type_of(stored, width), _size(stored)
        if mask is None:
            text = f"load {t}, ptr {address}, align {size}"
        else:
            fn = f"@llvm.masked.load.{suffix(stored, width)}.p0"
            self.code.declared.add(f"declare {t} {fn}(ptr, i32, {mask.type}, {t})")
            given = f"ptr {address}, i32 {size}, {mask.type} {mask.name}"
            text = f"call {t} {fn}({given}, {t} zeroinitializer)"
        x = self.code.value(text, stored, width)
        if stored == "i16" and kind == "f32":  # the upper half of a float32
            wide = x._convert("zext", "i32")
            return (wide << 16).reinterpreted("f32")
        return x.converted(kind)

    def _places(self, column: Lane, at: int, stride: int, width: int) -> Lane:
        """Where a number of each of the rows from one on is."""
        each = ", ".join(f"i64 {at + i * stride}" for i in range(width))
        return (column * stride).spread(width) + Lane(
            self.code, f"<{each}>", "i64", width
        )

    def _addresses(self, pointer: str, kind: str, places: Lane) -> str:
        name, t = "%" + self.code.name("p"), type_of(kind, 1)
        at = f"{places.type} {places.name}"
        self.code.write(f"  {name} = getelementptr {t}, ptr {pointer}, {at}")
        return f"<{places.width} x ptr> {name}"

    def _mask(self, mask: Lane | None, width: int) -> str:
        every = ", ".join(["i1 true"] * width)
        return f"<{width} x i1> " + (f"<{every}>" if mask is None else mask.name)

    def _gather(self, i: int, places: Lane, kind: str, mask: Lane | None) -> Lane:
        stored, width = self.stored[i], places.width
        t, size = type_of(stored, width), _size(stored)
        fn = f"@llvm.masked.gather.{suffix(stored, width)}.v{width}p0"
        types = f"<{width} x ptr>, i32, <{width} x i1>, {t}"
        self.code.declared.add(f"declare {t} {fn}({types})")
        given = f"{self._addresses(f'%in{i}', stored, places)}, i32 {size}, "
        given += f"{self._mask(mask, width)}, {t} zeroinitializer"
        x = self.code.value(f"call {t} {fn}({given})", stored, width)
        return x.converted(kind)

    def _scatter(self, i: int, x: Lane, places: Lane, mask: Lane | None) -> None:
        width = x.width
        fn = f"@llvm.masked.scatter.{suffix(x.kind, width)}.v{width}p0"
        types = f"{x.type}, <{width} x ptr>, i32, <{width} x i1>"
        self.code.declared.add(f"declare void {fn}({types})")
        given = f"{x.type} {x.name}, {self._addresses(f'%out{i}', x.kind, places)}, "
        given += f"i32 {_size(x.kind)}, {self._mask(mask, width)}"
        self.code.write(f"  call void {fn}({given})")

    def _write_column(self, k: int, x: Lane, column: Lane, mask: Lane | None) -> None:
        """One of the numbers of each row, where `places` says."""
        assert self.nest.places is not None
        i, at, stride = self.nest.places[k]
        if stride == 1:
            self._write(i, x, column, mask)
            return
        x = x.converted(self.stored[len(self.nest.inputs) + i])
        places = self._places(column, at, stride, x.width)
        self._scatter(i, x, places, mask)

    def _write(self, i: int, x: Lane, place: Lane, mask: Lane | None = None) -> None:
        i += len(self.nest.inputs)
        stored = self.stored[i]
        x = _to_bfloat(x.converted("f32")) if self.bfloat[i] else x.converted(stored)
        pointer = f"%out{i - len(self.nest.inputs)}"
        self._store(x, self._address(pointer, stored, place), mask)

    def _add(
        self, i: int, x: Lane, data: Repeats, column: Lane, mask: Lane | None
    ) -> None:
        """Add to a row of an output, which is new memory when it is first written.

        What is left of a row one by one: what was written under a mask can't be read
        again before it is in the cache (5 times the time for rows of 10).
        """
        if mask is not None:
            for k in range(self.nest.columns % x.width):
                self._add(i, _part(x, k, 1), data, column + k, None)
            return
        place = self.rows_of[data] * self.columns + column
        address = self._address(f"%out{i}", x.kind, place)
        before = self._memory(address, x.kind, x.kind, x.width, mask)
        first = self.first[data].spread(x.width)
        self._store(where(first, x, before + x), address, mask)

    def _store(self, x: Lane, address: str, mask: Lane | None) -> None:
        size = _size(x.kind)
        if mask is None:
            self.code.write(f"  store {x.type} {x.name}, ptr {address}, align {size}")
            return
        fn = f"@llvm.masked.store.{suffix(x.kind, x.width)}.p0"
        self.code.declared.add(f"declare void {fn}({x.type}, ptr, i32, {mask.type})")
        given = f"{x.type} {x.name}, ptr {address}, i32 {size}, {mask.type} {mask.name}"
        self.code.write(f"  call void {fn}({given})")

    # One pass

    def _pass(self, each: Pass) -> None:
        """The loop, twice if something in it is chosen by row: as usual, and not so.

        A choice takes time for each element, and what is usual may be cheap. So does a
        division by one number of the row, which is usually a product.
        """
        code = self.code
        choices = [n for n in each.nodes if is_choice(n)]
        divisors = {id(n.args[1]): n.args[1] for n in each.nodes if _is_over_one(n)}
        if not choices and not divisors:
            totals, _ = self._loops(each, {}, often=True)
        else:
            usual = {id(n): usual_of(n) for n in choices}
            every = code.number(1, "i1")
            for n in choices:
                condition = self.one[id(n.args[0])]
                every = every & (condition if usual_of(n) is n.args[1] else ~condition)
            for key, n in divisors.items():
                size, most = abs_(self.one[key]), _NORMAL[_kind(n)]
                every = every & (size > 1 / most) & (size < most)
                self.inverse[key] = 1 / self.one[key]
            name = code.name("")
            code.write(
                f"  br i1 {every.name}, label %usual{name}, label %unusual{name}"
            )
            ways: list[tuple[list[Lane], str]] = []
            for label, chosen in ((f"usual{name}", usual), (f"unusual{name}", {})):
                code.label(label)
                ways.append(self._loops(each, chosen, often=chosen is usual))
                self.inverse = {}
                code.write(f"  br label %join{name}")
            code.label(f"join{name}")
            (first, one), (second, other) = ways
            totals = [
                _joined([(a, one), (b, other)])
                for a, b in zip(first, second, strict=True)
            ]
        for node, total in zip(each.reductions, totals, strict=True):
            self.one[id(node)] = total

    def _loops(
        self, each: Pass, chosen: dict[int, Node], *, often: bool
    ) -> tuple[list[Lane], str]:
        """A loop over columns, then the rest of them under a mask.

        What it reduces to, and the block that it ends in. Where a node is `chosen`, the
        other one stands for it. What does not run `often` need not be long code, which
        takes LLVM as long again.
        """
        code, width = self.code, self.width
        n = code.name()
        start, before = self.start, f"begin{n}"
        code.write(f"  br label %{before}")
        code.label(before)
        few = self.nest.columns <= FEW
        states = [_State(r, code, width, few=few) for r in each.reductions]
        self.powers = [
            _Powers(n, self.one[id(n.args[0])], width)
            for n in each.nodes
            if n.op == "powers" and n not in each.takes
        ]
        if often and any(map(_gathers, each.reductions)):
            start, before = self._loop(each, states, start, before, chosen, _AT_ONCE)
        stages = stages_of(each) if often and self._is_elementwise(each) else []
        if stages:
            start, before = self._blocks(each, stages, start, before, chosen)
        left, after = self._loop(each, states, start, before, chosen)
        some = left < self.stop
        code.write(f"  br i1 {some.name}, label %tail{n}, label %end{n}")
        code.label(f"tail{n}")
        old = [s.current for s in states]
        places = ", ".join(f"i64 {i}" for i in range(width))
        here = (self.stop - left).spread(width)
        mask = Lane(code, f"<{places}>", "i64", width) < here
        found = self._body(each, left, mask, chosen)
        for s, x in zip(states, found, strict=True):
            s.add([x], mask)
        code.write(f"  br label %end{n}")
        code.label(f"end{n}")
        for s, before_tail in zip(states, old, strict=True):
            s.merge(before_tail, after, f"tail{n}")
        return [s.total() for s in states], f"end{n}"

    def _loop(
        self,
        each: Pass,
        states: list[_State],
        start: Lane,
        before: str,
        chosen: dict[int, Node],
        registers: int = 1,
    ) -> tuple[Lane, str]:
        """A loop over whole registers, so many at once, after the block `before`.

        Where it stops, and the block that it ends in.
        """
        loop = f"loop{self.code.name()}"

        def body(column: Lane) -> None:
            for s in (*states, *self.powers):
                s.phis(before, loop)
            found = [
                self._body(each, column + i * self.width if i else column, None, chosen)
                for i in range(registers)
            ]
            for s, *xs in zip(states, *found, strict=True):
                s.add(xs, None)
            for s in (*states, *self.powers):
                s.close()

        left, after = self._repeated(
            body, self.width * registers, start, before, loop, loop
        )
        for s in (*states, *self.powers):
            s.after(before, loop)
        return left, after

    def _repeated(
        self,
        body: Callable[[Lane], None],
        step: int,
        start: Lane,
        before: str,
        first: str,
        last: str,
    ) -> tuple[Lane, str]:
        """The body at a column, for each whole step, from its first block to its last.

        Where it stops, and the block that it ends in.
        """
        code, after = self.code, f"{first}after"
        whole = self.stop - (step - 1)
        some = start < whole
        code.write(f"  br i1 {some.name}, label %{first}, label %{after}")
        code.label(first)
        column, following = (Lane(code, f"%{first}{x}", "i64", 1) for x in "cd")
        ways = f"[{start.name}, %{before}], [{following.name}, %{last}]"
        code.write(f"  {column.name} = phi i64 {ways}")
        body(column)
        code.write(f"  {following.name} = add i64 {column.name}, {step}")
        again = following < whole
        code.write(f"  br i1 {again.name}, label %{first}, label %{after}")
        code.label(after)
        return code.value(f"phi i64 {ways}", "i64", 1), after

    def _is_elementwise(self, each: Pass) -> bool:
        nest = self.nest
        apart = nest.flat and nest.places is None
        return apart and not each.reductions and not self.powers

    def _blocks(
        self,
        each: Pass,
        stages: list[list[Node]],
        start: Lane,
        before: str,
        chosen: dict[int, Node],
    ) -> tuple[Lane, str]:
        """`_loop` of a flat nest, stage by stage: over whole blocks of columns."""
        code, n, step = self.code, self.code.name(), self.width * BLOCK
        block, last = f"block{n}", f"stage{len(stages)}{n}end"
        leaving = [node for leaves in stages for node in leaves]
        memory = {id(n): self._block_memory(_kept_kind(n)) for n in leaving}

        def body(first: Lane) -> None:
            begin = block
            for i in range(len(stages) + 1):
                loop = f"stage{i}{n}"
                at, further = (Lane(code, f"%{x}{i}{n}", "i64", 1) for x in "xy")
                code.write(f"  br label %{loop}")
                code.label(loop)
                ways = f"[0, %{begin}], [{further.name}, %{loop}]"
                code.write(f"  {at.name} = phi i64 {ways}")
                self.left = {key: (*of, at) for key, of in memory.items()}
                taken = {id(node) for leaves in stages[:i] for node in leaves}
                if i < len(stages):
                    self._leave(stages[i], first + at, taken, chosen)
                else:
                    self._body(each, first + at, None, chosen, taken)
                self.left = {}
                code.write(f"  {further.name} = add i64 {at.name}, {self.width}")
                again = further < step
                begin = f"{loop}end"
                code.write(f"  br i1 {again.name}, label %{loop}, label %{begin}")
                code.label(begin)

        return self._repeated(body, step, start, before, block, last)

    def _leave(
        self, nodes: list[Node], column: Lane, taken: set[int], chosen: dict[int, Node]
    ) -> None:
        """Compute what a stage leaves, and write it for the next one."""
        scope = _Scope(column, self.width, None, taken, chosen)
        for node in nodes:
            x = self._loop_value(node, scope)
            address, kind = self._kept(node, scope.column)
            self._store(x.converted(kind), address, None)

    def _block_memory(self, kind: str) -> tuple[str, str]:
        """Memory for a number of each column of a block."""
        name = "%" + self.code.name("m")
        size = self.width * BLOCK
        self.code.lines.insert(
            1, f"  {name} = alloca [{size} x {TYPES[kind]}], align 64"
        )
        return name, kind

    def _body(
        self,
        each: Pass,
        column: Lane,
        mask: Lane | None,
        chosen: dict[int, Node],
        taken: set[int] | None = None,
    ) -> list[Lane]:
        """All that is to be done with the columns of a register: what is reduced.

        What is `taken` was left by an earlier stage.
        """
        taken = {id(n) for n in each.takes} if taken is None else taken
        scope = _Scope(column, self.width, mask, taken, chosen)
        for s in self.powers:
            scope.known[id(s.node)] = s.taken()
        reduced = [self._loop_value(n.args[0], scope) for n in each.reductions]
        for node in each.keeps:
            address, kind = self._kept(node, column)
            self._store(self._loop_value(node, scope).converted(kind), address, mask)
        assert self.base is not None
        if self.nest.places is not None:  # one after the other, not by deep recursion
            for node in self.nodes:
                self._loop_value(node, scope)
        for node in each.takes:  # before something is written in its place
            self._loop_value(node, scope)
        if self.nest.flat:  # before one output is written where an input was
            for _, y in each.stores:
                self._loop_value(y, scope)
        for i, y in each.stores:
            x = self._loop_value(y, scope)
            if y.op == "total":
                self._add(i, x, y.data, column, mask)
            elif y.op == "totals":
                of, sums = self.totals[id(y.args[0])]
                if i == of[-1][0]:  # all factors are known
                    factors = self._factors(of)
                    sums.take(self._argument("r"), column, x, factors)
            elif self.nest.places is None:
                self._write(i, x, self.base + column, mask)
            else:
                self._write_column(i, x, column, mask)
        return reduced


# Divisors up to here, and from its inverse on, have an inverse that is a normal number
_NORMAL = {"f32": 2.0**100, "f64": 2.0**1000}


# Registers that a loop takes at once where what they have is reduced among them first
_AT_ONCE = 4


def _gathers(node: Node) -> bool:
    """Whether a reduction takes several registers at once in less time.

    Extremes of what is at hand then wait less for each other, and one instruction finds
    NaN in two registers: 0.6 of the time. Numbers that are not negative lose no digits
    if four of them are added in float32 and these sums in float64: 0.75 of a softmax's.
    """
    if node.op in ("max", "min"):
        return node.args[0].op in ("input", "convert")
    return _is_safe(node)


def _is_safe(node: Node) -> bool:
    """Whether it is a sum of float32 that are not negative."""
    x = node.args[0]
    is_sum = node.op == "sum" and _kind(x) == "f32"
    return is_sum and (x.op in ("exp", "square") or range_of(x)[0] >= 0)


def _is_over_one(node: Node) -> bool:
    """Whether many numbers are divided by one.

    A product with the inverse may be off by one more ULP, and takes a third of the
    time.
    """
    if node.op != "divide" or node.kind != FULL or node.dtype.kind != "f":
        return False
    return node.args[1].kind in (ROW, SCALAR) and node.args[1].op != "number"


def _joined(ways: list[tuple[Lane, str]]) -> Lane:
    first = ways[0][0]
    each = ", ".join(f"[{x.name}, %{block}]" for x, block in ways)
    return first.code.value(f"phi {first.type} {each}", first.kind, first.width)


class _Scope:
    """Where in a loop values are computed, and what is known of them there."""

    __slots__ = ("chosen", "column", "known", "mask", "taken", "width")

    def __init__(
        self,
        column: Lane,
        width: int,
        mask: Lane | None = None,
        taken: set[int] | None = None,
        chosen: dict[int, Node] | None = None,
    ) -> None:
        self.column, self.width, self.mask = column, width, mask
        self.taken, self.chosen = taken or set(), chosen or {}
        self.known: dict[int, Lane] = {}


class _State:
    """A reduction on its way through a pass: on each lane, what was reduced there.

    Sums of float32 are in float64. Those of float64 have a second part, with what
    rounding takes from the first, unless they are of so few numbers that NumPy adds
    them one by one too: a third of the time. Extremes of floats have the last NaN as a
    second one: an extreme that is NaN if one of both is takes three instructions more,
    each of which waits for the one before (1.7 times the time of a row).
    """

    def __init__(
        self, node: Node, code: Code, width: int, *, few: bool = False
    ) -> None:
        self.node, self.code, self.width = node, code, width
        kind = _kind(node.args[0])
        self.kind = {"f32": "f64"}.get(kind, kind) if node.op == "sum" else kind
        empty = {"max": -inf, "min": inf, "any": 0, "all": 1, "sum": 0}[node.op]
        if self.kind[0] == "i" and node.op in ("max", "min"):
            bits = int(self.kind[1:]) - 1
            empty = -(2**bits) if node.op == "max" else 2**bits - 1
        self.extreme = node.op in ("max", "min") and kind[0] == "f"
        long = node.op == "sum" and kind == "f64" and not few
        parts = 2 if self.extreme or long else 1
        self.empty = [code.number(e, self.kind, width) for e in (empty, 0)[:parts]]
        self.current = self._before = self.empty
        self._lines: list[int] = []

    def phis(self, begin: str, loop: str) -> None:
        """Start the loop; the value that goes round is written by `close`."""
        self._before, self._lines, names = self.current, [], []
        for e in self._before:
            name = "%" + self.code.name("s")
            self._lines.append(len(self.code.lines))
            self.code.write(
                f"  {name} = phi {e.type} [{e.name}, %{begin}], [@, %{loop}]"
            )
            names.append(Lane(self.code, name, self.kind, self.width))
        self.current = names

    def close(self) -> None:
        for line, now in zip(self._lines, self.current, strict=True):
            self.code.lines[line] = self.code.lines[line].replace("@", now.name)

    def after(self, begin: str, loop: str) -> None:
        self.current = [
            _joined([(e, begin), (now, loop)])
            for e, now in zip(self._before, self.current, strict=True)
        ]

    def merge(self, old: list[Lane], after: str, tail: str) -> None:
        self.current = [
            _joined([(a, after), (b, tail)])
            for a, b in zip(old, self.current, strict=True)
        ]

    def add(self, xs: list[Lane], mask: Lane | None) -> None:
        """Take up what some registers have; of several, first of each other."""
        if mask is not None:
            xs = [where(mask, x.converted(self.kind), self.empty[0]) for x in xs]
        seen = [self._with_nan(xs)] if self.extreme else []
        if len(xs) > 1 and _gathers(self.node):
            xs = [_in_pairs(lambda a, b: self._combined([a], [b])[0], xs)]
        for x in xs:
            self.current = self._combined(self.current, [x.converted(self.kind)])
        self.current = [*self.current, *seen]

    def _with_nan(self, xs: list[Lane]) -> Lane:
        """The second part, which is NaN on a lane where one was."""
        pairs = zip(xs[::2], xs[1::2] or xs, strict=True)
        invalid = _in_pairs(operator.or_, [a.is_unordered(b) for a, b in pairs])
        return where(invalid, nan, self.current[1])

    def _combined(self, a: list[Lane], b: list[Lane]) -> list[Lane]:
        op = self.node.op
        if self.extreme:
            x = b[0]
            return [where(x > a[0] if op == "max" else x < a[0], x, a[0])]
        if op != "sum":
            fn = {"max": maximum, "min": minimum, "any": OPS["or"], "all": OPS["and"]}
            return [fn[op](a[0], b[0])]
        s = a[0] + b[0]
        if len(a) == 1:
            return [s]
        t = s - a[0]
        lost = (a[0] - (s - t)) + (b[0] - t)
        return [s, a[1] + (lost if len(b) == 1 else lost + b[1])]

    def total(self) -> Lane:
        """All lanes in one, as the node's kind of number."""
        parts, width, invalid = self.current, self.width, None
        if self.extreme:
            parts, invalid = parts[:1], _any(parts[1].is_nan())
        while width > 1:
            width //= 2
            halves = [[_part(x, i * width, width) for x in parts] for i in (0, 1)]
            parts = self._combined(*halves)
        y = parts[0]
        if invalid is not None:
            y = where(invalid, nan, y)
        elif len(parts) == 2:
            sure = _isfinite(parts[1])
            y = where(sure, y + parts[1], y)
        return y.converted(_kind(self.node))


class _Powers(_State):
    """Powers of a number on their way along a row: those of one register at once."""

    def __init__(self, node: Node, x: Lane, width: int) -> None:
        self.node, self.code, self.kind, self.width = node, x.code, x.kind, width
        first, self.step, n = self.code.number(1, x.kind, width), x, 1
        while n < width:
            each = ", ".join(f"i1 {bool(i & n)}".lower() for i in range(width))
            odd = Lane(self.code, f"<{each}>", "i1", width)
            first = first * where(odd, self.step.spread(width), 1)
            self.step, n = self.step * self.step, 2 * n
        self.current = self._before = [first]
        self._lines = []

    def taken(self) -> Lane:
        """The powers at hand; the next ones are those times another power."""
        (now,) = self.current
        self.current = [now * self.step.spread(self.width)]
        return now


def _in_pairs(fn: Callable[[Lane, Lane], Lane], xs: list[Lane]) -> Lane:
    """All of them in one, by a tree: each step waits for few others."""
    while len(xs) > 1:
        pairs = zip(xs[::2], xs[1::2], strict=False)
        xs = [fn(a, b) for a, b in pairs] + xs[len(xs) // 2 * 2 :]
    return xs[0]


def _any(x: Lane) -> Lane:
    """Whether a condition holds on any lane."""
    if x.width == 1:
        return x
    bits = x.code.value(f"bitcast {x.type} {x.name} to i{x.width}", "i1", 1)
    return x.code.value(f"icmp ne i{x.width} {bits.name}, 0", "i1", 1)


def _part(x: Lane, start: int, width: int) -> Lane:
    if width == 1:
        text = f"extractelement {x.type} {x.name}, i64 {start}"
        return x.code.value(text, x.kind, 1)
    places = ", ".join(f"i32 {start + i}" for i in range(width))
    text = (
        f"shufflevector {x.type} {x.name}, {x.type} poison, <{width} x i32> <{places}>"
    )
    return x.code.value(text, x.kind, width)


def _to_bfloat(x: Lane) -> Lane:
    """The upper half of a float32, rounded to even."""
    bits = x.as_bits()
    odd = bits.unsigned_shift(16) & 1
    up = (bits + 0x7FFF + odd).unsigned_shift(16)
    return where(x.is_nan(), 0x7FC0, up).converted("i16")


def _size(kind: str) -> int:
    return max(int(kind[1:]) // 8, 1)
