"""Functions that not every framework has, in terms of those that all have.

A framework's own kernel is taken if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi, sqrt
from typing import Any

from ..frameworks._dtypes import finfo, is_inexact, name_of
from ..operations.operation import Operation
from . import _elementwise as e
from ._choosing import where
from ._stopping import stop_gradient

# NumPy's ufuncs


def copysign(x1: Any, x2: Any) -> Any:
    size = e.absolute(x1)
    return where(e.signbit(x2), e.negative(size), size)


def cbrt(x: Any) -> Any:
    zero = e.equal(x, 0)  # where the derivative is infinite, 0 stands for it
    size = e.power(e.absolute(where(zero, 1, x)), 1 / 3)
    return where(zero, stop_gradient(x), copysign(size, x))


def fmod(x1: Any, x2: Any) -> Any:
    """For what is positive it is the remainder, which is exact for any quotient."""
    minus = e.signbit(x1) if is_inexact(name_of(x1.dtype)) else e.less(x1, 0)
    rest = e.remainder(where(minus, e.negative(x1), x1), e.absolute(x2))
    return where(minus, e.negative(rest), rest)


def hypot(x1: Any, x2: Any) -> Any:
    """The result doesn't depend on the scale, so that it counts as a constant."""
    x1, x2 = e.absolute(x1), e.absolute(x2)
    top = stop_gradient(e.maximum(x1, x2))
    zero = e.equal(top, 0)
    scale = where(e.logical_or(zero, e.isinf(top)), 1, top)
    squares = e.square(x1 / scale) + e.square(x2 / scale)
    y = where(zero, 0, e.sqrt(where(zero, 1, squares)) * scale)
    return where(e.logical_or(e.isinf(x1), e.isinf(x2)), float("inf"), y)


def _logaddexp(base: float) -> Callable[[Any, Any], Any]:
    """The greater plus log(1 + base**-distance), to this base."""
    scale = log(base)

    def formula(x1: Any, x2: Any) -> Any:
        less = e.less(x1, x2)
        top, other = where(less, x2, x1), where(less, x1, x2)
        infinite = e.logical_and(e.equal(top, other), e.isinf(top))
        gap = where(infinite, 0, other - top)  # their distance would be NaN
        return top + e.log1p(e.exp(gap * scale)) / scale

    return formula


