"""Arrays on the stack of a kernel, whose rows begin with a cache line each.

What a kernel reads or adds to in each row must be near, and half of the loads from rows
of 100 numbers touch two cache lines.
"""

from __future__ import annotations

from .lanes import Code, Lane, type_of

LINE = 64  # bytes
_DECLARED = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)


class Stacked:
    """Rows of numbers, with zeros behind each."""

    def __init__(self, code: Code, kind: str, rows: int, columns: int) -> None:
        self.code, self.kind, self.rows = code, kind, rows
        self.size = int(kind[1:]) // 8
        self.columns, self.between = columns, padded(columns, self.size)
        self.name = "%" + code.name("s")

    def begin(self, source: str = "") -> None:
        """Make it in the function's first block: zeros, or rows from memory."""
        n, row = self.rows * self.between * self.size, self.columns * self.size
        kind = type_of(self.kind, 1)
        count = self.rows * self.between
        self.code.write(f"  {self.name} = alloca {kind}, i64 {count}, align {LINE}")
        self.code.declared.update(_DECLARED)
        self.code.write(
            f"  call void @llvm.memset.p0.i64(ptr {self.name}, i8 0, i64 {n}, i1 false)"
        )
        for k in range(self.rows) if source else ():
            self._copy(self._row(k), self._at(source, k * self.columns), row)

    def end(self, target: str) -> None:
        """Copy it to memory."""
        for k in range(self.rows):
            row = self.columns * self.size
            self._copy(self._at(target, k * self.columns), self._row(k), row)

    def _row(self, k: int) -> str:
        return self._at(self.name, k * self.between)

    def _at(self, pointer: str, place: int) -> str:
        name = "%" + self.code.name("p")
        kind = type_of(self.kind, 1)
        self.code.write(f"  {name} = getelementptr {kind}, ptr {pointer}, i64 {place}")
        return name

    def _copy(self, target: str, source: str, size: int) -> None:
        self.code.write(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
            f"i64 {size}, i1 false)"
        )

    def _address(self, k: int, column: Lane) -> str:
        name = "%" + self.code.name("p")
        kind = type_of(self.kind, 1)
        at = column + k * self.between
        self.code.write(
            f"  {name} = getelementptr {kind}, ptr {self.name}, i64 {at.name}"
        )
        return name

    def read(self, k: int, column: Lane, width: int) -> Lane:
        address, t = self._address(k, column), type_of(self.kind, width)
        size = self.size * width if width > 1 else self.size
        return self.code.value(
            f"load {t}, ptr {address}, align {size}", self.kind, width
        )

    def write(self, k: int, column: Lane, x: Lane) -> None:
        address, size = self._address(k, column), self.size * x.width
        self.code.write(f"  store {x.type} {x.name}, ptr {address}, align {size}")


def padded(columns: int, size: int) -> int:
    """The numbers of a row in whole cache lines."""
    each = LINE // size
    return -(-columns // each) * each
