"""A loop nest as a Triton kernel, for GPUs: its source, and starting it.

A program of the grid takes a tile of rows. Columns that fit into its registers are read
once, and all passes go over them there; longer rows go by in chunks, once for each
pass, in turns from the first to the last and back: what was read last is still in the
cache. A nest that reduces nothing is cut along its columns too. Where a row fills a
processor, nothing else runs while a program waits for memory: in 16 bits, where there
is room, the program goes from row to row and reads the next one before it computes.
Rows that are longer are shared by several programs, which exchange what they sum up
(triton_shared.py).

A value of the nest is a tile: of rows and columns, of one column ("row"), of one row
("column") or of one number, so that Triton's broadcasting is the nest's.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import cached_property
from math import frexp, isfinite
from typing import Any

import numpy as np

from ..fusion import (
    COLUMN,
    FULL,
    ROW,
    SCALAR,
    Nest,
    Node,
    Pass,
    ordered,
    range_of,
)
from .triton_functions import CALLS, HEAD, INFIX, QUICK
from .triton_launch import HALF, Launch, arrays_of, launch_of
from .triton_lines import Lines
from .triton_shared import exchanged, has_rest, paired, words_of
from .triton_totals import (
    GROUPS,
    SUMS_OF_EXP,
    TOGETHER,
    TYPES,
    Group,
    accumulated,
    combined,
    empty_of,
    groups,
    known_by,
    off_top,
    reduced,
    totals_of,
)

_COMPARED = ("equal", "not_equal")


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
    return f"{HEAD}\n\n{_Emitter(nest, storage, launch, in_place).text(name)}"


class _Emitter(Lines):
    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        launch: Launch,
        in_place: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__()
        self.nest = nest
        self.in_place = in_place
        self.storage = storage
        self.launch = launch
        self.one: dict[int, str] = {}  # names of numbers and of rows' values
        self.full: dict[int, str] = {}  # names of tiles
        self.raw: dict[int, str] = {}  # names of tiles of inputs as they are stored
        self.mask = ""
        self.column = ""
        self.policy = ""  # whether the cache should hold what is read
        self.ranges: dict[int, tuple[float, float]] = {}  # of values
        self.again = launch.chunked or launch.again
        self.at_once = launch.at_once
        # Of what is gathered: where, whether it is there, and what is read there
        self.fetched: dict[int, tuple[str, str, dict[int, str]]] = {}
        # What is read as minus infinity beyond the row; as 0 if a row does not count
        self.ended: set[Node] = set()
        self.zeros: list[Node] = []
        # Where a row is shared: how many words were written, and of each x of a sum of
        # exponentials those of the tile, and what they are to be multiplied by
        self.words = 0
        self.kept: dict[int, tuple[str, str]] = {}

    def text(self, name: str) -> str:
        nest, launch = self.nest, self.launch
        inputs, outputs = range(len(nest.inputs)), range(len(nest.outputs))
        given = [*[f"in{i}" for i in inputs], *[f"out{i}" for i in outputs]]
        given += ["words"] if launch.shared else []
        strides = [f"{axis}{i}" for i in inputs for axis in ("down", "along")]
        given += [*strides, "n_rows", "n_columns"]
        tile = (
            f"ROWS: tl.constexpr = {launch.rows}, BLOCK: tl.constexpr = {launch.block}"
        )
        if self.in_place:
            tile += ", IN_PLACE: tl.constexpr = False"
        read_next = self._begin_ahead() if launch.ahead else self._begin()
        self._row_values(0)
        for node in nest.nodes:
            if node.op == "gather" and _is_known_early(node):
                self._fetch(node)
        if read_next:
            self.write(read_next)
        if self.in_place:
            self._unless_ones()
        # What a row has beside its columns is written behind these if that is possible:
        # they need not wait for some hundred instructions then.
        last = len(nest.passes) - 1
        behind = last > 0 and not launch.chunked
        for i, each in enumerate(nest.passes):
            if i > 0 and not (behind and i == last):
                self._row_values(i)
            self._go_over(each, backward=i % 2 == 1)
        levels = range(last if behind else last + 1, last + 2)
        if launch.shared and any(
            y.level in levels for y in nest.outputs if y.kind != FULL
        ):
            self.write("if part == 0:")
            self.indent += 1
        for level in levels:
            self._row_values(level)
        body = "\n".join(self.lines)
        return f"@triton.jit\ndef {name}({', '.join(given)}, {tile}):\n{body}\n"

    def _begin(self) -> None:
        """Find the tile of a program, and what is the same in all of it."""
        if self.launch.shared:
            n = self.launch.parts(self.nest)
            self.write(f"part = tl.program_id(0) % {n}")
            self.write("first = part * BLOCK")
            self.write(f"tile = (tl.program_id(0) // {n}).to(tl.int64)")
            self.write("words = words.to(tl.pointer_type(tl.int64), bitcast=True)")
        else:
            self.write("tile = tl.program_id(0).to(tl.int64)")
        if self.launch.split and not self.launch.shared:
            self.write("across = tl.cdiv(n_columns, BLOCK)")
            self.write("first = (tile % across) * BLOCK")
            self.write("tile = tile // across")
        self.write("row = tile * ROWS + tl.arange(0, ROWS)")
        self.write("row = row[:, None]")
        self.write("there = row < n_rows")
        self._scalars()
        if self.launch.shared and not self.launch.exact:
            of_exp = {r.args[0] for r in self.nest.nodes if r.op in SUMS_OF_EXP}
            self.ended = {x for x in of_exp if _input_of(x)}
        if not self.launch.chunked:
            self._columns("first + " if self.launch.split else "")

    def _scalars(self) -> None:
        for node in self.nest.nodes:
            if node.kind == SCALAR:
                self._compute_one(node)

    def _begin_ahead(self) -> str:
        """Go over rows; returns the line that reads the next one.

        Whether the next one counts must be known by then: its flags are read while the
        one before is computed.
        """
        (node,) = arrays_of(self.nest)
        users = [n for n in self.nest.nodes if node in n.args]
        flagged = {n.args[0] for n in users if _is_in_rows(n)}
        # One that is found by a pass comes too late
        is_early = all(n.kind in (ROW, SCALAR) for n in ordered([*flagged]))
        is_one = len(flagged) == 1 and all(_is_in_rows(n) for n in users)
        self.at_once = not (is_one and is_early)
        counts = [] if self.at_once else [*flagged]
        flags = [n for n in ordered(counts) if n.op == "input" and n.kind == ROW]
        names = {n: (f"flag{n.data}", f"next_flag{n.data}") for n in flags}
        self.write("step = tl.num_programs(0)")
        self.write("row = (tl.program_id(0).to(tl.int64) + tl.arange(0, 1))[:, None]")
        self._scalars()
        self.column = self.let("tl.arange(0, BLOCK)[None, :]", "column")
        if not self.launch.exact:
            self.mask = self.let(f"{self.column} < n_columns", "mask")
            tiles = [node, *users] if counts else [node]
            of_exp = {r.args[0] for r in self.nest.nodes if r.op in SUMS_OF_EXP}
            self.ended = of_exp.intersection(tiles)
            self.zeros = counts
        scalars = dict(self.one)

        def tile_of(row: str, i: int) -> str:
            """A row of the array, if it counts by the flags so named."""
            self.one = scalars | {id(n): names[n][i] for n in flags}
            wanted = " & ".join([f"({row} < n_rows)", *map(self._one, counts)])
            self.one = dict(scalars)
            mask, other = wanted, "0"
            if self.mask:
                mask = f"{wanted} & {self.mask}"
            if self.ended and not counts:
                other = 'float("-inf")'
            elif self.ended:
                other = self.let(f'tl.where({wanted}, float("-inf"), 0.0)', "other")
                other += f".to({TYPES[self.storage[int(node.data)]]})"
            place = f"in{node.data} + {self.column} * along{node.data}"
            place += f" + {row} * down{node.data}"
            return f"tl.load({place}, mask={mask}, other={other})"

        for n, (flag, _) in names.items():
            self.write(f"{flag} = {self._read_of_rows(n, 'row')}")
        self.write(f"tile = {tile_of('row', 0)}")
        for n, (_, flag) in names.items():
            self.write(f"{flag} = {self._read_of_rows(n, '(row + step)')}")
        self.write("for here in tl.range(tl.program_id(0), n_rows, step):")
        self.indent += 1
        self.write("row = (here.to(tl.int64) + tl.arange(0, 1))[:, None]")
        self.write("there = row < n_rows")
        self.raw[int(node.data)] = self.let("tile", "raw")
        read_next = f"tile = {tile_of('(row + step)', 1)}"
        for n, (flag, next_flag) in names.items():
            self.one[id(n)] = self.let(flag)
            self.write(f"{flag} = {next_flag}")
            self.write(f"{next_flag} = {self._read_of_rows(n, '(row + 2 * step)')}")
        return read_next

    def _unless_ones(self) -> None:
        """All that follows is done if a factor of what is there already is not 1."""
        factors = []
        for i, k in self.in_place:
            x, y = self.nest.outputs[k].args
            factors.append(y if (x.op, x.data) == ("input", i) else x)
        others = [f"({self._one(f)} != 1)" for f in dict.fromkeys(factors)]
        self.write("todo = 1")
        self.write("if IN_PLACE:")
        self.write(f"    there = there & ({' | '.join(others)})")
        self.write("    todo = once(there)")
        self.write("for _ in range(todo):")
        self.indent += 1

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
                    first = " & (part == 0)" if self.launch.shared else ""
                    self.write(f"tl.store(out{i} + row, {wide}, mask=there{first})")

    def _compute_one(self, node: Node) -> None:
        if node.op == "number":
            self.one[id(node)] = _literal(node)
            return
        if node.op == "input":
            if node.kind == ROW:
                text = self._read_of_rows(node, "row")
            else:
                raw = f"tl.load(in{node.data})"
                text = _read(raw, node, self.storage[int(node.data)])
            self.one[id(node)] = self.let(text)
            return
        if node.op == "gather":
            self.one[id(node)] = self._gathered(node)
            return
        self.one[id(node)] = self.let(self._formula(node, self._one))

    def _read_of_rows(self, node: Node, row: str) -> str:
        i = int(node.data)
        there = "there" if row == "row" and not self.launch.ahead else f"{row} < n_rows"
        text = f"tl.load(in{i} + {row} * down{i}, mask={there}, other=0)"
        return _read(text, node, self.storage[i])

    def _fetch(self, node: Node) -> None:
        """Read what is gathered, long before it is needed."""
        at = self._one(node.args[1])
        at = self.let(f"tl.where({at} < 0, {at} + n_columns, {at})", "at")
        mask = self.let(f"there & ({at} >= 0) & ({at} < n_columns)", "mask")
        known: dict[int, str] = {}
        for each in _read_in(node.args[0]):
            self._tile(each, at, mask, known)
        self.fetched[id(node)] = at, mask, known

    def _gathered(self, node: Node) -> str:
        """A full value at one column: NaN beyond the row, where nobody can raise."""
        if id(node) not in self.fetched:
            self._fetch(node)
        at, mask, known = self.fetched[id(node)]
        y = self._tile(node.args[0], at, mask, known)
        if node.dtype.kind != "f":
            return y
        return self.let(f'tl.where({mask}, {y}, float("nan"))')

    def _tile(self, node: Node, column: str, mask: str, known: dict[int, str]) -> str:
        """A value at columns."""
        if node.kind in (SCALAR, ROW):
            return self._one(node)
        if id(node) not in known:
            text = self._tile_text(node, column, mask, known)
            known[id(node)] = self.let(text, "t")
        return known[id(node)]

    def _tile_text(
        self, node: Node, column: str, mask: str, known: dict[int, str]
    ) -> str:
        if node.op == "index" and node.kind == FULL:
            dtype = TYPES[node.dtype.name]
            return f"(row * n_columns + {column}).to({dtype})"
        if node.op == "index":
            return column
        rows, counts, is_whole = "", "", known is self.full
        if is_whole and (text := self._of_kept(node)):
            return text
        if _is_in_rows(node) and not (is_whole and self.at_once):
            rows = self._one(node.args[0])  # others are not read
            node = node.args[1]
        elif _is_in_rows(node) and self.launch.shared and self.launch.half:
            counts = self._one(node.args[0])
            node = node.args[1]
        if node.op != "input":
            return self._formula(node, lambda a: self._tile(a, column, mask, known))
        i = int(node.data)
        stored = self.storage[i]
        raw = None
        if is_whole and (self.launch.ahead or not rows):
            raw = self.raw.get(i)
        if raw is None:
            place = f"in{i} + {column} * along{i}"
            if node.kind == FULL:
                place += f" + row * down{i}"
            wanted = " & ".join(each for each in (mask, rows) if each)
            ends = {_input_of(x) for x in self.ended}
            other = 'float("-inf")' if is_whole and node in ends else "0"
            guard = f", mask={wanted}, other={other}" if wanted else ""
            raw = f"tl.load({place}{guard}{self.policy})"
            keep = is_whole and not self.launch.chunked and not rows
            if keep and self.again and stored in (*HALF, "float32"):
                raw = self.raw[i] = self.let(raw, "raw")
        if counts:
            return f"in_rows({raw}, {counts})"
        if self.again and raw in self.raw.values() and node.dtype.name == "float32":
            return f"reread({raw})"
        return _read(raw, node, stored)

    def _of_kept(self, node: Node) -> str:
        """exp(x - top), or that times or over a row's value, if the tile's was kept."""
        x = off_top(node)
        if x is not None and id(x) in self.kept:
            return " * ".join(self.kept[id(x)])
        if node.op not in ("multiply", "divide"):
            return ""
        a, b = node.args
        if node.op == "multiply" and a.kind != FULL:
            a, b = b, a
        x = off_top(a)
        if x is None or id(x) not in self.kept or b.kind not in (ROW, SCALAR):
            return ""
        if node.op == "divide" and not self._is_middling(b):
            return ""
        (e, factor), y = self.kept[id(x)], self._one(b)
        if node.op == "divide":
            y = f"inverse({y})"
        return f"{e} * {self.let(f'{factor} * {y}')}"

    def _formula(self, node: Node, name: Any) -> str:
        args = [name(a) for a in node.args]
        if node.op == "convert":
            return _converted(args[0], node.args[0], node)
        if any(a.op == "index" for a in node.args) and node.op in _COMPARED:
            args = [f"{a}.to(tl.int32)" for a in args]  # a row is shorter than 2**31
        if node.op == "divide" and node.dtype == np.float32:
            return self._quotient(node, *args)
        if node.op == "log1p" and node.dtype == np.float32:
            least, most = self._range(node.args[0])
            if self.launch.half and least >= 0 and most <= 1.01:
                return f"quick_log1p_to_1({args[0]})"
            if not self.launch.half and least >= 0 and most <= 2.0**60:
                return f"log1p_held({args[0]})"
        if self.launch.half and node.op in QUICK:
            return QUICK[node.op].format(*args)
        if node.op in INFIX:
            return f"{args[0]} {INFIX[node.op]} {args[1]}"
        return CALLS[node.op].format(*args)

    def _quotient(self, node: Node, a: str, b: str) -> str:
        x, y = node.args
        if y.op == "number" and abs(frexp(y.data)[0]) == 0.5 and abs(y.data) < 2.0**126:
            return f"{a} * {1 / float(y.data)!r}"
        if y.op == "number" and self._is_middling(y):
            return f"over_number({a}, {b})"
        if node.kind == FULL and y.kind in (ROW, SCALAR):
            is_safe = self._is_middling(y)
            return f"{a} * inverse({b})" if is_safe else f"over_row({a}, {b})"
        if self.launch.half and x.op == "number" and 2.0**-64 < abs(x.data) < 2.0**64:
            return f"{a} * quick_inverse({b})" if x.data != 1 else f"quick_inverse({b})"
        if self._is_middling(y):
            if self.launch.half:
                return f"{a} * quick_inverse({b})"
            if all(abs(end) <= 2.0**60 for end in self._range(x)):
                return f"near_over({a}, {b})"
        if self.launch.half:
            return f"{a} / {b}"
        return f"over({a}, {b})" if x.op != "number" or x.data != 1 else f"inverse({b})"

    def _is_middling(self, node: Node) -> bool:
        """Whether it is far from 0 and from what is infinite."""
        least, most = self._range(node)
        if most < 0:
            least, most = -most, -least
        return least >= 2.0**-60 and most <= 2.0**60

    def _range(self, node: Node) -> tuple[float, float]:
        return range_of(node, self.ranges)

    # One pass

    def _go_over(self, each: Pass, *, backward: bool) -> None:
        if self.again:
            self.full = {}
        if self.launch.chunked:
            self._in_chunks(each, backward=backward)
            return
        totals = self._reduced_tiles(each)
        if self.launch.shared and totals:
            parts, warps = self.launch.parts(self.nest), self.launch.warps
            totals = exchanged(self, each, totals, self._places(each), parts, warps)
            totals = self._reduced(each, totals)
        self._know(each, totals)
        self._store(each.stores)
        self._correct(each.stores)

    def _in_chunks(self, each: Pass, *, backward: bool) -> None:
        """Totals are tiles, whose columns are reduced behind the loop."""
        totals = [
            self.let(
                f"tl.full((ROWS, {t.columns}), {t.empty}, {TYPES[t.dtype]})", "total"
            )
            for t in totals_of(each)
        ]
        # What is read again is held: a log_softmax of 131072 columns of 16 bits, with
        # its gradient, takes 1.14 of a copy, and 1.26 without
        last = each is self.nest.passes[-1]
        self.policy = f', eviction_policy="evict_{"first" if last else "last"}"'
        self.write("for first in range(0, n_columns, BLOCK):")
        self.indent += 1
        if backward:
            self.write("first = (tl.cdiv(n_columns, BLOCK) - 1) * BLOCK - first")
        self.full = {}
        self._columns("first + ")
        for group in groups(each):
            names = [totals[i] for i in group.places]
            for total, text in zip(names, self._joined(group, names), strict=True):
                self.write(f"{total} = {text}")
        self._store(each.stores)
        self.indent -= 1
        self.full = {}
        self._correct(each.stores)
        self._know(each, self._reduced(each, totals))

    def _joined(self, group: Group, totals: Sequence[str]) -> list[str]:
        """Totals with those of one more tile."""
        if not group.of_exp:
            x = self._operand(group.nodes[0])
            return [combined(group.nodes[0], totals[0], x)]
        x = self._operand_of_exp(group)
        x = self.let(f"tl.reshape({x}, (ROWS, {GROUPS}, {TOGETHER}))", "x")
        top, total, rest = totals
        new = self.let(f"greatest({top}, tl.reduce({x}, 2, greatest))", "new")
        held = self.let(f"finite_top({new})", "top")
        wide = self.let(f"{held}[:, :, None]", "top")
        e = self._exp_off(x, wide)
        less = self.let(f"{total} * {self._exp_off(top, held)}", "less")
        rest = self.let(f"tl.where({top} == {new}, {rest}, {less})", "rest")
        others = f"tl.sum(below_top({e}, {x}, {wide}), 2)"
        return [new, f"{less} + tl.sum({e}, 2)", f"{rest} + {others}"]

    def _reduced_tiles(self, each: Pass) -> list[str]:
        """The totals of a tile."""
        found: list[str] = []
        for group in groups(each):
            if not group.of_exp:
                (node,) = group.nodes
                found.append(self.let(reduced(node, self._operand(node))))
                continue
            x = self._operand_of_exp(group)
            if self.launch.shared:
                found += self._kept_sums(group, x)
                continue
            top = self.let(f"tl.reduce({x}, 1, greatest, keep_dims=True)")
            held = self.let(f"finite_top({top})", "top")
            e = self._exp_off(x, held)
            # To sum up the others only where they are needed takes a sixth longer, in
            # 16 bits: then nothing is moved across the branch
            less = f"below_top({e}, {x}, {held})"
            total, rest = self._both_sums(e, less)
            if self.zeros and group.nodes[0].args[0] in self.ended:
                more = f"tl.where({self._one(self.zeros[0])}, 0, BLOCK - n_columns)"
                total = self.let(f"{total} - {more}", "total")
            found += [top, total, rest]
        return found

    def _kept_sums(self, group: Group, x: str) -> list[str]:
        """The totals of a tile whose exponentials are kept, to be computed once.

        What few rows need is in loops, which are branches: to have it always makes a
        third more instructions. (Where a program has a whole row, that is faster: then
        stores and sums of other elements go on between.)
        """
        top = self.let(self._of_groups(x, "greatest"))
        held = self.let(f"finite_top({top})", "top")
        e = self.let(f"exp_of({x} - {held}, {self.launch.half})", "e")
        self.kept[id(group.nodes[0].args[0])] = e, top
        self.write(f'for _ in range(once({top} == float("inf"))):')
        self.write(f"    again = reread({e})")
        self.write(f"    {e} = tl.where(again == again, 0.0, 1.0)  # NaN is inf - inf")
        total = self.let(self._of_groups(e, "add"), "total")
        node = group.nodes[0].args[0]
        if node in self.ended and _is_in_rows(node):
            beyond = "tl.maximum(first + BLOCK - n_columns, 0)"
            more = f"tl.where({self._one(node.args[0])}, 0, {beyond}).to(tl.float32)"
            total = self.let(f"{total} - {more}", "total")
        if not has_rest(group):
            return [top, total, total]
        rest = self.let(total, "rest")
        self.write(f"for _ in range(once({total} < 1.5)):")
        self.write(f"    again = reread({e})")
        others = "tl.where(again == 1.0, 0.0, again)"
        self.write(f"    {rest} = tl.sum({others}, 1, keep_dims=True)")
        return [top, total, rest]

    def _of_groups(self, x: str, op: str) -> str:
        """One number of each row, of those of groups, which wait for no other."""
        n = 8 if self.launch.half else 4  # what a thread reads at once
        parts = f"tl.reshape({x}, (ROWS, BLOCK // {n}, {n}))"
        return f"tl.reduce(tl.reduce({parts}, 2, {op}), 1, {op}, keep_dims=True)"

    def _places(self, each: Pass) -> list[str]:
        """Where the words of a pass are, of the first part of the row."""
        n, used = len(paired(each)), self.words
        self.words += n
        row = f"row * {words_of(self.nest)}"
        parts = self.launch.parts(self.nest)
        return [f"words + ({row} + {used + k}) * {parts}" for k in range(n)]

    def _reduced(self, each: Pass, totals: Sequence[str]) -> list[str]:
        """Totals of several tiles as one."""
        found: list[str] = []
        for group in groups(each):
            names = [totals[i] for i in group.places]
            if not group.of_exp:
                found.append(self.let(reduced(group.nodes[0], names[0])))
                continue
            tops, parts, rests = names
            top = self.let(f"tl.reduce({tops}, 1, greatest, keep_dims=True)")
            held = self.let(f"finite_top({top})", "top")
            x = id(group.nodes[0].args[0])
            if x in self.kept:
                e, own = self.kept[x]
                self.kept[x] = e, self._exp_off(own, held)
            less = self.let(f"{parts} * {self._exp_off(tops, held)}", "less")
            others = f"tl.where({tops} == {top}, {rests}, {less})"
            found += [top, *self._both_sums(less, others)]
        return found

    def _both_sums(self, x1: str, x2: str) -> tuple[str, str]:
        """Two sums of rows, for which the programs' threads wait once."""
        self.count += 1
        total, rest = f"total{self.count}", f"rest{self.count}"
        both = f"tl.reduce(({x1}, {x2}), 1, add_both, keep_dims=True)"
        self.write(f"{total}, {rest} = {both}")
        return total, rest

    def _know(self, each: Pass, totals: Sequence[str]) -> None:
        for node, i in known_by(each):
            self.one[id(node)] = totals[i]

    def _operand(self, node: Node) -> str:
        """What is reduced, without what lies beyond the row."""
        dtype = TYPES[accumulated(node)]
        return self._padded(node.args[0], empty_of(node), f".to({dtype})")

    def _operand_of_exp(self, group: Group) -> str:
        return self.let(self._padded(group.nodes[0].args[0], 'float("-inf")'), "x")

    def _padded(self, node: Node, empty: str, convert: str = "") -> str:
        """A tile that has something else beyond the row, where nobody else looks.

        It stands for the tile from then on: a softmax would have two exponentials for
        each element, and of 30000 columns take four times as long.
        """
        x = self._tile(node, self.column, self.mask, self.full)
        x = f"tl.broadcast_to({x}, (ROWS, BLOCK)){convert}"
        if not self.mask or (node in self.ended and not convert):
            return x
        x = f"tl.where({self.mask}, {x}, {empty})"
        if node.kind != FULL or convert:
            return x
        self.full[id(node)] = self.let(x, "t")
        return self.full[id(node)]

    def _exp_off(self, x: str, top: str) -> str:
        return self.let(f"exp_of(off_top({x}, {top}), {self.launch.half})", "e")

    def _store(self, stores: Sequence[tuple[int, Node]]) -> None:
        for i, node in stores:
            if _one_place(node):
                node = node.args[2]
            x = self._tile(node, self.column, self.mask, self.full)
            guard = f", mask={self.mask}" if self.mask else ""
            guard += ', eviction_policy="evict_first"' if self.policy else ""
            place = f"out{i} + row * n_columns + {self.column}"
            wide = f"tl.broadcast_to({x}, (ROWS, BLOCK)){self._stored(i)}"
            self.write(f"tl.store({place}, {wide}{guard})")

    def _correct(self, stores: Sequence[tuple[int, Node]]) -> None:
        """Write over the one place of a row that has another value.

        To compare each column with it takes three instructions of some 25.
        """
        found = [(i, node, _one_place(node)) for i, node in stores]
        if any(place for _, _, place in found):
            self.write("tl.debug_barrier()")
        for i, node, place in found:
            if place is None:
                continue
            at, value = self._one(place), self._one(node.args[1])
            mask = f"there & ({at} >= 0) & ({at} < n_columns)"
            if self.launch.split:
                mask += f" & ({at} >= first) & ({at} < first + BLOCK)"
            x = f"tl.broadcast_to({value}, row.shape){self._stored(i)}"
            self.write(f"tl.store(out{i} + row * n_columns + {at}, {x}, mask={mask})")

    def _stored(self, i: int) -> str:
        name = self.storage[len(self.nest.inputs) + i]
        return f".to({TYPES['int8' if name == 'bool' else name]})"


