"""The reductions of a pass in a Triton kernel: of one tile, and of several.

triton_totals.py says which there are, and what each of them starts with.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import Node, Pass
from .triton_patterns import is_in_rows
from .triton_shared import has_rest
from .triton_tiles import Tiles
from .triton_totals import (
    GROUPS,
    TOGETHER,
    TYPES,
    Group,
    accumulated,
    combined,
    empty_of,
    groups,
    reduced,
    totals_of,
)


class Reductions:
    """Writes reductions behind the lines of `tiles`; totals go by their names there."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles, self.launch, self.let = tiles, tiles.launch, tiles.let

    def of_tile(self, each: Pass) -> list[str]:
        """The totals of a tile."""
        found: list[str] = []
        for group in groups(each):
            if not group.of_exp:
                (node,) = group.nodes
                found.append(self.let(reduced(node, self._operand(node))))
            elif self.launch.shared:
                found += self._kept_sums(group)
            else:
                found += self._sums(group)
        return found

    def _sums(self, group: Group) -> list[str]:
        """The greatest of a tile, and sums of exponentials off it."""
        x = self._operand_of_exp(group)
        top = self.let(f"tl.reduce({x}, 1, greatest, keep_dims=True)")
        held = self.let(f"finite_top({top})", "top")
        e = self._exp_off(x, held)
        # To sum up the others only where they are needed takes a sixth longer, in
        # 16 bits: then nothing is moved across the branch
        total, rest = self._both_sums(e, f"below_top({e}, {x}, {held})")
        zeros = self.tiles.zeros
        if zeros and group.nodes[0].args[0] in self.tiles.ended:
            more = f"tl.where({self.tiles.one(zeros[0])}, 0, BLOCK - n_columns)"
            total = self.let(f"{total} - {more}", "total")
        return [top, total, rest]

    def _kept_sums(self, group: Group) -> list[str]:
        """The same where exponentials are kept, to be computed once.

        What few rows need is in loops, which are branches: to have it always makes a
        third more instructions. (Where a program has a whole row, that is faster: then
        stores and sums of other elements go on between.)
        """
        write, node = self.tiles.write, group.nodes[0].args[0]
        x = self._operand_of_exp(group)
        top = self.let(self._of_groups(x, "greatest"))
        held = self.let(f"finite_top({top})", "top")
        e = self.let(f"exp_of({x} - {held}, {self.launch.half})", "e")
        self.tiles.kept[id(node)] = e, top
        write(f'for _ in range(once({top} == float("inf"))):')
        write(f"    again = reread({e})")
        write(f"    {e} = tl.where(again == again, 0.0, 1.0)  # NaN is inf - inf")
        total = self.let(self._of_groups(e, "add"), "total")
        if node in self.tiles.ended and is_in_rows(node):
            counts = self.tiles.one(node.args[0])
            beyond = "tl.maximum(first + BLOCK - n_columns, 0)"
            more = f"tl.where({counts}, 0, {beyond}).to(tl.float32)"
            total = self.let(f"{total} - {more}", "total")
        if not has_rest(group):
            return [top, total, total]
        rest = self.let(total, "rest")
        write(f"for _ in range(once({total} < 1.5)):")
        write(f"    again = reread({e})")
        others = "tl.where(again == 1.0, 0.0, again)"
        write(f"    {rest} = tl.sum({others}, 1, keep_dims=True)")
        return [top, total, rest]

    def _of_groups(self, x: str, op: str) -> str:
        """One number of each row, of those of groups, which wait for no other."""
        n = 8 if self.launch.half else 4  # what a thread reads at once
        parts = f"tl.reshape({x}, (ROWS, BLOCK // {n}, {n}))"
        return f"tl.reduce(tl.reduce({parts}, 2, {op}), 1, {op}, keep_dims=True)"

    def of_tiles(self, each: Pass, totals: Sequence[str]) -> list[str]:
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
            x, kept = id(group.nodes[0].args[0]), self.tiles.kept
            if x in kept:
                e, own = kept[x]
                kept[x] = e, self._exp_off(own, held)
            less = self.let(f"{parts} * {self._exp_off(tops, held)}", "less")
            others = f"tl.where({tops} == {top}, {rests}, {less})"
            found += [top, *self._both_sums(less, others)]
        return found

    def begin_chunks(self, each: Pass) -> list[str]:
        """Totals before the first chunk: tiles, of which `of_tiles` makes one."""
        return [
            self.let(
                f"tl.full((ROWS, {t.columns}), {t.empty}, {TYPES[t.dtype]})", "total"
            )
            for t in totals_of(each)
        ]

    def add_chunk(self, each: Pass, totals: Sequence[str]) -> None:
        for group in groups(each):
            names = [totals[i] for i in group.places]
            for total, text in zip(names, self._with_chunk(group, names), strict=True):
                self.tiles.write(f"{total} = {text}")

    def _with_chunk(self, group: Group, totals: Sequence[str]) -> list[str]:
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

    def _both_sums(self, x1: str, x2: str) -> tuple[str, str]:
        """Two sums of rows, for which the programs' threads wait once."""
        tiles = self.tiles
        tiles.count += 1
        total, rest = f"total{tiles.count}", f"rest{tiles.count}"
        both = f"tl.reduce(({x1}, {x2}), 1, add_both, keep_dims=True)"
        tiles.write(f"{total}, {rest} = {both}")
        return total, rest

    def _operand(self, node: Node) -> str:
        """What is reduced, without what lies beyond the row."""
        dtype = TYPES[accumulated(node)]
        return self.tiles.padded(node.args[0], empty_of(node), f".to({dtype})")

    def _operand_of_exp(self, group: Group) -> str:
        x = self.tiles.padded(group.nodes[0].args[0], 'float("-inf")')
        return self.let(x, "x")

    def _exp_off(self, x: str, top: str) -> str:
        return self.let(f"exp_of(off_top({x}, {top}), {self.launch.half})", "e")
