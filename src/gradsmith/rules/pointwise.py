"""Functions of corresponding elements that need more than a row in a table."""

from __future__ import annotations

from math import factorial, pi
from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.rule import composite, differentiable, elementwise, primitive
from .arithmetic import over, slope
from .axes import NoValue, is_given, refuse_out

# Clipping. The bounds belong to the interval, as in TensorFlow and PyTorch: an element
# that lies on a bound keeps its gradient. So one of the three arguments gets all of dy;
# if the bounds are in the wrong order it is the upper one.


@primitive
def clip_both(x: Any, low: Any, high: Any) -> Any:
    return np.clip(x, low, high)


@primitive
def clip_below(x: Any, low: Any) -> Any:
    return np.clip(x, low, None)


@primitive
def clip_above(x: Any, high: Any) -> Any:
    return np.clip(x, None, high)


_AT_BOUND = "an element on a bound keeps its gradient"
elementwise(
    clip_both,
    lambda x1, x2, x3: (x2 <= x1) & (x1 <= x3),
    lambda x1, x2, x3: (x1 < x2) & (x2 <= x3),
    lambda x1, x2, x3: (x1 > x3) | (x2 > x3),
    note=_AT_BOUND,
)
elementwise(clip_below, lambda x1, x2: x1 >= x2, lambda x1, x2: x1 < x2, note=_AT_BOUND)
elementwise(clip_above, lambda x1, x2: x1 <= x2, lambda x1, x2: x1 > x2, note=_AT_BOUND)


def clip(
    a: Any, a_min: Any = NoValue, a_max: Any = NoValue, out: Any = None, *,
    min: Any = NoValue, max: Any = NoValue, **options: Any,
) -> Any:  # fmt: skip
    refuse_out(np.clip, out)
    if options:
        raise UnsupportedOperationError(
            f"np.clip is differentiated without {', '.join(options)}=..."
        )
    if (a_min is not NoValue or a_max is not NoValue) and (
        min is not NoValue or max is not NoValue
    ):
        raise ValueError("give np.clip a_min and a_max or min and max, not both")
    low = min if a_min is NoValue else a_min
    high = max if a_max is NoValue else a_max
    if is_given(low) and is_given(high):
        return clip_both(a, low, high)
    if is_given(low):
        return clip_below(a, low)
    return clip_above(a, high) if is_given(high) else np.positive(a)


composite(np.clip, clip, note=_AT_BOUND)


# An array's method `clip` calls a ufunc, which has no public name but tells its own.
class _Asking:
    def __array_ufunc__(self, ufunc: Any, *_: Any) -> Any:
        return ufunc


_asking: Any = _Asking()
composite(np.ones(1).clip(_asking, 1.0), clip, note=_AT_BOUND)


# Replacing what is not finite by a constant; of a complex number, in each of its parts.


@primitive
def replace_nonfinite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    return np.nan_to_num(x, True, nan, posinf, neginf)


def finite_parts(dx: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.where(np.isfinite(x), dx, 0)
    real = np.where(np.isfinite(np.real(x)), np.real(dx), 0)
    return real + 1j * np.where(np.isfinite(np.imag(x)), np.imag(dx), 0)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if not copy:
        raise UnsupportedOperationError(
            "np.nan_to_num(copy=False) would change a tensor in place, which earlier "
            "operations may have saved. Leave copy out and use the result."
        )
    return replace_nonfinite(x, nan, posinf, neginf)


differentiable(
    replace_nonfinite,
    lambda dy, y, x, *constants: finite_parts(dy, x),
    lambda dx, y, x, *constants: finite_parts(dx, x),
    saves="x",
)
composite(np.nan_to_num, nan_to_num, note="0 where x is replaced by a constant")


# y = arg z: dy = Im(z' dz) / |z|**2. A real z has one of two angles.
def angle_partial(z: Any, deg: bool) -> Any:
    r = np.abs(z)
    return over(over(z, r), r) * (180 / pi if deg else 1)


def angle_vjp(dy: Any, y: Any, z: Any, deg: bool = False) -> Any:
    return dy * angle_partial(z, deg) * 1j if z.dtype.kind == "c" else None


def angle_jvp(dz: Any, y: Any, z: Any, deg: bool = False) -> Any:
    if z.dtype.kind != "c":
        return np.zeros(y.shape, y.dtype)
    return np.imag(np.conj(angle_partial(z, deg)) * dz)


differentiable(
    np.angle, angle_vjp, angle_jvp, saves="z", note="0 at 0 and for real numbers"
)

# y = x + whole periods
differentiable(
    np.unwrap,
    lambda dy, y, p, *_, **__: dy,
    lambda dp, y, p, *_, **__: dp,
    note="the number of periods added is constant",
)


# The Bessel functions I_n: the derivative of I_0 is I_1, that of I_n is the mean of its
# neighbours.
@primitive
def bessel_i(x: Any, n: int) -> Any:
    """The modified Bessel function of the first kind and whole order n."""
    t = np.abs(np.asarray(x, float))
    near = t < 25
    y = np.where(near, _series(np.where(near, t, 0), n), _tail(np.maximum(t, 25), n))
    return (y * np.sign(x) ** n).astype(x.dtype)


def _series(t: Any, n: int) -> Any:
    """sum over k of (t/2)**(2k + n) / (k! (k + n)!)"""
    term = total = (t / 2) ** n / factorial(n)
    for k in range(1, 60):
        term = term * (t * t / 4) / (k * (k + n))
        total = total + term
    return total


def _tail(t: Any, n: int) -> Any:
    """exp(t)/sqrt(2 pi t) times the sum of products of ((2j - 1)**2 - 4n**2) / (8jt)"""
    term = total = np.ones_like(t)
    for j in range(1, 30):
        term = term * ((2 * j - 1) ** 2 - 4 * n * n) / (8 * j * t)
        total = total + term
    return np.exp(t) * total / np.sqrt(2 * pi * t)


def bessel_partial(x: Any, n: int) -> Any:
    if n == 0:
        return slope(bessel_i(x, 1))
    return slope((bessel_i(x, n - 1) + bessel_i(x, n + 1)) / 2)


differentiable(
    bessel_i,
    lambda dy, y, x, n: dy * bessel_partial(x, n),
    lambda dx, y, x, n: dx * bessel_partial(x, n),
    saves="x",
)
elementwise(np.i0, lambda x: bessel_partial(x, 0))
