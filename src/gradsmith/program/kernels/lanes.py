"""Straight-line code on a few lanes at once, written down as LLVM's assembly.

A `Lane` is a number for each lane, as they are in one register. Arithmetic on it writes
an instruction: functions.py reads like NumPy, and runs nothing. With a width of 1 it is
a single number.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

# A kind of number: its type in LLVM, and the whole number of as many bits
TYPES = {
    "f16": "half", "f32": "float", "f64": "double",
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
}  # fmt: skip
WHOLE = {"f32": "i32", "f64": "i64"}
# How a dtype is computed in, and how it lies in memory
KINDS = {
    "float16": ("f32", "f16"), "bfloat16": ("f32", "i16"), "float32": ("f32", "f32"),
    "float64": ("f64", "f64"), "bool": ("i1", "i8"), "int8": ("i8", "i8"),
    "int16": ("i16", "i16"), "int32": ("i32", "i32"), "int64": ("i64", "i64"),
}  # fmt: skip


class Code:
    """Instructions of one function, and what they declare."""

    def __init__(self, *, fma: bool, scales: bool = False) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.fma = fma  # whether the processor has it: else it would be a call
        self.scales = scales  # whether it multiplies by powers of 2 (AVX-512)
        self._n = 0

    def name(self, of: str = "") -> str:
        self._n += 1
        return f"{of}v{self._n}"

    def write(self, line: str) -> None:
        self.lines.append(line)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def value(self, text: str, kind: str, width: int) -> Lane:
        name = "%" + self.name()
        self.lines.append(f"  {name} = {text}")
        return Lane(self, name, kind, width)

    def number(self, x: Any, kind: str, width: int = 1) -> Lane:
        """A constant, the same on every lane."""
        one = _literal(x, kind)
        if width > 1:
            each = ", ".join([f"{TYPES[kind]} {one}"] * width)
            one = f"<{each}>"
        return Lane(self, one, kind, width)

    def numbers(self, xs: Sequence[Any], kind: str) -> Lane:
        """Constants, one for each lane."""
        each = ", ".join(f"{TYPES[kind]} {_literal(x, kind)}" for x in xs)
        return Lane(self, f"<{each}>", kind, len(xs))

    def named(self, name: str, kind: str = "i64") -> Lane:
        """The single number that has this name."""
        return Lane(self, f"%{name}", kind, 1)

    def address(self, pointer: str, kind: str, place: Lane | int) -> str:
        """Where in memory a number of an array is."""
        name = "%" + self.name("p")
        at = place.name if isinstance(place, Lane) else place
        self.write(f"  {name} = getelementptr {TYPES[kind]}, ptr {pointer}, i64 {at}")
        return name

    def on_stack(self, kind: str, count: int) -> str:
        """Memory for so many numbers, which the function has from its first line on."""
        name = "%" + self.name("m")
        text = f"  {name} = alloca [{count} x {TYPES[kind]}], align 64"
        self.lines.insert(1, text)
        return name

    def call(self, fn: str, kind: str, *args: Lane) -> Lane:
        """A call of an intrinsic function of LLVM, named without its types."""
        width = args[0].width
        of = suffix(args[0].kind, width)
        types = ", ".join(a.type for a in args)
        result = type_of(kind, width)
        self.declared.add(f"declare {result} @llvm.{fn}.{of}({types})")
        given = ", ".join(f"{a.type} {a.name}" for a in args)
        return self.value(f"call {result} @llvm.{fn}.{of}({given})", kind, width)

    def scaled(self, x: Lane, k: Lane) -> Lane:
        """x 2^k on a register of 512 bits."""
        return self._avx512("scalef", x, (k.type, k.name))

    def chosen(self, table: Sequence[float], places: Lane) -> Lane:
        """Those of 16 numbers of 32 bits that the last four bits of places say."""
        t, fn = type_of("f32", 16), "@llvm.x86.avx512.permvar.sf.512"
        self.declared.add(f"declare {t} {fn}({t}, {places.type})")
        given = f"{t} {self.numbers(table, 'f32').name}, {places.type} {places.name}"
        return self.value(f"call {t} {fn}({given})", "f32", 16)

    def log2_parts(self, x: Lane) -> tuple[Lane, Lane]:
        """e and m with x = m 2^e on such a register, where m is from 3/4 to 3/2.

        Of 0 and infinity e is infinite and m is 1; of what is negative m is NaN.
        """
        m = self._avx512("getmant", x, ("i32", "15"))
        e = self._avx512("getexp", x)
        return where(m < 1, e + 1, e), m

    def _avx512(self, fn: str, x: Lane, *more: tuple[str, str]) -> Lane:
        """An instruction on a register; `more` are the type and the name of others."""
        t, mask = x.type, f"i{x.width}" if x.width > 8 else "i8"
        fn = f"@llvm.x86.avx512.mask.{fn}.p{'s' if x.kind == 'f32' else 'd'}.512"
        types = [t, *[kind for kind, _ in more], t, mask, "i32"]
        self.declared.add(f"declare {t} {fn}({', '.join(types)})")
        names = [x.name, *[name for _, name in more], "zeroinitializer", "-1", "4"]
        given = ", ".join(map(" ".join, zip(types, names, strict=True)))
        return self.value(f"call {t} {fn}({given})", x.kind, x.width)


def kind_of(dtype: np.dtype[Any]) -> str:
    """What a dtype is computed in."""
    return KINDS[dtype.name][0]


def size_of(kind: str) -> int:
    """The bytes of a number."""
    return max(_bits(kind) // 8, 1)


def type_of(kind: str, width: int) -> str:
    return TYPES[kind] if width == 1 else f"<{width} x {TYPES[kind]}>"


def suffix(kind: str, width: int) -> str:
    return kind if width == 1 else f"v{width}{kind}"


def _literal(x: Any, kind: str) -> str:
    if kind == "i1":
        return "true" if x else "false"
    if kind[0] == "i":
        return str(int(x))
    with np.errstate(over="ignore"):
        x = float(np.float32(x)) if kind == "f32" else float(x)
    return "0x" + struct.pack(">d", x).hex().upper()


class Lane:
    """What an instruction computes, on each lane."""

    __slots__ = ("code", "kind", "name", "width")

    def __init__(self, code: Code, name: str, kind: str, width: int) -> None:
        self.code = code
        self.name = name
        self.kind = kind
        self.width = width

    @property
    def type(self) -> str:
        return type_of(self.kind, self.width)

    @property
    def is_float(self) -> bool:
        return self.kind[0] == "f"

    def _with(self, other: Any) -> Lane:
        if isinstance(other, Lane):
            return other
        return self.code.number(other, self.kind, self.width)

    def _op(self, fn: str, other: Any, kind: str | None = None) -> Lane:
        other = self._with(other)
        text = f"{fn} {self.type} {self.name}, {other.name}"
        return self.code.value(text, kind or self.kind, self.width)

    def _either(self, floating: str, whole: str, other: Any) -> Lane:
        return self._op(floating if self.is_float else whole, other)

    def __add__(self, other: Any) -> Lane:
        return self._either("fadd", "add", other)

    def __sub__(self, other: Any) -> Lane:
        return self._either("fsub", "sub", other)

    def __mul__(self, other: Any) -> Lane:
        return self._either("fmul", "mul", other)

    def __truediv__(self, other: Any) -> Lane:
        return self._op("fdiv", other)

    def __radd__(self, other: Any) -> Lane:
        return self._with(other) + self

    def __rsub__(self, other: Any) -> Lane:
        return self._with(other) - self

    def __rmul__(self, other: Any) -> Lane:
        return self._with(other) * self

    def __rtruediv__(self, other: Any) -> Lane:
        return self._with(other) / self

    def __neg__(self) -> Lane:
        if not self.is_float:
            return 0 - self
        text = f"fneg {self.type} {self.name}"
        return self.code.value(text, self.kind, self.width)

    def __and__(self, other: Any) -> Lane:
        return self._op("and", other)

    def __or__(self, other: Any) -> Lane:
        return self._op("or", other)

    def __xor__(self, other: Any) -> Lane:
        return self._op("xor", other)

    def __invert__(self) -> Lane:
        return self ^ (1 if self.kind == "i1" else -1)

    def __lshift__(self, n: int) -> Lane:
        return self._op("shl", n)

    def __rshift__(self, n: Any) -> Lane:
        return self._op("ashr", n)

    def unsigned_shift(self, n: int) -> Lane:
        return self._op("lshr", n)

    def _compare(self, floating: str, whole: str, other: Any) -> Lane:
        fn = f"fcmp {floating}" if self.is_float else f"icmp {whole}"
        return self._op(fn, other, "i1")

    def __lt__(self, other: Any) -> Lane:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Any) -> Lane:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Any) -> Lane:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Any) -> Lane:
        return self._compare("oge", "sge", other)

    def equals(self, other: Any) -> Lane:
        return self._compare("oeq", "eq", other)

    def differs(self, other: Any) -> Lane:
        return self._compare("une", "ne", other)

    def is_nan(self) -> Lane:
        return self.is_unordered(self)

    def is_unordered(self, other: Lane) -> Lane:
        """Whether one of both is NaN."""
        return self._op("fcmp uno", other, "i1")

    def as_bits(self) -> Lane:
        return self.reinterpreted(WHOLE[self.kind])

    def reinterpreted(self, kind: str) -> Lane:
        """The same bits as another kind of number."""
        return self._convert("bitcast", kind)

    def _convert(self, fn: str, kind: str) -> Lane:
        to = type_of(kind, self.width)
        text = f"{fn} {self.type} {self.name} to {to}"
        return self.code.value(text, kind, self.width)

    def zero_extended(self, kind: str) -> Lane:
        """The bits of a whole number, with zeros before them."""
        return self._convert("zext", kind)

    def converted(self, kind: str) -> Lane:
        """As another kind of number, by NumPy's rules."""
        if kind == self.kind:
            return self
        if kind == "i1":
            return self.differs(0)
        fn = {
            (True, True): "fpext" if _bits(kind) > _bits(self.kind) else "fptrunc",
            (True, False): "fptosi",
            (False, True): "uitofp" if self.kind == "i1" else "sitofp",
        }.get((self.is_float, kind[0] == "f"))
        if fn is None and _bits(kind) < _bits(self.kind):
            fn = "trunc"
        elif fn is None:
            fn = "zext" if self.kind == "i1" else "sext"
        return self._convert(fn, kind)

    def spread(self, width: int) -> Lane:
        """A single number, on every lane."""
        if self.width == width:
            return self
        if self.name[0] != "%":  # a constant
            each = ", ".join([f"{self.type} {self.name}"] * width)
            return Lane(self.code, f"<{each}>", self.kind, width)
        to = type_of(self.kind, width)
        text = f"insertelement {to} poison, {self.type} {self.name}, i64 0"
        one = self.code.value(text, self.kind, width)
        zeros = f"<{width} x i32> zeroinitializer"
        text = f"shufflevector {to} {one.name}, {to} poison, {zeros}"
        return self.code.value(text, self.kind, width)


