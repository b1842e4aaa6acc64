"""Elementary functions of one argument, and of two corresponding ones.

Formulas are chosen for their accuracy in the tails: tanh' is 1/cosh(x)**2 rather than
1 - y**2, which has lost every digit from x = 9 on in float32.
"""

from __future__ import annotations

from math import inf, log, pi
from typing import Any

import numpy as np

from .._rule import composite, elementwise, linear
from .arithmetic import nonzero, positive

# Exponentials and logarithms

elementwise(np.exp, lambda y: y)
elementwise(np.exp2, lambda y: y * log(2))
elementwise(np.expm1, lambda x: np.exp(x))
elementwise(np.log, lambda x: 1 / nonzero(x), domain=(0, inf), note="0 at 0")
elementwise(np.log2, lambda x: 1 / nonzero(x * log(2)), domain=(0, inf), note="0 at 0")
elementwise(np.log10, lambda x: 1 / nonzero(x * log(10)), domain=(0, inf), note="0 at 0")
elementwise(np.log1p, lambda x: 1 / nonzero(1 + x), domain=(-1, inf), note="0 at -1")


# y = log(exp(x1) + exp(x2)): the partials are the shares of the two exponentials.
def _share(x1: Any, x2: Any, base: Any) -> Any:
    return 1 / (1 + base(x2 - x1))


elementwise(
    np.logaddexp,
    lambda x1, x2: _share(x1, x2, np.exp),
    lambda x1, x2: _share(x2, x1, np.exp),
)
elementwise(
    np.logaddexp2,
    lambda x1, x2: _share(x1, x2, np.exp2),
    lambda x1, x2: _share(x2, x1, np.exp2),
)

# Roots

elementwise(
    np.sqrt,
    lambda y: 0.5 / positive(y),
    domain=(0, inf),
    kinks=(0.0,),
    note="0 at 0, where the slope is infinite",
)
elementwise(
    np.cbrt,
    lambda y: 1 / (3 * nonzero(y) ** 2),
    kinks=(0.0,),
    note="0 at 0, where the slope is infinite",
)

# Trigonometry

elementwise(np.sin, lambda x: np.cos(x))
elementwise(np.cos, lambda x: -np.sin(x))
elementwise(np.tan, lambda y: 1 + y * y)
elementwise(
    np.arcsin,
    lambda x: 1 / np.sqrt(positive((1 - x) * (1 + x))),
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite",
)
elementwise(
    np.arccos,
    lambda x: -1 / np.sqrt(positive((1 - x) * (1 + x))),
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite",
)
elementwise(np.arctan, lambda x: 1 / (1 + x * x))


# y = atan2(x1, x2). The quotient of x2 by r, then by r, keeps r**2 from overflowing.
def _over_square(x: Any, x1: Any, x2: Any) -> Any:
    r = positive(np.hypot(x1, x2))
    return x / r / r


elementwise(
    np.arctan2,
    lambda x1, x2: _over_square(x2, x1, x2),
    lambda x1, x2: -_over_square(x1, x1, x2),
    note="0 at (0, 0)",
)
for _degrees, _factor in (
    (np.deg2rad, pi / 180),
    (np.radians, pi / 180),
    (np.rad2deg, 180 / pi),
    (np.degrees, 180 / pi),
):
    elementwise(_degrees, _factor)


# sinc(x) = sin(t)/t with t = pi*x. Its derivative (t cos t - sin t)/t**2 cancels near 0,
# where the series -t/3 + t**3/30 - ... (coefficients (-1)**k 2k/(2k+1)!) takes over.
_SINC_COEFFICIENTS = [-1 / 3]
for _k in range(2, 13):
    _SINC_COEFFICIENTS.append(
        -_SINC_COEFFICIENTS[-1] * _k / (_k - 1) / (2 * _k * (2 * _k + 1))
    )


def sinc_dx(x: Any) -> Any:
    t = pi * x
    small = np.abs(t) < 2
    near, far = np.where(small, t, 0), np.where(small, 2, t)
    series = 0
    for coefficient in reversed(_SINC_COEFFICIENTS):
        series = series * (near * near) + coefficient
    direct = (np.cos(far) - np.sin(far) / far) / far
    return pi * np.where(small, series * near, direct)


elementwise(np.sinc, sinc_dx)

# Hyperbolic functions


def _sech2(x: Any) -> Any:
    sech = 1 / np.cosh(x)
    return sech * sech


elementwise(np.sinh, lambda x: np.cosh(x))
elementwise(np.cosh, lambda x: np.sinh(x))
elementwise(np.tanh, _sech2)
elementwise(np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x))
elementwise(
    np.arccosh,
    lambda x: 1 / np.sqrt(positive((x - 1) * (x + 1))),
    domain=(1, inf),
    note="0 at 1, where the slope is infinite",
)
elementwise(
    np.arctanh,
    lambda x: 1 / nonzero((1 - x) * (1 + x)),
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite",
)

# Absolute values and choices. Ties share the cotangent, so that all shares sum to dy.


def sign_of(x: Any) -> Any:
    """x/|x|, conjugated if complex: the partial derivative of |x|; 0 at 0."""
    return np.conj(x) / positive(np.abs(x)) if np.iscomplexobj(x) else np.sign(x)


elementwise(np.absolute, sign_of, kinks=(0.0,), note="0 at 0")
elementwise(np.fabs, lambda x: np.sign(x), kinks=(0.0,), note="0 at 0")


def _chosen(x: Any, y: Any, other: Any) -> Any:
    """1 where x was chosen, 1/2 where it ties with the other."""
    return (x == y) * (1 - 0.5 * (x == other))


for _choice in (np.maximum, np.minimum, np.fmax, np.fmin):
    elementwise(
        _choice,
        lambda y, x1, x2: _chosen(x1, y, x2),
        lambda y, x1, x2: _chosen(x2, y, x1),
        note="1/2 to each where the arguments tie",
    )
