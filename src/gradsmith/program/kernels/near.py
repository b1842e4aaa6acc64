"""Arrays of a kernel's own, in memory behind what it keeps of a row.

What is read or added to in each row must be near, and each of their rows begins with a
cache line: half of the loads from rows of 100 numbers would touch two.
"""

from __future__ import annotations

from collections.abc import Sequence

from .lanes import Code, Lane, fma, size_of, type_of

LINE = 64  # bytes
MOST_ALONE = 2  # factors of rows that are added one by one
_DECLARED = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)


class Memory:
    """Memory for arrays, from the next cache line on."""

    def __init__(self, code: Code, pointer: str) -> None:
        self.code, self.taken = code, 0
        code.write(f"  %away = ptrtoint ptr {pointer} to i64")
        code.write("  %less = sub i64 0, %away")
        code.write(f"  %left = and i64 %less, {LINE - 1}")
        code.write(f"  %near = getelementptr i8, ptr {pointer}, i64 %left")

    def array(self, kind: str, rows: int, columns: int) -> Near:
        """An array of zeros."""
        name, size = "%" + self.code.name("n"), nbytes(kind, rows, columns)
        self.code.write(f"  {name} = getelementptr i8, ptr %near, i64 {self.taken}")
        self.code.declared.update(_DECLARED)
        self.code.write(
            f"  call void @llvm.memset.p0.i64(ptr {name}, i8 0, i64 {size}, i1 false)"
        )
        self.taken += size
        return Near(self.code, name, kind, rows, columns)


class Near:
    """Rows of numbers, with zeros behind each."""

    def __init__(
        self, code: Code, name: str, kind: str, rows: int, columns: int
    ) -> None:
        self.code, self.name, self.kind, self.rows = code, name, kind, rows
        self.size = size_of(kind)
        self.columns, self.between = columns, _padded(columns, self.size)

    def begin(self, source: str) -> None:
        """Copy its rows from memory."""
        for k in range(self.rows):
            row = self.columns * self.size
            self._copy(self._row(k), self._at(source, k * self.columns), row)

    def end(self, target: str, start: int, rows: int) -> None:
        """Copy some of its rows to memory."""
        for k in range(rows):
            row = self.columns * self.size
            self._copy(self._at(target, k * self.columns), self._row(start + k), row)

    def _row(self, k: int) -> str:
        return self._at(self.name, k * self.between)

    def _at(self, pointer: str, place: int) -> str:
        return self.code.address(pointer, self.kind, place)

    def _copy(self, target: str, source: str, size: int) -> None:
        self.code.write(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
            f"i64 {size}, i1 false)"
        )

    def _address(self, k: Lane | int, column: Lane) -> str:
        name = "%" + self.code.name("p")
        kind = type_of(self.kind, 1)
        at = column + k * self.between
        self.code.write(
            f"  {name} = getelementptr {kind}, ptr {self.name}, i64 {at.name}"
        )
        return name

    def read(self, k: Lane | int, column: Lane, width: int) -> Lane:
        address, t = self._address(k, column), type_of(self.kind, width)
        size = self.size * width
        return self.code.value(
            f"load {t}, ptr {address}, align {size}", self.kind, width
        )

    def write(self, k: Lane | int, column: Lane, x: Lane) -> None:
        address, size = self._address(k, column), self.size * x.width
        self.code.write(f"  store {x.type} {x.name}, ptr {address}, align {size}")

    def clear(self, k: Lane) -> None:
        """Zeros from a row on."""
        size = (self.rows - k) * (self.between * self.size)
        address = self._address(k, self.code.number(0, "i64"))
        self.code.write(
            f"  call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size.name}, "
            "i1 false)"
        )


class Added:
    """Rows times some numbers of each, added up."""

    def __init__(self, memory: Memory, columns: int, factors: int, width: int) -> None:
        self.code, self.columns, self.width = memory.code, columns, width
        self.totals = memory.array("f64", factors, columns)

    def take(self, row: Lane, column: Lane, x: Lane, factors: Sequence[Lane]) -> None:
        """A register of a row, and the numbers that this is multiplied by."""
        for k, factor in enumerate(factors):
            total = self.totals.read(k, column, x.width)
            self.totals.write(k, column, fma(x, factor.spread(x.width), total))

    def end_row(self, row: Lane, stop: Lane, factors: Sequence[Lane]) -> None:
        """The row is there as a whole."""