def _is_in_rows(node: Node) -> bool:
    """Whether it is an input in some rows, and 0 in the others."""
    if node.op != "where" or node.kind != FULL or node.args[0].kind != ROW:
        return False
    _, x, zero = node.args
    return x.op == "input" and x.kind == FULL and zero.op == "number" and zero.data == 0


def _input_of(node: Node) -> Node | None:
    """The array that a tile is, in all rows or in those that count."""
    node = node.args[1] if _is_in_rows(node) else node
    return node if node.op == "input" and node.kind == FULL else None


def _read_in(node: Node) -> list[Node]:
    """The arrays that it is computed of, in all rows or in some."""
    found: list[Node] = []
    seen: set[int] = set()
    todo = [node]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.op != "input" and not _is_in_rows(each):
            todo += reversed(each.args)
        elif each.kind == FULL:
            found.append(each)
    return found


def _is_known_early(node: Node) -> bool:
    """Whether it is known before all passes where to gather, and in which rows."""
    rows = [each.args[0] for each in _read_in(node.args[0]) if each.op != "input"]
    return all(each.level == 0 for each in (node.args[1], *rows))


def _one_place(node: Node) -> Node | None:
    """The column of each row that has a value of its own, if it is such a choice."""
    if node.op != "where" or node.args[0].op != "equal" or node.args[1].kind == FULL:
        return None
    places = [x for x in node.args[0].args if _without_conversion(x).op != "index"]
    if len(places) != 1 or places[0].kind not in (ROW, SCALAR):
        return None
    is_whole = places[0].dtype.kind in "iu"  # no address has a fraction
    return places[0] if is_whole and node.args[1].kind != COLUMN else None


