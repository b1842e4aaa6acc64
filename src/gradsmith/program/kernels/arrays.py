"""Reading and writing memory: whole registers, some lanes of them, or any places."""

from __future__ import annotations

from collections.abc import Sequence

from .lanes import KINDS, Code, Lane, size_of, suffix, type_of, where


def load(
    code: Code, address: str, stored: str, kind: str, width: int, mask: Lane | None
) -> Lane:
    """Numbers next to each other, `stored` as one kind and converted to another."""
    t, size = type_of(stored, width), size_of(stored)
    if mask is None:
        text = f"load {t}, ptr {address}, align {size}"
    else:
        fn = f"@llvm.masked.load.{suffix(stored, width)}.p0"
        code.declared.add(f"declare {t} {fn}(ptr, i32, {mask.type}, {t})")
        given = f"ptr {address}, i32 {size}, {mask.type} {mask.name}"
        text = f"call {t} {fn}({given}, {t} zeroinitializer)"
    x = code.value(text, stored, width)
    return _from_bfloat(x) if (stored, kind) == ("i16", "f32") else x.converted(kind)


def store(x: Lane, address: str, mask: Lane | None) -> None:
    code, size = x.code, size_of(x.kind)
    if mask is None:
        code.write(f"  store {x.type} {x.name}, ptr {address}, align {size}")
        return
    fn = f"@llvm.masked.store.{suffix(x.kind, x.width)}.p0"
    code.declared.add(f"declare void {fn}({x.type}, ptr, i32, {mask.type})")
    given = f"{x.type} {x.name}, ptr {address}, i32 {size}, {mask.type} {mask.name}"
    code.write(f"  call void {fn}({given})")


class Arrays:
    """The inputs and outputs of a kernel; `storage` are the dtypes of both in memory.

    Numbers are converted as they are read and written.
    """

    def __init__(self, code: Code, storage: Sequence[str], inputs: int) -> None:
        self.code = code
        stored = [KINDS[name][1] for name in storage]
        self._inputs, self._outputs = stored[:inputs], stored[inputs:]
        self._bfloat = [name == "bfloat16" for name in storage[inputs:]]

    def read(
        self, i: int, place: Lane, kind: str, width: int, mask: Lane | None = None
    ) -> Lane:
        """Numbers of an input, next to each other."""
        stored = self._inputs[i]
        address = self.code.address(f"%in{i}", stored, place)
        return load(self.code, address, stored, kind, width, mask)

    def write(self, i: int, x: Lane, place: Lane, mask: Lane | None = None) -> None:
        """Numbers of an output, next to each other."""
        stored = self._outputs[i]
        x = _to_bfloat(x.converted("f32")) if self._bfloat[i] else x.converted(stored)
        store(x, self.code.address(f"%out{i}", stored, place), mask)

    def add(
        self, i: int, x: Lane, place: Lane, first: Lane, mask: Lane | None = None
    ) -> None:
        """Add to numbers of an output, which are new where this is the `first` time."""
        address = self.code.address(f"%out{i}", x.kind, place)
        before = load(self.code, address, x.kind, x.kind, x.width, mask)
        store(where(first.spread(x.width), x, before + x), address, mask)

    def read_strided(
        self,
        i: int,
        column: Lane,
        at: int,
        stride: int,
        kind: str,
        width: int,
        mask: Lane | None,
    ) -> Lane:
        """One number of each row of an input, from the row `column` on."""
        places = self._places(column, at, stride, width)
        stored = self._inputs[i]
        t, size = type_of(stored, width), size_of(stored)
        fn = f"@llvm.masked.gather.{suffix(stored, width)}.v{width}p0"
        types = f"<{width} x ptr>, i32, <{width} x i1>, {t}"
        self.code.declared.add(f"declare {t} {fn}({types})")
        given = f"{self._addresses(f'%in{i}', stored, places)}, i32 {size}, "
        given += f"{_lanes(mask, width)}, {t} zeroinitializer"
        x = self.code.value(f"call {t} {fn}({given})", stored, width)
        return x.converted(kind)

    def write_strided(
        self, i: int, x: Lane, column: Lane, at: int, stride: int, mask: Lane | None
    ) -> None:
        """One number of each row of an output, from the row `column` on."""
        x, width = x.converted(self._outputs[i]), x.width
        places = self._places(column, at, stride, width)
        fn = f"@llvm.masked.scatter.{suffix(x.kind, width)}.v{width}p0"
        types = f"{x.type}, <{width} x ptr>, i32, <{width} x i1>"
        self.code.declared.add(f"declare void {fn}({types})")
        given = f"{x.type} {x.name}, {self._addresses(f'%out{i}', x.kind, places)}, "
        given += f"i32 {size_of(x.kind)}, {_lanes(mask, width)}"
        self.code.write(f"  call void {fn}({given})")

    def _places(self, column: Lane, at: int, stride: int, width: int) -> Lane:
        each = [at + i * stride for i in range(width)]
        return (column * stride).spread(width) + self.code.numbers(each, "i64")

    def _addresses(self, pointer: str, kind: str, places: Lane) -> str:
        name, t = "%" + self.code.name("p"), type_of(kind, 1)
        at = f"{places.type} {places.name}"
        self.code.write(f"  {name} = getelementptr {t}, ptr {pointer}, {at}")
        return f"<{places.width} x ptr> {name}"


def _lanes(mask: Lane | None, width: int) -> str:
    """A mask, or that of all lanes."""
    every = ", ".join(["i1 true"] * width)
    return f"<{width} x i1> " + (f"<{every}>" if mask is None else mask.name)


def _from_bfloat(x: Lane) -> Lane:
    """The float32 whose upper half it is."""
    return (x.zero_extended("i32") << 16).reinterpreted("f32")


def _to_bfloat(x: Lane) -> Lane:
    """The upper half of a float32, rounded to even."""
    bits = x.as_bits()
    odd = bits.unsigned_shift(16) & 1
    up = (bits + 0x7FFF + odd).unsigned_shift(16)
    return where(x.is_nan(), 0x7FC0, up).converted("i16")