def _without_nan(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The greater, or the lesser, of two; the other if one is NaN."""

    def formula(x1: Any, x2: Any) -> Any:
        if not is_inexact(name_of(x1.dtype)):
            return choose(x1, x2)
        other = where(e.isnan(x1), x2, x1)
        return choose(other, where(e.isnan(x2), other, x2))

    return formula


e.FORMULAS.update(
    copysign=copysign,
    cbrt=cbrt,
    exp2=lambda x: e.exp(x * log(2)),
    fmod=fmod,
    hypot=hypot,
    logaddexp=_logaddexp(2.718281828459045),
    logaddexp2=_logaddexp(2),
    fmax=_without_nan(e.maximum),
    fmin=_without_nan(e.minimum),
)

# SciPy's functions, of float32 and float64. The rules say their derivatives, which are
# more precise than those of the approximations.

SPECIAL: dict[str, Callable[[Any], Any]] = {}


def _with_slope(slope: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Make an operation of a formula, with its derivative at x, where it is y."""

    def make(formula: Callable[[Any], Any]) -> Any:
        name = formula.__name__.strip("_")
        formula.__name__ = name
        operation = Operation(formula, closure=False)
        operation.vjp(lambda dy, y, x: dy * slope(y, x))
        operation.jvp(lambda dx, y, x: dx * slope(y, x))
        SPECIAL[name] = operation
        return operation

    return make


def _polynomial(x: Any, coefficients: Any) -> Any:
    y = coefficients[-1]
    for c in coefficients[-2::-1]:
        y = y * x + c
    return y


def _bell(x: Any, scale: float) -> Any:
    return e.exp(-x * x) * scale


# erfc(x) = t exp(-x**2 + P(4 t - 2)) with t = 2 / (2 + x) for x >= 0. P in Chebyshev's
# polynomials, found with 40 digits; its first 12 terms are enough for float32.
_ERFC = (
    -0.6513268598908546, 0.6419697923564901, 0.019476473204186034,
    -0.009561514786808813, -0.0009465953444818783, 0.00036683949785263015,
    4.2523324807007577e-05, -2.0278578112599372e-05, -1.6242900046186134e-06,
    1.3036558355896752e-06, 1.5626441675721757e-08, -8.52380958329675e-08,
    6.5290543242552716e-09, 5.059343639488198e-09, -9.913643247961036e-10,
    -2.2736493512969198e-10, 9.646771109968808e-11, 2.3942442603492457e-12,
    -6.886233277267023e-12, 8.946866038782777e-13, 3.129069322181897e-13,
    -1.1254241796865818e-13, 2.3996601767299607e-16, 7.218086753095194e-15,
    -1.6023956442572776e-15,
)  # fmt: skip


def _log_erfcx(x: Any) -> Any:
    """log(erfc(x)) + x**2 for x >= 0."""
    t = 2 / (x + 2)
    u = 4 * t - 2
    terms = _ERFC if finfo(x).eps < 1e-10 else _ERFC[:12]
    d, before = x * 0, x * 0  # Clenshaw's recurrence
    for c in terms[:0:-1]:
        d, before = u * d - before + c, d
    return e.log(t) + (terms[0] + u * d / 2 - before)


@_with_slope(lambda y, x: _bell(x, -2 / sqrt(pi)))
def _erfc(x: Any) -> Any:
    size = e.minimum(e.absolute(x), 30)  # beyond it is 0
    far = e.exp(_log_erfcx(size) - size * size)
    y = where(e.less(x, 0), 2 - far, far)
    return where(e.isnan(x), x, where(_is_small(x), 1 - _small_erf(x), y))


@_with_slope(lambda y, x: _bell(x, 2 / sqrt(pi)))
def _erf(x: Any) -> Any:
    return where(_is_small(x), _small_erf(x), 1 - _erfc(x))


def _is_small(x: Any) -> Any:
    return e.less(e.absolute(x), 0.5)


def _small_erf(x: Any) -> Any:
    """Its series: 2/sqrt(pi) times the sum of (-1)**n x**(2n+1) / (n! (2n+1))."""
    t = where(_is_small(x), x, 0)
    coefficients, factorial = [], 1.0
    for n in range(15):
        factorial *= max(n, 1)
        coefficients.append((-1) ** n / (factorial * (2 * n + 1)) * 2 / sqrt(pi))
    return t * _polynomial(t * t, coefficients)


@_with_slope(lambda y, x: _bell(x * sqrt(0.5), 1 / sqrt(2 * pi)))
def _ndtr(x: Any) -> Any:
    return 0.5 * _erfc(x * -sqrt(0.5))


@_with_slope(lambda y, x: e.exp(x * x * -0.5 - y) / sqrt(2 * pi))
def _log_ndtr(x: Any) -> Any:
    """Below -1 by erfcx, since ndtr underflows; above by log1p, as it is close to 1."""
    far = e.less(x, -1)
    z = where(far, x, -1) * -sqrt(0.5)
    tail = _log_erfcx(z) - z * z - log(2)
    return where(far, tail, e.log1p(-_ndtr(-where(far, -1, x))))


@_with_slope(lambda y, x: e.exp(y * y * 0.5) * sqrt(2 * pi))
def _ndtri(p: Any) -> Any:
    """Newton's steps for log(ndtr(x)) = log(p), in the lower half."""
    upper = e.greater(p, 0.5)
    q = where(upper, 1 - p, p)
    inside = e.greater(q, 0)
    goal = e.log(where(inside, q, 0.5))
    r = e.sqrt(-2 * goal)  # Hastings' rational approximation is off by 4.5e-4
    top = _polynomial(r, (2.515517, 0.802853, 0.010328))
    x = top / _polynomial(r, (1.0, 1.432788, 0.189269, 0.001308)) - r
    for _ in range(3):
        y = _log_ndtr(x)
        x = x - (y - goal) * e.exp(y + x * x * 0.5) * sqrt(2 * pi)
    x = where(upper, -x, x)
    edge = where(upper, float("inf"), float("-inf"))
    outside = e.logical_or(e.less(p, 0), e.greater(p, 1))
    x = where(inside, x, edge)
    return where(e.logical_or(outside, e.isnan(p)), float("nan"), x)


@_with_slope(lambda y, x: e.exp(y * y) * (sqrt(pi) / 2))
def _erfinv(x: Any) -> Any:
    """Near 0 by a Newton step on the series, elsewhere by ndtri of what is left."""
    size = e.absolute(x)
    small = e.less(size, 0.25)
    z = where(small, x, 0)
    y = z * sqrt(pi) / 2
    for _ in range(6):
        y = y - (_small_erf(y) - z) * e.exp(y * y) * (sqrt(pi) / 2)
    far = -_ndtri(where(small, 0.25, (1 - size) / 2)) * sqrt(0.5)
    return where(small, y, where(e.less(x, 0), -far, far))


_SHIFT = 8  # up to where the asymptotic series are used


def _shifted(x: Any) -> tuple[Any, Any]:
    """Where x is small and needs to be shifted, and the shifted x."""
    small = e.less(x, _SHIFT)
    return small, where(small, x + _SHIFT, x)


def _positive(x: Any) -> tuple[Any, Any]:
    """Where x is below 1/2, and 1 - x there: the reflected argument."""
    below = e.less(x, 0.5)
    return below, where(below, 1 - x, x)


_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
)  # fmt: skip
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


