"""The passes of a nest in a Triton kernel: over a tile, or over the chunks of a row."""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import Node, Pass
from .triton_patterns import one_place
from .triton_reductions import Reductions
from .triton_shared import exchanged, paired, words_of
from .triton_tiles import Tiles
from .triton_totals import known_by


class Passes:
    """Writes passes behind the lines of `tiles`, which know what they reduce to."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles, self.nest, self.launch = tiles, tiles.nest, tiles.launch
        self.reductions = Reductions(tiles)
        self._words = 0  # that were written of a row, where it is shared

    def write(self, each: Pass, *, backward: bool) -> None:
        """One pass; chunks go from the first to the last or `backward`."""
        if self.tiles.again:
            self.tiles.forget()
        if self.launch.chunked:
            self._in_chunks(each, backward=backward)
        else:
            self._in_tile(each)

    def _in_tile(self, each: Pass) -> None:
        totals = self.reductions.of_tile(each)
        if self.launch.shared and totals:
            parts, warps = self.launch.parts(self.nest), self.launch.warps
            places = self._places(each)
            totals = exchanged(self.tiles, each, totals, places, parts, warps)
            totals = self.reductions.of_tiles(each, totals)
        self._know(each, totals)
        self._store(each.stores)
        self._correct(each.stores)

    def _places(self, each: Pass) -> list[str]:
        """Where the words of a pass are, of the first part of the row."""
        n, used = len(paired(each)), self._words
        self._words += n
        row = f"row * {words_of(self.nest)}"
        parts = self.launch.parts(self.nest)
        return [f"words + ({row} + {used + k}) * {parts}" for k in range(n)]

    def _in_chunks(self, each: Pass, *, backward: bool) -> None:
        """Totals are tiles, whose columns are reduced behind the loop."""
        tiles = self.tiles
        totals = self.reductions.begin_chunks(each)
        # What is read again is held: a log_softmax of 131072 columns of 16 bits, with
        # its gradient, takes 1.14 of a copy, and 1.26 without
        last = each is self.nest.passes[-1]
        tiles.policy = f', eviction_policy="evict_{"first" if last else "last"}"'
        tiles.write("for first in range(0, n_columns, BLOCK):")
        tiles.indent += 1
        if backward:
            tiles.write("first = (tl.cdiv(n_columns, BLOCK) - 1) * BLOCK - first")
        tiles.begin_columns("first + ")
        self.reductions.add_chunk(each, totals)
        self._store(each.stores)
        tiles.indent -= 1
        tiles.forget()
        self._correct(each.stores)
        self._know(each, self.reductions.of_tiles(each, totals))

    def _know(self, each: Pass, totals: Sequence[str]) -> None:
        for node, i in known_by(each):
            self.tiles.ones[id(node)] = totals[i]

    def _store(self, stores: Sequence[tuple[int, Node]]) -> None:
        for i, node in stores:
            self.tiles.write_tile(i, node.args[2] if one_place(node) else node)

    def _correct(self, stores: Sequence[tuple[int, Node]]) -> None:
        """Write over the one place of a row that has another value.

        To compare each column with it takes three instructions of some 25.
        """
        tiles = self.tiles
        found = [(i, node, one_place(node)) for i, node in stores]
        if any(place for _, _, place in found):
            tiles.write("tl.debug_barrier()")
        for i, node, place in found:
            if place is None:
                continue
            at, value = tiles.one(place), tiles.one(node.args[1])
            mask = f"there & ({at} >= 0) & ({at} < n_columns)"
            if self.launch.split:
                mask += f" & ({at} >= first) & ({at} < first + BLOCK)"
            tiles.write_rows(i, value, f"row * n_columns + {at}", mask)