class AddedTogether(Added):
    """The same, several rows at once: one load and one store for several sums.

    10,000 rows of 100 numbers times 9 others take 0.2 ms, and 0.5 row by row. Times one
    other number it is the other way round: 4096 rows of 128 take 75 us, not 107.
    """

    rows = 8  # a power of 2

    def __init__(self, memory: Memory, columns: int, factors: int, width: int) -> None:
        super().__init__(memory, columns, factors, width)
        self.waiting = memory.array("f64", self.rows, columns)
        self.factors = memory.array("f64", self.rows, factors)
        self.together = 2 if width * self.totals.size == LINE else 1  # of 32 registers

    def take(self, row: Lane, column: Lane, x: Lane, factors: Sequence[Lane]) -> None:
        self.waiting.write(self._slot(row), column, x)

    def end_row(self, row: Lane, stop: Lane, factors: Sequence[Lane]) -> None:
        for k, x in enumerate(factors):
            self.factors.write(self._slot(row), self.code.number(k, "i64"), x)
        self._add(row, stop)

    def _slot(self, row: Lane) -> Lane:
        return row & (self.rows - 1)

    def _add(self, row: Lane, stop: Lane) -> None:
        """Add up the rows that wait, if this is the last one."""
        code, n = self.code, self.code.name()
        slot = self._slot(row)
        whole = slot.equals(self.rows - 1)
        now = whole | (row + 1).equals(stop)
        code.write(f"  br i1 {now.name}, label %add{n}, label %added{n}")
        code.label(f"add{n}")
        code.write(f"  br i1 {whole.name}, label %whole{n}, label %rest{n}")
        code.label(f"rest{n}")
        for each in (self.waiting, self.factors):
            each.clear(slot + 1)
        code.write(f"  br label %whole{n}")
        code.label(f"whole{n}")
        before = f"whole{n}"
        for first in range(0, self.totals.rows, self.together):
            last = min(first + self.together, self.totals.rows)
            before = self._loop(range(first, last), before)
        code.write(f"  br label %added{n}")
        code.label(f"added{n}")

    def _loop(self, which: range, before: str) -> str:
        """A loop over the columns of some totals; the block that it ends in."""
        code, n, width = self.code, self.code.name(), self.width
        factors = [
            [
                self.factors.read(i, code.number(k, "i64"), 1).spread(width)
                for i in range(self.rows)
            ]
            for k in which
        ]
        code.write(f"  br label %loop{n}")
        code.label(f"loop{n}")
        column = code.value(f"phi i64 [0, %{before}], [%next{n}, %loop{n}]", "i64", 1)
        rows = [self.waiting.read(i, column, width) for i in range(self.rows)]
        for k, of in zip(which, factors, strict=True):
            total = self.totals.read(k, column, width)
            for x, factor in zip(rows, of, strict=True):
                total = fma(x, factor, total)
            self.totals.write(k, column, total)
        code.write(f"  %next{n} = add i64 {column.name}, {width}")
        code.write(f"  %again{n} = icmp slt i64 %next{n}, {self.columns}")
        code.write(f"  br i1 %again{n}, label %loop{n}, label %after{n}")
        code.label(f"after{n}")
        return f"after{n}"


def added(memory: Memory, columns: int, factors: int, width: int) -> Added:
    """Sums of rows, by what is faster for so many factors."""
    kind = Added if factors <= MOST_ALONE else AddedTogether
    return kind(memory, columns, factors, width)


def nbytes_added(columns: int, factors: int) -> int:
    """The memory for them."""
    rows = AddedTogether.rows
    together = nbytes("f64", rows, columns) + nbytes("f64", rows, factors)
    return nbytes("f64", factors, columns) + (factors > MOST_ALONE) * together


def nbytes(kind: str, rows: int, columns: int) -> int:
    size = size_of(kind)
    return rows * _padded(columns, size) * size


def _padded(columns: int, size: int) -> int:
    """The numbers of a row in whole cache lines."""
    each = LINE // size
    return -(-columns // each) * each
