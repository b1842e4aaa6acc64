"""What goes round a loop over columns: reductions on their way, and powers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf, nan

from ..fusion import Node, range_of
from .lanes import (
    Code,
    Lane,
    abs_,
    any_lane,
    joined,
    kind_of,
    maximum,
    minimum,
    part,
    where,
)


class Carried:
    """Registers that each turn of a loop takes from the one before."""

    def __init__(self, node: Node, code: Code, empty: list[Lane]) -> None:
        self.node, self.code = node, code
        self.kind, self.width = empty[0].kind, empty[0].width
        self.current = self._before = empty
        self._lines: list[int] = []

    def begin(self, before: str, loop: str) -> None:
        """Start a loop after a block; what goes round is written by `close`."""
        self._before, self._lines, names = self.current, [], []
        for e in self._before:
            name = "%" + self.code.name("s")
            self._lines.append(len(self.code.lines))
            self.code.write(
                f"  {name} = phi {e.type} [{e.name}, %{before}], [@, %{loop}]"
            )
            names.append(Lane(self.code, name, self.kind, self.width))
        self.current = names

    def close(self) -> None:
        for line, now in zip(self._lines, self.current, strict=True):
            self.code.lines[line] = self.code.lines[line].replace("@", now.name)

    def end(self, before: str, loop: str) -> None:
        """Behind the loop, which has run or not."""
        self.merge(self._before, before, loop)

    def merge(self, others: list[Lane], before: str, here: str) -> None:
        """Where two ways meet: from the block `before`, with others, and from here."""
        self.current = [
            joined([(a, before), (b, here)])
            for a, b in zip(others, self.current, strict=True)
        ]


# Numbers up to which a sum is as NumPy's: on 8 lanes, one after the other
_FEW = 128


class Reduction(Carried):
    """A reduction on its way through a pass: on each lane, what was reduced there.

    Sums of float32 are in float64. Those of float64 have a second part, with what
    rounding takes from the first, unless they are of so few numbers that NumPy adds
    them one by one too: a third of the time. Extremes of floats have the last NaN as a
    second one: an extreme that is NaN if one of both is takes three instructions more,
    each of which waits for the one before (1.7 times the time of a row).
    """

    def __init__(self, node: Node, code: Code, width: int, columns: int) -> None:
        kind = _kind_of_operand(node)
        self.extreme = node.op in ("max", "min") and kind[0] == "f"
        is_long = node.op == "sum" and kind == "f64" and columns > _FEW
        wide = {"f32": "f64"}.get(kind, kind) if node.op == "sum" else kind
        parts = [_empty(node.op, wide), *[0] * (self.extreme or is_long)]
        self.empty = [code.number(e, wide, width) for e in parts]
        super().__init__(node, code, self.empty)

    def add(self, xs: list[Lane], mask: Lane | None) -> None:
        """Take up what some registers have; of several, first of each other."""
        if mask is not None:
            xs = [where(mask, x.converted(self.kind), self.empty[0]) for x in xs]
        seen = [self._with_nan(xs)] if self.extreme else []
        if len(xs) > 1 and gathers(self.node):
            xs = [_in_pairs(lambda a, b: self._combined([a], [b])[0], xs)]
        for x in xs:
            self.current = self._combined(self.current, [x.converted(self.kind)])
        self.current = [*self.current, *seen]

    def _with_nan(self, xs: list[Lane]) -> Lane:
        """The second part, which is NaN on a lane where one was."""
        pairs = zip(xs[::2], xs[1::2] or xs, strict=True)
        invalid = _in_pairs(operator.or_, [a.is_unordered(b) for a, b in pairs])
        return where(invalid, nan, self.current[1])

    def _combined(self, a: list[Lane], b: list[Lane]) -> list[Lane]:
        op = self.node.op
        if self.extreme:
            x = b[0]
            return [where(x > a[0] if op == "max" else x < a[0], x, a[0])]
        if op != "sum":
            return [_COMBINED[op](a[0], b[0])]
        s = a[0] + b[0]
        if len(a) == 1:
            return [s]
        t = s - a[0]
        lost = (a[0] - (s - t)) + (b[0] - t)
        return [s, a[1] + (lost if len(b) == 1 else lost + b[1])]

    def total(self) -> Lane:
        """All lanes in one, as the node's kind of number."""
        parts, width, invalid = self.current, self.width, None
        if self.extreme:
            parts, invalid = parts[:1], any_lane(parts[1].is_nan())
        while width > 1:
            width //= 2
            halves = [[part(x, i * width, width) for x in parts] for i in (0, 1)]
            parts = self._combined(*halves)
        y = parts[0]
        if invalid is not None:
            y = where(invalid, nan, y)
        elif len(parts) == 2:
            is_sure = abs_(parts[1]) < inf
            y = where(is_sure, y + parts[1], y)
        return y.converted(kind_of(self.node.dtype))


_COMBINED: dict[str, Callable[[Lane, Lane], Lane]] = {
    "max": maximum,
    "min": minimum,
    "any": operator.or_,
    "all": operator.and_,
}


def _empty(op: str, kind: str) -> float:
    """What a reduction of nothing is."""
    if kind[0] == "i" and op in ("max", "min"):
        bits = int(kind[1:]) - 1
        return -(2**bits) if op == "max" else 2**bits - 1
    return {"max": -inf, "min": inf, "any": 0, "all": 1, "sum": 0}[op]


def _kind_of_operand(node: Node) -> str:
    return kind_of(node.args[0].dtype)


def gathers(node: Node) -> bool:
    """Whether a reduction takes several registers at once in less time.

    Extremes of what is at hand then wait less for each other, and one instruction finds
    NaN in two registers: 0.6 of the time. Numbers that are not negative lose no digits
    if four of them are added in float32 and these sums in float64: 0.75 of a softmax's.
    """
    if node.op in ("max", "min"):
        return node.args[0].op in ("input", "convert")
    return _is_safe(node)


def _is_safe(node: Node) -> bool:
    """Whether it is a sum of float32 that are not negative."""
    x = node.args[0]
    is_sum = node.op == "sum" and _kind_of_operand(node) == "f32"
    return is_sum and (x.op in ("exp", "square") or range_of(x)[0] >= 0)


def _in_pairs(fn: Callable[[Lane, Lane], Lane], xs: list[Lane]) -> Lane:
    """All of them in one, by a tree: each step waits for few others."""
    while len(xs) > 1:
        pairs = zip(xs[::2], xs[1::2], strict=False)
        xs = [fn(a, b) for a, b in pairs] + xs[len(xs) // 2 * 2 :]
    return xs[0]


class Powers(Carried):
    """Powers of a number on their way along a row: those of one register at once."""

    def __init__(self, node: Node, x: Lane, width: int) -> None:
        code = x.code
        first, step, n = code.number(1, x.kind, width), x, 1
        while n < width:
            odd = code.numbers([bool(i & n) for i in range(width)], "i1")
            first = first * where(odd, step.spread(width), 1)
            step, n = step * step, 2 * n
        super().__init__(node, code, [first])
        self._step = step

    def taken(self) -> Lane:
        """The powers at hand; the next ones are those times another power."""
        (now,) = self.current
        self.current = [now * self._step.spread(self.width)]
        return now