@_with_slope(lambda y, x: _digamma(x))
def _gammaln(x: Any) -> Any:
    """Stirling's series beyond 8; below 1/2 by reflection."""
    below, positive = _positive(x)
    small, z = _shifted(positive)
    product = positive
    for k in range(1, _SHIFT):
        product = product * (where(small, positive, 1) + k)
    series = _polynomial(1 / (z * z), _STIRLING) / z
    y = (z - 0.5) * e.log(z) - z + log(2 * pi) / 2 + series
    y = where(small, y - e.log(where(small, product, 1)), y)
    y = where(e.isinf(positive), positive, y)
    whole = e.logical_and(e.less_equal(x, 0), e.equal(e.floor(x), x))
    part = e.absolute(x - e.rint(x))  # sin(pi x) is that of what is left
    sine = e.sin(where(e.logical_or(whole, e.isinf(x)), 0.5, part) * pi)
    y = where(below, log(pi) - e.log(e.absolute(sine)) - y, y)
    return where(whole, float("inf"), where(e.isnan(x), x, y))


def _digamma(x: Any) -> Any:
    """Its asymptotic series beyond 8; below 1/2 by reflection."""
    below, positive = _positive(x)
    small, z = _shifted(positive)
    y = e.log(z) - 0.5 / z + _polynomial(1 / (z * z), _DIGAMMA) / (z * z)
    for k in range(_SHIFT):
        y = y - where(small, 1 / (where(small, positive, 1) + k), 0)
    whole = e.logical_and(e.less_equal(x, 0), e.equal(e.floor(x), x))
    part = where(e.logical_or(whole, e.isinf(x)), 0.25, x - e.floor(x))
    y = where(below, y - pi / e.tan(part * pi), y)
    y = where(whole, float("nan"), y)
    return where(e.equal(x, 0), -copysign(1 / where(e.equal(x, 0), 0 * x, 1), x), y)


SPECIAL["digamma"] = _digamma
