"""The elementwise operations of a loop nest on lanes: `computed(node, argument)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from ..fusion import Node, range_of
from . import functions
from .lanes import (
    Lane,
    abs_,
    copysign,
    fma,
    kind_of,
    maximum,
    minimum,
    rounded,
    sqrt,
    where,
)


def computed(node: Node, argument: Callable[[Node], Lane]) -> Lane:
    """A value that is computed of others, with what these are."""
    if node.op == "product":
        return _summed_products([argument(a) for a in node.args])
    fused = _product_and_number(node)
    if fused is not None:
        a, b, sign, c = fused
        factor = argument(a)
        return fma(-factor if sign < 0 else factor, argument(b), c)
    args = [argument(a) for a in node.args]
    if node.op == "convert":
        if node.dtype.name == "float16":  # computed in float32, but rounded here
            return args[0].converted("f32").converted("f16").converted("f32")
        return args[0].converted(kind_of(node.dtype))
    if node.op in ("exp", "exp_times"):
        return _OPERATIONS[node.op](*args, within=range_of(node.args[0]))
    return _OPERATIONS[node.op](*args)


def _product_and_number(node: Node) -> tuple[Node, Node, int, Any] | None:
    """The factors, their sign and the number of a sum of a product and a number.

    That is rounded once: polynomials take half the time. Of two products neither is:
    what is subtracted from a product to get the rounding error of it would be wrong.
    """
    if node.op not in ("add", "subtract") or node.dtype.kind != "f":
        return None
    x, y = node.args
    if x.op == "multiply" and y.op == "number":
        a, b = x.args
        return a, b, 1, y.data if node.op == "add" else -y.data
    if y.op == "multiply" and x.op == "number":
        a, b = y.args
        return a, b, 1 if node.op == "add" else -1, x.data
    return None


def _summed_products(args: Sequence[Lane]) -> Lane:
    """The sum of the products of the first half of some numbers with the second."""
    n = len(args) // 2
    found = args[0] * args[n]
    for a, b in zip(args[1:n], args[n + 1 :], strict=True):
        found = fma(a, b, found)
    return found


def _sign(x: Lane) -> Lane:
    return where(x > 0, 1, where(x < 0, -1, x + 0))  # of -0.0, 0.0


def _shifted(x: Lane, n: Lane) -> Lane:
    return x >> minimum(n, int(x.kind[1:]) - 1)  # a longer shift is no number


def _libm(fn: str) -> Callable[..., Lane]:
    return lambda x, *more: x.code.call(fn, x.kind, x, *more)


_OPERATIONS: dict[str, Callable[..., Lane]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "spread": lambda x: x,
    "total": lambda x: x,
    "totals": lambda x, *_: x,
    "absolute": abs_,
    "maximum": maximum,
    "minimum": minimum,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sqrt": sqrt,
    "sign": _sign,
    "copysign": copysign,
    "exp": functions.exp,
    "exp_times": functions.exp_times,
    "expm1": functions.expm1,
    "fma": fma,
    "log": functions.log,
    "log_sum": functions.log,
    "log1p": functions.log1p,
    "tanh": functions.tanh,
    "erf": functions.erf,
    "erfc": functions.erfc,
    "log2": _libm("log2"),
    "log10": _libm("log10"),
    "exp2": _libm("exp2"),
    "sin": _libm("sin"),
    "cos": _libm("cos"),
    "power": _libm("pow"),
    **{name: lambda x, n=name: rounded(x, n) for name in ("floor", "ceil", "trunc")},
    "rint": lambda x: rounded(x, "rint"),
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a.equals(b),
    "not_equal": lambda a, b: a.differs(b),
    "isnan": lambda x: x.is_nan(),
    "isfinite": lambda x: abs_(x) < inf,
    "isinf": lambda x: abs_(x).equals(inf),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda x: ~x,
    "right_shift": _shifted,
    "where": where,
}
