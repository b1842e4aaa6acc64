"""A loop nest as a Triton kernel, for GPUs: `source(nest, storage, launch)`.

A program of the grid takes a tile of rows. Columns that fit into its registers are read
once, and all passes go over them there; longer rows go by in chunks, once for each
pass, in turns from the first to the last and back: what was read last is still in the
cache. A nest that reduces nothing is cut along its columns too. Where a row fills a
processor, nothing else runs while a program waits for memory: in 16 bits, where there
is room, the program goes from row to row and reads the next one before it computes
(triton_ahead.py). Rows that are longer, or whose length is no power of two, are shared
by several programs, which exchange what they sum up (triton_shared.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import FULL, ROW, SCALAR, Nest
from .triton_ahead import RowsAhead
from .triton_functions import HEAD
from .triton_launch import Launch
from .triton_passes import Passes
from .triton_patterns import input_of, is_known_early
from .triton_tiles import Tiles
from .triton_totals import SUMS_OF_EXP


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
    `MULTIPLE` divides the number of columns, and how far rows are apart.
    """
    return f"{HEAD}\n\n{_Function(nest, storage, launch, in_place).text(name)}"


class _Function:
    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        launch: Launch,
        in_place: Sequence[tuple[int, int]],
    ) -> None:
        self.nest, self.launch, self.in_place = nest, launch, in_place
        self.tiles = Tiles(nest, storage, launch)

    def text(self, name: str) -> str:
        read_next = ""
        self._tell_multiples()
        if self.launch.ahead:
            read_next = RowsAhead(self.tiles).begin()
        else:
            self._begin()
        self._row_values(0)
        for node in self.nest.nodes:
            if node.op == "gather" and is_known_early(node):
                self.tiles.fetch(node)
        if read_next:
            self.tiles.write(read_next)
        if self.in_place:
            self._unless_ones()
        self._passes()
        body = "\n".join(self.tiles.lines)
        return f"@triton.jit\n{self._head(name)}\n{body}\n"

    def _head(self, name: str) -> str:
        launch = self.launch
        inputs, outputs = range(len(self.nest.inputs)), range(len(self.nest.outputs))
        given = [*[f"in{i}" for i in inputs], *[f"out{i}" for i in outputs]]
        given += ["words"] if launch.shared else []
        given += [f"{axis}{i}" for i in inputs for axis in ("down", "along")]
        given += ["n_rows", "n_columns"]
        given += [f"ROWS: tl.constexpr = {launch.rows}"]
        given += [f"BLOCK: tl.constexpr = {launch.block}"]
        given += ["MULTIPLE: tl.constexpr = 1"]
        given += ["IN_PLACE: tl.constexpr = False"] if self.in_place else []
        return f"def {name}({', '.join(given)}):"

    def _tell_multiples(self) -> None:
        """Say by what the lengths of rows can be divided.

        Then a thread reads so many elements at once. Triton itself sees only 16: a
        softmax of 1000 columns in 16 bits took 1.23 of a copy, and takes 1.04.
        """
        kinds = [kind for kind, _ in self.nest.inputs]
        lengths = [f"down{i}" for i, kind in enumerate(kinds) if kind == FULL]
        for n in [*lengths, "n_columns"]:
            self.tiles.write(f"{n} = {n} // MULTIPLE * MULTIPLE")

    def _begin(self) -> None:
        """Find the tile of a program, and what is the same in all of it."""
        tiles, launch, write = self.tiles, self.launch, self.tiles.write
        if launch.shared:
            n = launch.parts(self.nest)
            write(f"part = tl.program_id(0) % {n}")
            write("first = part * BLOCK")
            write(f"tile = (tl.program_id(0) // {n}).to(tl.int64)")
            write("words = words.to(tl.pointer_type(tl.int64), bitcast=True)")
        else:
            write("tile = tl.program_id(0).to(tl.int64)")
        if launch.split and not launch.shared:
            write("across = tl.cdiv(n_columns, BLOCK)")
            write("first = (tile % across) * BLOCK")
            write("tile = tile // across")
        write("row = tile * ROWS + tl.arange(0, ROWS)")
        write("row = row[:, None]")
        write("there = row < n_rows")
        tiles.compute_scalars()
        if launch.shared and not launch.exact:
            of_exp = {r.args[0] for r in self.nest.nodes if r.op in SUMS_OF_EXP}
            tiles.ended = {x for x in of_exp if input_of(x)}
        if not launch.chunked:
            tiles.begin_columns("first + " if launch.split else "")

    def _unless_ones(self) -> None:
        """All that follows is done if a factor of what is there already is not 1."""
        factors = []
        for i, k in self.in_place:
            x, y = self.nest.outputs[k].args
            factors.append(y if (x.op, x.data) == ("input", i) else x)
        others = [f"({self.tiles.one(f)} != 1)" for f in dict.fromkeys(factors)]
        write = self.tiles.write
        write("todo = 1")
        write("if IN_PLACE:")
        write(f"    there = there & ({' | '.join(others)})")
        write("    todo = once(there)")
        write("for _ in range(todo):")
        self.tiles.indent += 1

    def _passes(self) -> None:
        # What a row has beside its columns is written behind these if that is possible:
        # they need not wait for some hundred instructions then.
        nest, passes = self.nest, Passes(self.tiles)
        last = len(nest.passes) - 1
        behind = last > 0 and not self.launch.chunked
        for i, each in enumerate(nest.passes):
            if i > 0 and not (behind and i == last):
                self._row_values(i)
            passes.write(each, backward=i % 2 == 1)
        levels = range(last if behind else last + 1, last + 2)
        if self.launch.shared and any(
            y.level in levels for y in nest.outputs if y.kind != FULL
        ):
            self.tiles.write("if part == 0:")
            self.tiles.indent += 1
        for level in levels:
            self._row_values(level)

    def _row_values(self, level: int) -> None:
        """What is known of rows after some passes, and is written as soon as it is.

        If a value is compared with a gathered one first, Triton 3.6 compiles neither
        ("operand #1 does not dominate this use").
        """
        nodes = [n for n in self.nest.nodes if n.kind in (ROW, SCALAR)]
        mask = "there & (part == 0)" if self.launch.shared else "there"
        for node in (n for n in nodes if n.level == level):
            text = self.tiles.one(node)
            for i, y in enumerate(self.nest.outputs):
                if y is node:
                    self.tiles.write_rows(i, text, "row", mask)
