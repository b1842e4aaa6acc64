"""Triton programs that go from row to row, and read the next one ahead."""

from __future__ import annotations

from ..fusion import ROW, SCALAR, Node, ordered
from .triton_launch import arrays_of
from .triton_patterns import is_in_rows
from .triton_tiles import Tiles
from .triton_totals import SUMS_OF_EXP, TYPES


class RowsAhead:
    """Rows of the one array of a nest, of which each is read while one is computed.

    Whether the next one counts must be known by then: its flags are read while the one
    before is computed.
    """

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        (self.array,) = arrays_of(tiles.nest)
        self.users = [n for n in tiles.nest.nodes if self.array in n.args]
        flagged = {n.args[0] for n in self.users if is_in_rows(n)}
        # One that is found by a pass comes too late
        is_early = all(n.kind in (ROW, SCALAR) for n in ordered([*flagged]))
        is_one = len(flagged) == 1 and all(map(is_in_rows, self.users))
        tiles.at_once = not (is_one and is_early)
        self.counts = [] if tiles.at_once else [*flagged]
        flags = ordered(self.counts)
        self.flags = [n for n in flags if n.op == "input" and n.kind == ROW]

    def begin(self) -> str:
        """Go over rows; returns the line that reads the next one."""
        tiles, write = self.tiles, self.tiles.write
        write("step = tl.num_programs(0)")
        write("row = (tl.program_id(0).to(tl.int64) + tl.arange(0, 1))[:, None]")
        tiles.compute_scalars()
        self._begin_columns()
        names = {n: (f"flag{n.data}", f"next_flag{n.data}") for n in self.flags}
        now = {n: name for n, (name, _) in names.items()}
        later = {n: name for n, (_, name) in names.items()}
        for n, flag in now.items():
            write(f"{flag} = {tiles.read_of_rows(n, 'row')}")
        write(f"tile = {self._read('row', now)}")
        for n, flag in later.items():
            write(f"{flag} = {tiles.read_of_rows(n, '(row + step)')}")
        write("for here in tl.range(tl.program_id(0), n_rows, step):")
        tiles.indent += 1
        write("row = (here.to(tl.int64) + tl.arange(0, 1))[:, None]")
        write("there = row < n_rows")
        tiles.raw[int(self.array.data)] = tiles.let("tile", "raw")
        read_next = f"tile = {self._read('(row + step)', later)}"
        for n in self.flags:
            tiles.ones[id(n)] = tiles.let(now[n])
            write(f"{now[n]} = {later[n]}")
            write(f"{later[n]} = {tiles.read_of_rows(n, '(row + 2 * step)')}")
        return read_next

    def _begin_columns(self) -> None:
        tiles = self.tiles
        columns = tiles.columns
        columns.place = tiles.let("tl.arange(0, BLOCK)[None, :]", "column")
        if tiles.launch.exact:
            return
        columns.mask = tiles.let(f"{columns.place} < n_columns", "mask")
        ends = [self.array, *self.users] if self.counts else [self.array]
        of_exp = {r.args[0] for r in tiles.nest.nodes if r.op in SUMS_OF_EXP}
        tiles.ended = of_exp.intersection(ends)
        tiles.zeros = self.counts

    def _read(self, row: str, flags: dict[Node, str]) -> str:
        """A row of the array, if it counts by the flags so named."""
        tiles, columns, i = self.tiles, self.tiles.columns, int(self.array.data)
        scalars = dict(tiles.ones)
        tiles.ones.update({id(n): name for n, name in flags.items()})
        wanted = " & ".join([f"({row} < n_rows)", *map(tiles.one, self.counts)])
        tiles.ones = scalars
        mask, other = wanted, "0"
        if columns.mask:
            mask = f"{wanted} & {columns.mask}"
        if tiles.ended and not self.counts:
            other = 'float("-inf")'
        elif tiles.ended:
            other = tiles.let(f'tl.where({wanted}, float("-inf"), 0.0)', "other")
            other += f".to({TYPES[tiles.storage[i]]})"
        place = f"in{i} + {columns.place} * along{i} + {row} * down{i}"
        return f"tl.load({place}, mask={mask}, other={other})"
