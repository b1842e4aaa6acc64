"""A loop nest as a Triton kernel, for GPUs: its source, and how it is started.

A program of the grid takes a tile of rows. Columns that fit into its registers are read
once, and all passes go over them there; longer rows go by in chunks, once for each
pass. A nest that reduces nothing is cut along its columns too.

A value of the nest is a tile: of rows and columns, of one column ("row"), of one row
("column") or of one number, so that Triton's broadcasting is the nest's.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from ..fusion import COLUMN, FULL, ROW, SCALAR, Nest, Node, Pass

# The longest row that is read once: its numbers fill half of the registers that a
# processor has, at 32 for each thread.
LONGEST = 32768
_CHUNK = 4096  # of longer rows
_TILE = 2048  # numbers of a tile without reductions

_TYPES = {
    "bool": "tl.int1", "int8": "tl.int8", "int16": "tl.int16", "int32": "tl.int32",
    "int64": "tl.int64", "uint8": "tl.uint8", "float16": "tl.float16",
    "bfloat16": "tl.bfloat16", "float32": "tl.float32", "float64": "tl.float64",
}  # fmt: skip
_HALF = ("float16", "bfloat16")

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "and": "&", "or": "|", "xor": "^", "right_shift": ">>",
}  # fmt: skip
_CALLS = {
    "absolute": "tl.abs({0})", "maximum": "greatest({0}, {1})",
    "minimum": "least({0}, {1})", "negative": "-{0}", "positive": "{0}",
    "spread": "{0}", "square": "{0} * {0}", "reciprocal": "1.0 / {0}",
    "divide": "({0} / {1})", "where": "tl.where({0}, {1}, {2})",
    "not": "({0} == 0)", "isnan": "({0} != {0})",
    "isfinite": '(tl.abs({0}) < float("inf"))',
    "isinf": '(tl.abs({0}) == float("inf"))', "sqrt": "root({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})", "trunc": "libdevice.trunc({0})",
    "rint": "libdevice.rint({0})", "copysign": "libdevice.copysign({0}, {1})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0}))",
    **{
        name: f"libdevice.{name}({{0}})"
        for name in (
            "exp", "expm1", "log", "log1p", "tanh", "erf", "erfc", "sin", "cos",
            "exp2", "log2", "log10",
        )
    },
    "power": "libdevice.pow({0}, {1})",
}  # fmt: skip
# What loses digits that a result of 16 bits has not
_FAST = {"exp": "quick_exp({0})", "log": "tl.log({0})"}
_COMPARED = ("equal", "not_equal")
_EMPTY = {
    "sum": "0",
    "max": 'float("-inf")',
    "min": 'float("inf")',
    "any": "0",
    "all": "1",
}

_HEAD = '''\
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def least(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def root(x):
    return tl.sqrt_rn(x) if x.dtype == tl.float32 else tl.sqrt(x)


@triton.jit
def over(a, b):
    """a / b, rounded: Triton's own is off by 2 ULP in float32, its div_rn slow."""
    r = 1.0 / b
    q = a * r
    rest = tl.fma(-q, b, a)
    return tl.where(rest == rest, tl.fma(rest, r, q), a / b)


@triton.jit
def over_row(a, b):
    """a / b for one b of many a: a product, 1 ULP worse, with 1 / b a normal number."""
    size = tl.abs(b)
    scale = tl.where(size < 2.0**-60, 2.0**64, tl.where(size > 2.0**60, 2.0**-64, 1.0))
    return a * (1.0 / (b * scale)) * scale


@triton.jit
def once(condition):
    """1 if it holds in some row, for a loop: LLVM turns branches into selects."""
    return tl.max(tl.max(condition.to(tl.int32), 1), 0)


@triton.jit
def quick_exp(x):
    """exp to the digits of 16 bits; results below the normal numbers are 0."""
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * 1.4426950408889634],
        dtype=tl.float32, is_pure=True, pack=1,
    )


@triton.jit
def reread(x):
    """16 bits as float32, computed each time, so that no float32 is kept."""
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
            "=r,=r,r", [x], dtype=tl.float32, is_pure=False, pack=2,
        )
    return tl.inline_asm_elementwise(
        "{.reg .b16 a, b; mov.b32 {a, b}, $2; cvt.f32.f16 $0, a; cvt.f32.f16 $1, b;}",
        "=r,=r,r", [x], dtype=tl.float32, is_pure=False, pack=2,
    )
