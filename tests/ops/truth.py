"""True values and gradients of a formula in Arb's balls, and their limits at infinity.

An infinite argument is stood in for by numbers beyond every format, of several sizes
where there are several: where the results agree there is a limit, else NaN is right.
The gradient is a central difference, right to hundreds of digits in 7000 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from flint import arb, ctx

from gradsmith.tools.audit.formats import Format

BITS = 7000
STEP = arb(2) ** -500
EXPONENTS = [3600, 8000, 18000]  # of stand-ins: no quotient of two is in any format
INF, NAN = float("inf"), float("nan")


class Truth:
    """What is right at each place: a number as hi + lo, NaN where there is none.

    `either` says that NaN is right as well: an argument is NaN that has no effect.
    `outside` the domain the value is NaN, and the slope may be anything.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.hi, self.lo = np.full(shape, NAN), np.zeros(shape)
        self.either = np.zeros(shape, bool)
        self.outside = np.zeros(shape, bool)

    def put(self, at: Any, results: Sequence[Any], either: bool, nan: bool) -> None:
        found = dict(map(_parts, results))
        declared = isinstance(results[0], float)
        if len(found) == 1 and (declared or not nan):
            self.hi[at], self.lo[at] = found.popitem()
        self.either[at] = either


def _parts(y: Any) -> tuple[Any, Any]:
    if isinstance(y, float):
        return y, 0.0
    if not y.is_finite():
        return NAN, 0.0
    y = y.mid()
    if abs(y) >= arb(2) ** 1100:
        return (INF if y > 0 else -INF), 0.0
    hi = float(y)
    if abs(hi) == INF:
        return hi, 0.0
    return hi, float(y - hi)


def stand_ins(point: Sequence[float]) -> list[list[arb]]:
    """The points of which the results must agree to be the limit at this one."""
    infinite = [i for i, x in enumerate(point) if abs(x) == INF]
    n = len(infinite)
    orders = [[0] * n]
    if n > 1:
        orders += [[*range(n)], [*range(n)][::-1]]
    fills = [0.3, 0.7] if any(x != x for x in point) else [None]
    found = []
    for order, fill in product(orders, fills):
        sizes = dict(zip(infinite, order, strict=True))
        found.append([_stand_in(x, sizes.get(i), fill) for i, x in enumerate(point)])
    return found


def _stand_in(x: float, size: int | None, fill: float | None) -> arb:
    if x != x:
        return arb(fill)
    if size is None:
        return arb(x)
    return (arb(2) ** EXPONENTS[size]) * (1 if x > 0 else -1)


def slope(fn: Callable[..., arb], xs: Sequence[arb], k: int) -> arb:
    """The derivative of fn by its k-th argument."""
    h = abs(xs[k]) * STEP if xs[k] != 0 else arb(2) ** -1800
    above, below = list(xs), list(xs)
    above[k], below[k] = xs[k] + h, xs[k] - h
    return (fn(*above) - fn(*below)) / (2 * h)


class Precisely:
    """Arb in many bits."""

    def __enter__(self) -> None:
        self.before, ctx.prec = ctx.prec, BITS

    def __exit__(self, *_: Any) -> None:
        ctx.prec = self.before


def units_off(got: Any, truth: Truth, form: Format, scale: Any) -> Any:
    """How many units in the last place results are off; infinite if of another kind.

    The unit is that of the truth, or of `scale` where that is larger.
    """
    got = np.asarray(got, np.float64)
    with np.errstate(all="ignore"):
        over = np.abs(truth.hi) >= form.overflow
        hi = np.where(over, np.sign(truth.hi) * INF, truth.hi)
        size = np.maximum(np.abs(hi), np.where(np.isfinite(scale), scale, 0.0))
        unit = np.ldexp(1.0, form.ulp_exponent(np.where(np.isfinite(size), size, 1.0)))
        off = np.abs((got - hi) - truth.lo) / unit
        # Infinity is the number after the largest
        near = np.isfinite(hi) & (np.abs(hi) >= form.overflow * (1 - 2.0**-form.digits))
        off = np.where(near & (got == np.sign(hi) * INF), 1.0, off)
    off = np.where((got == hi) & np.isinf(hi), 0.0, off)
    off = np.where(np.isnan(got) & (np.isnan(hi) | truth.either), 0.0, off)
    return np.where(truth.outside, 0.0, np.where(np.isnan(off), INF, off))
