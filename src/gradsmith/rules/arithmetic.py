"""Sums, products, quotients, powers.

Where the derivative is infinite or undefined (a pole, an infinite slope, outside the
domain) a rule gives 0, so that a branch masked by `np.where` never poisons a gradient.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._rule import composite, elementwise


def nonzero(x: Any) -> Any:
    """x, with infinity for 0: 1/nonzero(x) is 0 at the pole, to every order."""
    if isinstance(x, (int, float)):
        return x or inf
    return np.where(x == 0, inf, x)


def positive(x: Any) -> Any:
    """x where it is positive, else (also where it is NaN) infinity.

    Of a complex x only 0 and NaN are replaced.
    """
    if x.dtype.kind == "c":
        return np.where((x == 0) | (x != x), inf, x)
    return np.where(x > 0, x, inf)


elementwise(np.add, 1, 1)
elementwise(np.subtract, 1, -1)
elementwise(np.negative, -1)
elementwise(np.positive, 1)
elementwise(np.multiply, lambda x2: x2, lambda x1: x1)
elementwise(np.square, lambda x: 2 * x)
elementwise(
    np.true_divide,
    lambda x2: 1 / nonzero(x2),
    lambda y, x2: -finite(y) / nonzero(x2),
    note="0 where the denominator is 0",
)
elementwise(np.reciprocal, lambda x: -1 / nonzero(x) ** 2, kinks=(0.0,), note="0 at 0")


def finite(y: Any) -> Any:
    """y, with 0 where it is infinite or NaN."""
    return np.where(np.isfinite(y), y, 0)


# y = x1**x2. With respect to the base: x2 * x1**(x2 - 1), whose only trouble is 0 to a
# power below 0: infinite, hence 0 by the convention above (and 0 if x2 is 0 anyway).
def power_dx1(x1: Any, x2: Any) -> Any:
    if isinstance(x2, (int, float)) and x2 >= 1:
        return 2 * x1 if x2 == 2 else x2 * x1 ** (x2 - 1)
    pole = (x1 == 0) & (np.real(x2) < 1)
    return x2 * np.where(pole, inf, x1) ** np.where(pole, -1, x2 - 1)


# With respect to the exponent: y * log(x1); 0 at x1 = 0 (y is 0 there, or a pole), and 0
# for a negative real base, whose powers exist at whole exponents only.
def power_dx2(y: Any, x1: Any) -> Any:
    if np.iscomplexobj(x1):
        return finite(y) * np.log(np.where(x1 == 0, 1, x1))
    return finite(y) * np.log(np.where(x1 > 0, x1, 1))


elementwise(np.power, power_dx1, power_dx2, note="0 where 0 meets a power below 1")
elementwise(np.float_power, power_dx1, power_dx2, note="0 where 0 meets a power below 1")

# y = x1 - x2 * floor(x1 / x2)
elementwise(np.remainder, 1, lambda x1, x2: -np.floor(x1 / nonzero(x2)))
elementwise(np.fmod, 1, lambda x1, x2: -np.trunc(x1 / nonzero(x2)))
composite(np.divmod, lambda x1, x2: (np.floor_divide(x1, x2), np.remainder(x1, x2)))
composite(np.modf, lambda x: (x - np.trunc(x), np.trunc(x)))

# y = x1 * 2**x2 with whole x2; y = |x1| with the sign of x2
elementwise(np.ldexp, lambda x2: 2.0**x2, None)
elementwise(
    np.copysign,
    lambda x1, x2: np.sign(x1) * np.copysign(1, x2),
    None,
    kinks=(0.0,),
    note="0 at x1 = 0; the sign of x2 is constant",
)

# y = sqrt(x1**2 + x2**2)
elementwise(
    np.hypot,
    lambda y, x1: x1 / positive(y),
    lambda y, x2: x2 / positive(y),
    note="0 at (0, 0)",
)