def _without_conversion(node: Node) -> Node:
    return node.args[0] if node.op == "convert" else node


def _read(raw: str, node: Node, stored: str) -> str:
    if stored == "bool":
        return f"({raw} != 0)"
    if stored == node.dtype.name:
        return raw
    return f"{raw}.to({TYPES[node.dtype.name]})"


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
    return f"{x}.to({TYPES[to.dtype.name]})" if node.op != "number" else x


class GpuKernel:
    """A loop nest that runs on a GPU, compiled by Triton when it is first started.

    What is read and written are Triton's pointers: arrays with an address and a dtype.
    """

    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        in_place: Sequence[tuple[int, int]] = (),
        launch: Launch | None = None,
    ) -> None:
        self.nest, self.storage, self.in_place = nest, storage, in_place
        self.launch = launch or launch_of(nest, storage, in_place=bool(in_place))
        self.source = source(nest, storage, self.launch, in_place=in_place)
        self.options: dict[str, Any] = {"num_warps": self.launch.warps}
        if self.launch.registers:
            self.options["maxnreg"] = self.launch.registers

    def for_gpu(self, processors: int) -> GpuKernel:
        """The kernel that runs on a GPU with so many processors.

        The programs that share a row must run at the same time, and two of them fit
        into a processor at least. Kernels that run beside each other may all wait for
        programs that don't fit in any more: with this limit, not before there are nine.
        """
        is_small = 4 * self.launch.parts(self.nest) > processors
        return self._apart if self.launch.shared and is_small else self

    @cached_property
    def _apart(self) -> GpuKernel:
        """The same kernel with a program for each row."""
        launch = launch_of(self.nest, self.storage, shared=False)
        return GpuKernel(self.nest, self.storage, launch=launch)

    @property
    def words(self) -> int:
        """How many words of 64 bits are to follow the outputs, all of them 0."""
        if not self.launch.shared:
            return 0
        return words_of(self.nest) * self.nest.rows * self.launch.parts(self.nest)

    def programs(self, processors: int) -> int:
        """How many there are in the grid, on a GPU with so many processors."""
        return self.launch.programs(self.nest, processors)

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

    def start(
        self, arrays: Sequence[Any], strides: Sequence[int], processors: int
    ) -> None:
        """Run: inputs, constants, outputs and words, and the strides of what is read.

        The words have 64 bits, of any dtype, where there are some.
        """
        nest, options = self.nest, self.options
        if self.in_place:
            n = len(nest.inputs)
            same = all(arrays[i] is arrays[n + k] for i, k in self.in_place)
            options = {**options, "IN_PLACE": same}
        self.function[(self.programs(processors),)](
            *arrays, *strides, nest.rows, nest.columns, **options
        )