'''


@dataclass(frozen=True)
class Launch:
    """How a kernel is started: the tile, and how many warps run it."""

    rows: int  # of a tile
    block: int  # columns of a tile, or of a chunk
    warps: int
    registers: int | None
    chunked: bool
    exact: bool  # no column of a tile is left over
    half: bool  # all that is read and written has 16 bits
    split: bool  # columns of a row are given to several programs

    def programs(self, nest: Nest) -> int:
        """How many tiles there are."""
        across = -(-nest.columns // self.block) if self.split else 1
        return -(-nest.rows // self.rows) * across


def launch_of(nest: Nest, storage: Sequence[str], *, in_place: bool = False) -> Launch:
    """By a rule, without trials: what was fastest on an H200 of what was tried.

    A product in place mostly finds that its factor is 1. Its programs take whole rows,
    or large tiles of what has no rows, so that few have to look.
    """
    columns = nest.columns
    full = [kind == FULL for kind, _ in nest.inputs] + [
        y.kind == FULL for y in nest.outputs
    ]
    big = [s for s, is_full in zip(storage, full, strict=True) if is_full]
    half = bool(big) and all(s in _HALF for s in big)
    whole = 1 << max(columns - 1, 0).bit_length()
    if not reduces(nest):
        split = not in_place or nest.rows == 1
        tile, warps = (4 * _TILE, 8) if in_place and split else (_TILE, 4)
        block = min(whole, tile)
        chunked = not split and whole > block
        rows, exact = max(tile // block, 1), columns % block == 0
        return Launch(rows, block, warps, None, chunked, exact, half, split)
    chunked = whole > LONGEST
    block = _CHUNK if chunked else whole
    rows = max(1024 // block, 1)
    size = rows * block
    warps = 16 if chunked else min(max(size // 512, 4), 16 if half else 32)
    registers = 64 if size >= LONGEST and not half else None
    exact = columns % block == 0
    return Launch(rows, block, warps, registers, chunked, exact, half, False)


def reduces(nest: Nest) -> bool:
    return any(each.reductions for each in nest.passes) or any(
        node.op == "gather" for node in nest.nodes
    )


def source(
    nest: Nest,
    storage: Sequence[str],
    launch: Launch,
    *,
    name: str = "kernel",
    in_place: Sequence[tuple[int, int]] = (),
) -> str:
    """The module that defines the kernel; `storage` are the dtypes in memory.

    The kernel takes inputs and outputs, then for each input its strides along rows and
    columns, then how many rows and columns there are. Outputs are contiguous. Pairs of
    an input and an output that are products `in_place` have the same address where the
    kernel is given `IN_PLACE`: then nothing is done in rows whose factors are 1.
    """
    return f"{_HEAD}\n\n{_Emitter(nest, storage, launch, in_place).text(name)}"


class _Emitter:
    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        launch: Launch,
        in_place: Sequence[tuple[int, int]],
    ) -> None:
        self.nest = nest
        self.in_place = in_place
        self.storage = storage
        self.launch = launch
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.one: dict[int, str] = {}  # names of numbers and of rows' values
        self.full: dict[int, str] = {}  # names of tiles
        self.raw: dict[int, str] = {}  # names of tiles of inputs as they are stored
        self.mask = ""
        self.column = ""
        self.never: set[int] = set()  # conditions that don't hold here
        # Whether each pass computes its tiles anew
        self.again = launch.chunked or (launch.half and len(nest.passes) > 1)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self.write(head)
        self.indent += 1
        before = self.one, self.full, self.raw
        self.one, self.full, self.raw = dict(self.one), {**self.full}, {**self.raw}
        yield  # what is computed inside is not known outside
        self.one, self.full, self.raw = before
        self.indent -= 1

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def let(self, text: str, prefix: str = "v") -> str:
        self.count += 1
        self.write(f"{prefix}{self.count} = {text}")
        return f"{prefix}{self.count}"

    def text(self, name: str) -> str:
        nest, launch = self.nest, self.launch
        inputs, outputs = range(len(nest.inputs)), range(len(nest.outputs))
        given = [*[f"in{i}" for i in inputs], *[f"out{i}" for i in outputs]]
        strides = [f"{axis}{i}" for i in inputs for axis in ("down", "along")]
        given += [*strides, "n_rows", "n_columns"]
        tile = (
            f"ROWS: tl.constexpr = {launch.rows}, BLOCK: tl.constexpr = {launch.block}"
        )
        if self.in_place:
            tile += ", IN_PLACE: tl.constexpr = False"
        self.write("tile = tl.program_id(0).to(tl.int64)")
        if launch.split:
            self.write("across = tl.cdiv(n_columns, BLOCK)")
            self.write("first = (tile % across) * BLOCK")
            self.write("tile = tile // across")
        self.write("row = tile * ROWS + tl.arange(0, ROWS)")
        self.write("row = row[:, None]")
        self.write("there = row < n_rows")
        for node in nest.nodes:
            if node.kind == SCALAR:
                self._compute_one(node)
        if not launch.chunked:
            self._columns("first + " if launch.split else "")
        self._row_values(0)
        if self.in_place:
            self._unless_ones()
        rare = [n.args[0] for n in nest.nodes if _is_rare(n)]
        split = max([c.level for c in rare], default=0)
        for i in range(split):
            self._pass(i)
        if split == 0:
            self._rest(0)
        else:
            needed = " | ".join(dict.fromkeys(self._one(c) for c in rare))
            rarely = self.let(f"once({needed})", "rarely")
            with self._block(f"for _ in range({rarely}):"):
                self.full, self.raw = {}, {}  # read again: no registers for this
                self._rest(split)
            self.never = {id(c) for c in rare}
            with self._block(f"for _ in range(1 - {rarely}):"):
                self._rest(split)
        body = "\n".join(self.lines)
        return f"@triton.jit\ndef {name}({', '.join(given)}, {tile}):\n{body}\n"

    def _unless_ones(self) -> None:
        """All that follows is done if a factor of what is there already is not 1."""
        factors = []
        for i, k in self.in_place:
            x, y = self.nest.outputs[k].args
            factors.append(y if (x.op, x.data) == ("input", i) else x)
        others = [f"({self._one(f)} != 1)" for f in dict.fromkeys(factors)]
        wide = f"tl.broadcast_to({' | '.join(others)}, row.shape)"
        self.write("todo = 1")
        self.write("if IN_PLACE:")
        self.write(f"    todo = once({wide})")
        self.write("for _ in range(todo):")
        self.indent += 1

    def _rest(self, first: int) -> None:
        """The passes from one on."""
        for i in range(first, len(self.nest.passes)):
            self._pass(i)

    def _columns(self, start: str) -> None:
        """The columns of a tile, and which of them there are."""
        self.column = self.let(f"({start}tl.arange(0, BLOCK))[None, :]", "column")
        if self.launch.exact and self.launch.rows == 1:
            self.mask = ""
            return
        inside = (
            "there" if self.launch.exact else f"there & ({self.column} < n_columns)"
        )
        self.mask = self.let(inside, "mask")

    # Values

    def _one(self, node: Node) -> str:
        if id(node) not in self.one:
            self._compute_one(node)
        return self.one[id(node)]

    def _row_values(self, level: int) -> None:
        """What is known of rows after some passes, and is written as soon as it is.

        If a value is compared with a gathered one first, Triton 3.6 compiles neither
        ("operand #1 does not dominate this use").
        """
        nodes = [n for n in self.nest.nodes if n.kind in (ROW, SCALAR)]
        for node in (n for n in nodes if n.level == level):
            text = self._one(node)
            for i, y in enumerate(self.nest.outputs):
                if y is node:
                    wide = f"tl.broadcast_to({text}, row.shape){self._stored(i)}"
                    self.write(f"tl.store(out{i} + row, {wide}, mask=there)")

    def _compute_one(self, node: Node) -> None:
        if node.op == "number":
            self.one[id(node)] = _literal(node)
            return
        if node.op == "input":
            place = f"in{node.data}"
            if node.kind == ROW:
                place += f" + row * down{node.data}"
                text = f"tl.load({place}, mask=there, other=0)"
            else:
                text = f"tl.load({place})"
            self.one[id(node)] = self.let(
                _read(text, node, self.storage[int(node.data)])
            )
            return
        if node.op == "gather":
            self.one[id(node)] = self._gathered(node)
            return
        self.one[id(node)] = self.let(self._formula(node, self._one))

    def _gathered(self, node: Node) -> str:
        """A full value at one column: NaN beyond the row, where nobody can raise."""
        at = self._one(node.args[1])
        at = self.let(f"tl.where({at} < 0, {at} + n_columns, {at})", "at")
        mask = self.let(f"there & ({at} >= 0) & ({at} < n_columns)", "mask")
        y = self._tile(node.args[0], at, mask, {})
        if node.dtype.kind != "f":
            return y
        return self.let(f'tl.where({mask}, {y}, float("nan"))')

    def _tile(self, node: Node, column: str, mask: str, known: dict[int, str]) -> str:
        """A value at columns."""
        if node.kind in (SCALAR, ROW):
            return self._one(node)
        if id(node) not in known:
            if node.op == "where" and id(node.args[0]) in self.never:
                return self._tile(node.args[2], column, mask, known)
            text = self._tile_text(node, column, mask, known)
            known[id(node)] = self.let(text, "t")
        return known[id(node)]

    def _tile_text(
        self, node: Node, column: str, mask: str, known: dict[int, str]
    ) -> str:
        if node.op == "index" and node.kind == FULL:
            dtype = _TYPES[node.dtype.name]
            return f"(row * n_columns + {column}).to({dtype})"
        if node.op == "index":
            return column
        if node.op != "input":
            return self._formula(node, lambda a: self._tile(a, column, mask, known))
        i = int(node.data)
        stored = self.storage[i]
        raw = self.raw.get(i) if known is self.full else None
        if raw is None:
            place = f"in{i} + {column} * along{i}"
            if node.kind == FULL:
                place += f" + row * down{i}"
            guard = f", mask={mask}, other=0" if mask else ""
            raw = f"tl.load({place}{guard})"
            keep = known is self.full and not self.launch.chunked
            if keep and self.again and stored in _HALF:
                raw = self.raw[i] = self.let(raw, "raw")
        if raw in self.raw.values() and node.dtype.name == "float32":
            return f"reread({raw})"
        return _read(raw, node, stored)

    def _formula(self, node: Node, name: Any) -> str:
        args = [name(a) for a in node.args]
        if node.op == "convert":
            return _converted(args[0], node.args[0], node)
        if any(a.op == "index" for a in node.args) and node.op in _COMPARED:
            args = [f"{a}.to(tl.int32)" for a in args]  # a row is shorter than 2**31
        if self.launch.half and node.op in _FAST:
            return _FAST[node.op].format(*args)
        if node.op == "divide" and node.dtype == np.float32:
            if node.kind == FULL and node.args[1].kind in (ROW, SCALAR):
                return f"over_row({args[0]}, {args[1]})"
            if not self.launch.half:
                return f"over({args[0]}, {args[1]})"
        if node.op in _INFIX:
            return f"{args[0]} {_INFIX[node.op]} {args[1]}"
        return _CALLS[node.op].format(*args)

    # One pass

    def _pass(self, i: int) -> None:
        each = self.nest.passes[i]
        self._go_over(each)
        self._row_values(i + 1)

    def _go_over(self, each: Pass) -> None:
        if self.again:
            self.full = {}
        reductions, stores = each.reductions, each.stores
        if not self.launch.chunked:
            for node in reductions:
                self.one[id(node)] = self.let(_reduced(node, self._operand(node)))
            self._store(stores)
            return
        totals = [self.let(_start(node), "total") for node in reductions]
        self.write("for first in range(0, n_columns, BLOCK):")
        self.indent += 1
        self.full = {}
        self._columns("first + ")
        for node, total in zip(reductions, totals, strict=True):
            self.write(f"{total} = {_combined(node, total, self._operand(node))}")
        self._store(stores)
        self.indent -= 1
        self.full = {}
        for node, total in zip(reductions, totals, strict=True):
            self.one[id(node)] = self.let(_reduced(node, total))

    def _operand(self, node: Node) -> str:
        """What is reduced, without what lies beyond the row."""
        x = self._tile(node.args[0], self.column, self.mask, self.full)
        x = f"tl.broadcast_to({x}, (ROWS, BLOCK)).to({_TYPES[_accumulated(node)]})"
        return f"tl.where({self.mask}, {x}, {_empty(node)})" if self.mask else x

    def _store(self, stores: Sequence[tuple[int, Node]]) -> None:
        for i, node in stores:
            x = self._tile(node, self.column, self.mask, self.full)
            guard = f", mask={self.mask}" if self.mask else ""
            place = f"out{i} + row * n_columns + {self.column}"
            wide = f"tl.broadcast_to({x}, (ROWS, BLOCK)){self._stored(i)}"
            self.write(f"tl.store({place}, {wide}{guard})")

    def _stored(self, i: int) -> str:
        name = self.storage[len(self.nest.inputs) + i]
        return f".to({_TYPES['int8' if name == 'bool' else name]})"


def _is_rare(node: Node) -> bool:
    """Whether it is a choice by rows between two tiles, of which one is rare."""
    if node.op != "where" or node.kind != FULL or node.args[0].kind != ROW:
        return False
    _, then, otherwise = node.args
    return then.kind == otherwise.kind == FULL and then.op != "input"


def _read(raw: str, node: Node, stored: str) -> str:
    if stored == "bool":
        return f"({raw} != 0)"
    if stored == node.dtype.name:
        return raw
    return f"{raw}.to({_TYPES[node.dtype.name]})"


def _literal(node: Node) -> str:
    x = node.data
    if node.dtype == bool:
        return str(bool(x))
    if node.dtype.kind in "iu":
        return str(int(x))
    x = float(x)
    if isfinite(x):
        return repr(x)
    return f'float("{x}")'


def _converted(x: str, node: Node, to: Node) -> str:
    if to.dtype == bool:
        return f"({x} != 0)"
    return f"{x}.to({_TYPES[to.dtype.name]})" if node.op != "number" else x


def _accumulated(node: Node) -> str:
    """The dtype that a reduction goes on in."""
    name = node.args[0].dtype.name
    if node.op in ("any", "all") or name == "bool":
        return "int32"
    if node.op == "sum":
        return {"float16": "float32", "bfloat16": "float32"}.get(name, name)
    return name


def _start(node: Node) -> str:
    return f"tl.full((ROWS, BLOCK), {_empty(node)}, {_TYPES[_accumulated(node)]})"


def _empty(node: Node) -> str:
    name = _accumulated(node)
    if node.op in ("max", "min") and name.startswith(("int", "uint")):
        info = np.iinfo(name)
        return str(info.min if node.op == "max" else info.max)
    return _EMPTY[node.op]


def _reduced(node: Node, x: str) -> str:
    name = _accumulated(node)
    floats = name.startswith("float")
    text = {
        "sum": f"tl.sum({x}, 1, keep_dims=True)",
        "any": f"tl.max({x}, 1, keep_dims=True) != 0",
        "all": f"tl.min({x}, 1, keep_dims=True) != 0",
        "max": f"tl.reduce({x}, 1, greatest, keep_dims=True)"
        if floats
        else f"tl.max({x}, 1, keep_dims=True)",
        "min": f"tl.reduce({x}, 1, least, keep_dims=True)"
        if floats
        else f"tl.min({x}, 1, keep_dims=True)",
    }[node.op]
    kept = node.op in ("any", "all") or name == node.dtype.name
    return text if kept else f"({text}).to({_TYPES[node.dtype.name]})"


def _combined(node: Node, a: str, b: str) -> str:
    op = {"any": "max", "all": "min"}.get(node.op, node.op)
    if op == "sum":
        return f"{a} + {b}"
    return f"{'greatest' if op == 'max' else 'least'}({a}, {b})"


class GpuKernel:
    """A loop nest that runs on a GPU, compiled by Triton when it is first started.

    What is read and written are Triton's pointers: arrays with an address and a dtype.
    """

    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        in_place: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.nest, self.in_place = nest, in_place
        self.launch = launch_of(nest, storage, in_place=bool(in_place))
        self.source = source(nest, storage, self.launch, in_place=in_place)
        self.programs = self.launch.programs(nest)
        self.options: dict[str, Any] = {"num_warps": self.launch.warps}
        if self.launch.registers:
            self.options["maxnreg"] = self.launch.registers
        # Memory that it takes behind the outputs: shapes, dtypes, and whether zeroed
        self.scratch: list[tuple[tuple[int, ...], str, bool]] = []

    @cached_property
    def function(self) -> Any:
        """The kernel; Triton reads its source as that of a file."""
        name = f"<kernel {self.nest.name} {hash(self.source):x}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        names: dict[str, Any] = {"__name__": "gradsmith_kernels"}
        exec(compile(self.source, name, "exec"), names)
        return names["kernel"]

    def strides(self, kind: str) -> tuple[int, int]:
        """Those of a contiguous input: along rows, and along columns."""
        return {
            SCALAR: (0, 0), ROW: (1, 0), COLUMN: (0, 1), FULL: (self.nest.columns, 1),
        }[kind]  # fmt: skip

    def numbers(self, *, in_place: bool = False) -> dict[str, int]:
        """All that it takes beside contiguous arrays, by name.

        `in_place` says that what may be a product in place is one.
        """
        found = {
            "n_rows": self.nest.rows, "n_columns": self.nest.columns,
            "ROWS": self.launch.rows, "BLOCK": self.launch.block,
        }  # fmt: skip
        for i, (kind, _) in enumerate(self.nest.inputs):
            found[f"down{i}"], found[f"along{i}"] = self.strides(kind)
        return found | ({"IN_PLACE": in_place} if self.in_place else {})

    def start(self, arrays: Sequence[Any], strides: Sequence[int]) -> None:
        """Run: inputs, constants and outputs, and the strides of what is read."""
        nest, options = self.nest, self.options
        if self.in_place:
            n = len(nest.inputs)
            same = all(arrays[i] is arrays[n + k] for i, k in self.in_place)
            options = {**options, "IN_PLACE": same}
        self.function[(self.programs,)](
            *arrays, *strides, nest.rows, nest.columns, **options
        )