def _bits(kind: str) -> int:
    return int(kind[1:])


def where(c: Lane, a: Any, b: Any) -> Lane:
    like = a if isinstance(a, Lane) else b
    a, b = like._with(a), like._with(b)
    text = f"select {c.type} {c.name}, {a.type} {a.name}, {b.type} {b.name}"
    return c.code.value(text, a.kind, a.width)


def fma(a: Lane, b: Any, c: Any) -> Lane:
    """a b + c, rounded once where the processor can."""
    b, c = a._with(b), a._with(c)
    return a.code.call("fma", a.kind, a, b, c) if a.code.fma else a * b + c


def abs_(x: Lane) -> Lane:
    if x.is_float:
        return x.code.call("fabs", x.kind, x)
    return where(x < 0, -x, x)


def sqrt(x: Lane) -> Lane:
    return x.code.call("sqrt", x.kind, x)


def rounded(x: Lane, how: str) -> Lane:
    """`how` is floor, ceil, trunc or rint."""
    return x.code.call(how, x.kind, x)


def copysign(x: Lane, sign: Any) -> Lane:
    return x.code.call("copysign", x.kind, x, x._with(sign))


def maximum(a: Lane, b: Any) -> Lane:
    return _extreme("ogt", "sgt", a, b)


def minimum(a: Lane, b: Any) -> Lane:
    return _extreme("olt", "slt", a, b)


