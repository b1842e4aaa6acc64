"""gelu, exact and by its approximation with tanh."""

from __future__ import annotations

from math import exp, pi, sqrt
from typing import Any

from .. import numpy as gnp
from ..operations.define import operation
from ..program.kernels.mode import in_kernel
from ..program.kernels.primitives import exp_times, fma, has_fma
from ._arguments import takes
from ._inputs import computed_by_numpy, kind, like, polynomial, wide, wrong
from .logistic import both, bump, sigmoid

_ROOT_2PI = sqrt(2 * pi)
# Beyond them exp(-x^2 / 2) is 0 in float32 and float64: an infinite x times that is NaN
_FAR, _NOTHING = 20.0, 60.0


@takes("x")
@operation
def gelu(x: Any, approximate: str = "none") -> Any:
    """x times the normal distribution function of x.

    `approximate="tanh"` is the approximation that some models were trained with.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-40.0, 0.0, 40.0])
    >>> gs.ops.gelu(x)
    array([-0.,  0., 40.])
    >>> gs.grad(lambda x: np.sum(gs.ops.gelu(x)))(x)
    array([0. , 0.5, 1. ])

    Raises
    ------
    GradsmithError
        If approximate is neither "none" nor "tanh".
    """
    _require_known(approximate)
    z = wide(x)
    if approximate == "tanh":
        share = sigmoid(_inner(gnp.clip(z, -_CUT, _CUT)))
        return like(gnp.maximum(z, -_CUT) * share, x)
    if kind(z) != "float32":
        return like(gnp.maximum(z, -_NOTHING) * _share(z), x)
    u = gnp.minimum(gnp.abs(z), _FAR)
    return like(gnp.maximum(z, 0) - _times_bell(u * _mills(u), u), x)


@gelu.vjp
def _(dy: Any, y: Any, x: Any, approximate: str) -> Any:
    return dy * gelu_slope(x, approximate)


@operation
def gelu_slope(x: Any, approximate: str = "none") -> Any:
    """The slope of gelu."""
    z = wide(x)
    if approximate == "tanh":
        z = gnp.clip(z, -_CUT, _CUT)
        p, rest = both(_inner(z))
        return like(p * (1 + z * _inner_slope(z) * rest), x)
    if kind(z) != "float32":
        z = gnp.clip(z, -_NOTHING, _NOTHING)
        return like(_share(z) + z * gnp.exp(-z * z / 2) / _ROOT_2PI, x)
    u = gnp.minimum(gnp.abs(z), _FAR)
    below = _times_bell(_slope_over_bell(u), u)
    return like(gnp.where(z < 0, below, 1 - below), x)


@gelu_slope.vjp
def _(dy: Any, y: Any, x: Any, approximate: str) -> Any:
    z = wide(x)
    if approximate == "tanh":
        z = gnp.clip(z, -_CUT, _CUT)
        t, dt = _inner(z), _inner_slope(z)
        inner = bump(t) * (2 - z * dt * gnp.tanh(t / 2)) * dt
        return dy * like(inner + z * bump(t) * (6 * _CUBIC * _SCALE * z), x)
    z = gnp.clip(z, -_NOTHING, _NOTHING)
    return dy * like(gnp.exp(-z * z / 2) * (2 - z * z) / _ROOT_2PI, x)


def _share(x: Any) -> Any:
    """The share of the normal distribution below x."""
    return gnp.special.erfc(x * -sqrt(0.5)) / 2


# In float32, of u = |x|: exp(-u^2 / 2) times what changes little, polynomials in
# t = (u - 4) / (u + 4), so that hardly a digit is lost. Their errors are below 2e-8.


def _times_bell(y: Any, u: Any) -> Any:
    """y exp(-u^2 / 2), with the part of u^2 that rounding takes: 40 ULP far out.

    Far out a factor comes last, so that the exponential is a normal number where the
    product is one: some frameworks count numbers below the normal ones as 0.
    """
    if computed_by_numpy(u):
        u = gnp.astype(u, "float64")
        return y * gnp.astype(gnp.exp(u * u * -0.5), "float32")
    if has_fma():  # 0.8 of the time
        square = u * u
        rest = fma(u, u, -square)
        return exp_times(square * -0.5, fma(y, rest * -0.5, y))
    a = gnp.floor(u * 128) / 128  # its square is exact
    square = u * u
    rest = (a * a - square) + (u - a) * (u + a)
    half = square * -0.5
    is_far = half < -64
    bell = gnp.exp(gnp.where(is_far, half + 44, half))  # this sum is exact
    product = (y - y * (rest / 2)) * bell
    return gnp.where(is_far, product * exp(-44), product)


def _mills(u: Any) -> Any:
    """The share below -u, over exp(-u^2 / 2)."""
    return polynomial((u - 4) / (u + 4), _SHARE) / (2 + 2 * u)


def _slope_over_bell(u: Any) -> Any:
    """The slope at -u over exp(-u^2 / 2): its root is a factor."""
    if in_kernel():
        off = _ROOT[0] - u + _ROOT[1] + _ROOT[2]
        return off * polynomial((u - 4) / (u + 4), _SLOPE)
    # The bounds keep XLA from adding up the parts of the root
    off = gnp.minimum(gnp.minimum(_ROOT[0] - u, 1.0) + _ROOT[1], 1.0) + _ROOT[2]
    return off * polynomial((u - 4) / (u + 4), _SLOPE)


# The root of the slope in parts, of which the first two are exact in float32
_ROOT = (0.751953125, -0.00016158819198608398, -1.211444945855772e-08)
_SHARE = (
    0.94410640001297, -0.19340695440769196, 0.028000304475426674, 0.05720096826553345,
    -0.06440863758325577, 0.035864926874637604, -0.009953029453754425,
    -0.0005267695523798466, 0.0013331264490261674, -0.00025077658938243985,
    -0.00019675753719639033,
)  # fmt: skip
_SLOPE = (
    0.4622112512588501, -0.10336589813232422, 0.060462482273578644,
    -0.028083419427275658, 0.00950946006923914, -0.0017867159331217408,
    -0.00016938002954702824, 0.0001778201258275658, -8.849846153680119e-07,
    -6.8432204898272175e-06,
)  # fmt: skip

# The approximation is x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)). Far out it is 0 or
# x, and the cube would overflow.
_SCALE, _CUBIC = 2 * sqrt(2 / pi), 0.044715
_CUT = 1e3


def _inner(x: Any) -> Any:
    return x * (_SCALE + _SCALE * _CUBIC * (x * x))


def _inner_slope(x: Any) -> Any:
    return _SCALE + 3 * _SCALE * _CUBIC * (x * x)


def _require_known(approximate: Any) -> None:
    if approximate not in ("none", "tanh"):
        raise wrong(
            "gelu", "approximate", "'none' or 'tanh'", repr(approximate), "give one"
        )
