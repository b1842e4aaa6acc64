"""Values of a nest as expressions of Triton: formulas of the names of others."""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite

import numpy as np

from ..fusion import FULL, ROW, SCALAR, Node, range_of
from .triton_functions import CALLS, INFIX, QUICK
from .triton_totals import TYPES

_COMPARED = ("equal", "not_equal")


class Formulas:
    """Formulas of a kernel, by what is known of ranges.

    They are quicker if it is `half`: if all that it reads and writes has 16 bits.
    """

    def __init__(self, *, half: bool) -> None:
        self._half = half
        self._ranges: dict[int, tuple[float, float]] = {}

    def formula(self, node: Node, name: Callable[[Node], str]) -> str:
        args = [name(a) for a in node.args]
        if node.op == "convert":
            return _converted(args[0], node.args[0], node)
        if any(a.op == "index" for a in node.args) and node.op in _COMPARED:
            args = [f"{a}.to(tl.int32)" for a in args]  # a row is shorter than 2**31
        if node.op == "divide" and node.dtype == np.float32:
            return self._quotient(node, *args)
        if node.op == "log1p" and node.dtype == np.float32:
            least, most = self._range(node.args[0])
            if self._half and least >= 0 and most <= 1.01:
                return f"quick_log1p_to_1({args[0]})"
            if not self._half and least >= 0 and most <= 2.0**60:
                return f"log1p_held({args[0]})"
        if self._half and node.op in QUICK:
            return QUICK[node.op].format(*args)
        if node.op in INFIX:
            return f"{args[0]} {INFIX[node.op]} {args[1]}"
        return CALLS[node.op].format(*args)

    def _quotient(self, node: Node, a: str, b: str) -> str:
        x, y = node.args
        if y.op == "number" and abs(frexp(y.data)[0]) == 0.5 and abs(y.data) < 2.0**126:
            return f"{a} * {1 / float(y.data)!r}"
        if y.op == "number" and self.is_middling(y):
            return f"over_number({a}, {b})"
        if node.kind == FULL and y.kind in (ROW, SCALAR):
            is_safe = self.is_middling(y)
            return f"{a} * inverse({b})" if is_safe else f"over_row({a}, {b})"
        if self._half and x.op == "number" and 2.0**-64 < abs(x.data) < 2.0**64:
            return f"{a} * quick_inverse({b})" if x.data != 1 else f"quick_inverse({b})"
        if self.is_middling(y):
            if self._half:
                return f"{a} * quick_inverse({b})"
            if all(abs(end) <= 2.0**60 for end in self._range(x)):
                return f"near_over({a}, {b})"
        if self._half:
            return f"{a} / {b}"
        return f"over({a}, {b})" if x.op != "number" or x.data != 1 else f"inverse({b})"

    def is_middling(self, node: Node) -> bool:
        """Whether it is far from 0 and from what is infinite."""
        least, most = self._range(node)
        if most < 0:
            least, most = -most, -least
        return least >= 2.0**-60 and most <= 2.0**60

    def _range(self, node: Node) -> tuple[float, float]:
        return range_of(node, self._ranges)


def read(raw: str, node: Node, stored: str) -> str:
    """What was read of a dtype, as that of a node."""
    if stored == "bool":
        return f"({raw} != 0)"
    if stored == node.dtype.name:
        return raw
    return f"{raw}.to({TYPES[node.dtype.name]})"


def literal(node: Node) -> str:
    """A number."""
    x = node.data
    if node.dtype == bool:
        return str(bool(x))
    if node.dtype.kind in "iu":
        return str(int(x))
    x = float(x)
    if isfinite(x):
        return repr(x)
    return f'float("{x}")'


def _converted(x: str, node: Node, to: Node) -> str:
    if to.dtype == bool:
        return f"({x} != 0)"
    return f"{x}.to({TYPES[to.dtype.name]})" if node.op != "number" else x