def _extreme(floating: str, whole: str, a: Any, b: Any) -> Lane:
    """The greater or less of both, NaN where one of them is."""
    if not isinstance(b, Lane) or b.name[0] != "%":  # a number: one instruction
        a, b = a._with(b), a
    elif a.name[0] == "%" and a.is_float:
        first = a._compare(floating, whole, b) | a.is_nan()
        return where(first, a, b)
    return where(a._compare(floating, whole, b), a, b)


def any_lane(x: Lane) -> Lane:
    """Whether a condition holds on any lane."""
    if x.width == 1:
        return x
    bits = x.code.value(f"bitcast {x.type} {x.name} to i{x.width}", "i1", 1)
    return x.code.value(f"icmp ne i{x.width} {bits.name}, 0", "i1", 1)


def part(x: Lane, start: int, width: int) -> Lane:
    """Some lanes next to each other."""
    if width == 1:
        text = f"extractelement {x.type} {x.name}, i64 {start}"
        return x.code.value(text, x.kind, 1)
    places = ", ".join(f"i32 {start + i}" for i in range(width))
    text = (
        f"shufflevector {x.type} {x.name}, {x.type} poison, <{width} x i32> <{places}>"
    )
    return x.code.value(text, x.kind, width)


def joined(ways: list[tuple[Lane, str]]) -> Lane:
    """What comes from one block or another, where the ways from these meet."""
    first = ways[0][0]
    each = ", ".join(f"[{x.name}, %{block}]" for x, block in ways)
    return first.code.value(f"phi {first.type} {each}", first.kind, first.width)
