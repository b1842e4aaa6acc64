"""The values of a nest in a Triton kernel: as tiles, and as numbers of rows.

A value is a tile of rows and columns, of one column ("row"), of one row ("column") or
of one number, so that Triton's broadcasting is the nest's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..fusion import FULL, ROW, SCALAR, Nest, Node
from .triton_formulas import Formulas, literal, read
from .triton_launch import HALF, Launch
from .triton_lines import Lines
from .triton_patterns import input_of, is_in_rows, read_in
from .triton_totals import TYPES, off_top


@dataclass
class Columns:
    """Columns, which of them there are, and by id the tiles that are known of them."""

    place: str = ""
    mask: str = ""
    known: dict[int, str] = field(default_factory=dict)


class Tiles(Lines):
    """The lines of a kernel, and what they have given names to."""

    def __init__(self, nest: Nest, storage: Sequence[str], launch: Launch) -> None:
        super().__init__()
        self.nest, self.storage, self.launch = nest, storage, launch
        self.formulas = Formulas(half=launch.half)
        self.ones: dict[int, str] = {}  # names of numbers and of rows' values
        self.columns = Columns()  # those of the tile
        self.raw: dict[int, str] = {}  # names of tiles of inputs as they are stored
        self.policy = ""  # whether the cache should hold what is read
        self.again = launch.chunked or launch.again
        self.at_once = launch.at_once
        self.gathered: dict[int, Columns] = {}  # where values are gathered
        # What is read as minus infinity beyond the row; as 0 if a row does not count
        self.ended: set[Node] = set()
        self.zeros: list[Node] = []
        # Where a row is shared: of each x of a sum of exponentials those of the tile,
        # and what they are to be multiplied by
        self.kept: dict[int, tuple[str, str]] = {}

    def begin_columns(self, start: str) -> None:
        """The columns of a tile, and which of them there are."""
        place = self.let(f"({start}tl.arange(0, BLOCK))[None, :]", "column")
        self.columns = Columns(place)
        if self.launch.exact and self.launch.rows == 1:
            return
        inside = "there" if self.launch.exact else f"there & ({place} < n_columns)"
        self.columns.mask = self.let(inside, "mask")

    def forget(self) -> None:
        """Compute the tiles anew that come now."""
        self.columns.known = {}

    # Numbers, and values of rows

    def one(self, node: Node) -> str:
        if id(node) not in self.ones:
            self.ones[id(node)] = self._new_one(node)
        return self.ones[id(node)]

    def compute_scalars(self) -> None:
        for node in self.nest.nodes:
            if node.kind == SCALAR:
                self.one(node)

    def _new_one(self, node: Node) -> str:
        if node.op == "number":
            return literal(node)
        if node.op == "gather":
            return self._gather(node)
        if node.op != "input":
            return self.let(self.formulas.formula(node, self.one))
        if node.kind == ROW:
            return self.let(self.read_of_rows(node, "row"))
        raw = f"tl.load(in{node.data})"
        return self.let(read(raw, node, self.storage[int(node.data)]))

    def read_of_rows(self, node: Node, row: str) -> str:
        """A number of each row, of an input."""
        i = int(node.data)
        there = "there" if row == "row" and not self.launch.ahead else f"{row} < n_rows"
        text = f"tl.load(in{i} + {row} * down{i}, mask={there}, other=0)"
        return read(text, node, self.storage[i])

    def fetch(self, node: Node) -> None:
        """Read what is gathered, long before it is needed."""
        at = self.one(node.args[1])
        at = self.let(f"tl.where({at} < 0, {at} + n_columns, {at})", "at")
        mask = self.let(f"there & ({at} >= 0) & ({at} < n_columns)", "mask")
        columns = Columns(at, mask)
        for each in read_in(node.args[0]):
            self.tile(each, columns)
        self.gathered[id(node)] = columns

    def _gather(self, node: Node) -> str:
        """A full value at one column: NaN beyond the row, where nobody can raise."""
        if id(node) not in self.gathered:
            self.fetch(node)
        columns = self.gathered[id(node)]
        y = self.tile(node.args[0], columns)
        if node.dtype.kind != "f":
            return y
        return self.let(f'tl.where({columns.mask}, {y}, float("nan"))')

    # Tiles

    def tile(self, node: Node, columns: Columns | None = None) -> str:
        """A value at columns, which are those of the tile if nothing else is said."""
        if node.kind in (SCALAR, ROW):
            return self.one(node)
        columns = columns or self.columns
        if id(node) not in columns.known:
            text = self._new_tile(node, columns)
            columns.known[id(node)] = self.let(text, "t")
        return columns.known[id(node)]

    def _new_tile(self, node: Node, columns: Columns) -> str:
        if node.op == "index" and node.kind == FULL:
            dtype = TYPES[node.dtype.name]
            return f"(row * n_columns + {columns.place}).to({dtype})"
        if node.op == "index":
            return columns.place
        rows, counts, is_whole = "", "", columns is self.columns
        if is_whole and (text := self._of_kept(node)):
            return text
        if is_in_rows(node) and not (is_whole and self.at_once):
            rows = self.one(node.args[0])  # others are not read
            node = node.args[1]
        elif is_in_rows(node) and self.launch.shared and self.launch.half:
            counts = self.one(node.args[0])
            node = node.args[1]
        if node.op != "input":
            return self.formulas.formula(node, lambda a: self.tile(a, columns))
        raw = self._raw(node, columns, rows)
        if counts:
            return f"in_rows({raw}, {counts})"
        if self.again and raw in self.raw.values() and node.dtype.name == "float32":
            return f"reread({raw})"
        return read(raw, node, self.storage[int(node.data)])

    def _raw(self, node: Node, columns: Columns, rows: str) -> str:
        """An input as it is stored, read in some `rows` if this says in which."""
        i, is_whole = int(node.data), columns is self.columns
        if is_whole and (self.launch.ahead or not rows) and i in self.raw:
            return self.raw[i]
        place = f"in{i} + {columns.place} * along{i}"
        if node.kind == FULL:
            place += f" + row * down{i}"
        wanted = " & ".join(each for each in (columns.mask, rows) if each)
        ends = {input_of(x) for x in self.ended}
        other = 'float("-inf")' if is_whole and node in ends else "0"
        guard = f", mask={wanted}, other={other}" if wanted else ""
        text = f"tl.load({place}{guard}{self.policy})"
        stays = is_whole and self.again and not self.launch.chunked and not rows
        if not stays or self.storage[i] not in (*HALF, "float32"):
            return text
        self.raw[i] = self.let(text, "raw")
        return self.raw[i]

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
        if node.op == "divide" and not self.formulas.is_middling(b):
            return ""
        (e, factor), y = self.kept[id(x)], self.one(b)
        if node.op == "divide":
            y = f"inverse({y})"
        return f"{e} * {self.let(f'{factor} * {y}')}"

    def padded(self, node: Node, empty: str, convert: str = "") -> str:
        """A tile that has something else beyond the row, where nobody else looks.

        It stands for the tile from then on: a softmax would have two exponentials for
        each element, and of 30000 columns take four times as long.
        """
        x = self.tile(node)
        x = f"tl.broadcast_to({x}, (ROWS, BLOCK)){convert}"
        mask = self.columns.mask
        if not mask or (node in self.ended and not convert):
            return x
        x = f"tl.where({mask}, {x}, {empty})"
        if node.kind != FULL or convert:
            return x
        name = self.columns.known[id(node)] = self.let(x, "t")
        return name

    # Results

    def write_rows(self, i: int, value: str, place: str, mask: str) -> None:
        """Write one number of each row of an output."""
        wide = f"tl.broadcast_to({value}, row.shape){self._stored(i)}"
        self.write(f"tl.store(out{i} + {place}, {wide}, mask={mask})")

    def write_tile(self, i: int, node: Node) -> None:
        x, mask = self.tile(node), self.columns.mask
        guard = f", mask={mask}" if mask else ""
        guard += ', eviction_policy="evict_first"' if self.policy else ""
        place = f"out{i} + row * n_columns + {self.columns.place}"
        wide = f"tl.broadcast_to({x}, (ROWS, BLOCK)){self._stored(i)}"
        self.write(f"tl.store({place}, {wide}{guard})")

    def _stored(self, i: int) -> str:
        """The conversion to how an output is stored."""
        name = self.storage[len(self.nest.inputs) + i]
        return f".to({TYPES['int8' if name == 'bool' else name]})"
