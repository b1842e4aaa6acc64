"""The logistic family: sigmoid, silu, softplus, log_sigmoid.

With e = exp(-|x|), which never overflows, every value and slope is a quotient of sums
of positive numbers, so that none loses its digits. A slope is an operation of its own,
for derivatives of every order.

Where e is multiplied by x the product may be a normal number though e is none, which
some frameworks count as 0. So e is then a product, taken factor by factor.
"""

from __future__ import annotations

from math import exp, factorial
from typing import Any

from .. import numpy as gnp
from ..operations.contract import zero
from ..operations.define import operation
from ..program.kernels.mode import in_kernel
from ..program.kernels.primitives import exp_times
from ._arguments import takes
from ._inputs import FAR, computed_by_numpy, held, kind, like, polynomial, precise


def _decay(x: Any) -> Any:
    return gnp.exp(-gnp.abs(x))


def _parts(x: Any) -> tuple[Any, Any, Any]:
    """|x|, held where exp(-|x|) is 0, that, and what it times another number is.

    The product has all digits where exp(-|x|) is below the normal numbers.
    """
    size = gnp.minimum(gnp.abs(x), FAR)
    if kind(x) is None:  # certified balls have no smallest number
        e = gnp.exp(-size)
        return size, e, lambda y: y * e
    if in_kernel():
        return size, gnp.exp(-size), lambda y: exp_times(-size, y)
    shift = 512.0 if kind(x) == "float64" else 64.0
    far = size > shift
    first = gnp.exp(gnp.where(far, shift - size, -size))  # shift - size is exact
    rest = gnp.where(far, exp(-shift), gnp.ones_like(size))
    return size, first * rest, lambda y: y * first * rest


@takes("x")
@operation
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), also accurate far below 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1000.0, 0.0, 1000.0])
    >>> gs.ops.sigmoid(x).round(3)
    array([0. , 0.5, 1. ])
    >>> gs.grad(lambda x: np.sum(gs.ops.sigmoid(x)))(x)
    array([0.  , 0.25, 0.  ])
    """
    z = precise(x)
    e = _decay(z)
    less = e / (1 + e)
    return like(gnp.where(z < 0, less, 1 - less), x)


@sigmoid.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    if kind(x) not in ("float32", "float64") or computed_by_numpy(x) or in_kernel():
        return dy * bump(x)
    return dy * _bump_with(x, y)


@operation
def _bump_with(x: Any, y: Any) -> Any:
    """bump(x), of which y = sigmoid(x) is a factor.

    So torch.compile computes it in the forward pass, which has all that it is made of,
    and takes 1.04 times as long as its own; with bump 1.17 (python -m benchmarks ops
    --framework torch --operation sigmoid).
    """
    e = _decay(x)
    less = e / (1 + e)
    return y * gnp.where(x < 0, 1 - less, less)


@_bump_with.vjp
def _(dy: Any, s: Any, x: Any, y: Any) -> Any:
    return {"x": _bump_slope(dy, s, x), "y": zero}


@operation
def both(x: Any) -> Any:
    """sigmoid(x) and sigmoid(-x), of one exp."""
    z = precise(x)
    e, below = _decay(z), z < 0
    more = 1 / (1 + e)
    less = e * more
    first, second = gnp.where(below, less, more), gnp.where(below, more, less)
    return like(first, x), like(second, x)


@both.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return (dy[0] - dy[1]) * bump(x)


@operation
def bump(x: Any) -> Any:
    """The slope of the sigmoid, sigmoid(x) sigmoid(-x)."""
    e = _decay(precise(x))
    return like(e / (1 + e * (2 + e)), x)


@bump.vjp
def _(dy: Any, s: Any, x: Any) -> Any:
    return _bump_slope(dy, s, x)


def _bump_slope(dy: Any, s: Any, x: Any) -> Any:
    # y (1 - y) has the slope y (1 - y) (1 - 2 y), and 1 - 2 y = -tanh(x / 2).
    return -dy * s * gnp.tanh(x / 2)


@takes("x")
@operation
def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1000.0, 0.0, 1000.0])
    >>> gs.ops.softplus(x).round(3)
    array([0.00e+00, 6.93e-01, 1.00e+03])
    >>> gs.grad(lambda x: np.sum(gs.ops.softplus(x)))(x)
    array([0. , 0.5, 1. ])
    """
    z = precise(x)
    return like(gnp.maximum(z, 0) + log1p_of_share(_decay(z)), x)


@softplus.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * sigmoid(x)


@takes("x")
@operation
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) without underflow.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1000.0, 0.0, 1000.0])
    >>> gs.ops.log_sigmoid(x).round(3)
    array([-1.00e+03, -6.93e-01,  0.00e+00])
    >>> gs.grad(lambda x: np.sum(gs.ops.log_sigmoid(x)))(x)
    array([1. , 0.5, 0. ])
    """
    z = precise(x)
    return like(gnp.minimum(z, 0) - log1p_of_share(_decay(z)), x)


@log_sigmoid.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * sigmoid(-x)


def log1p_of_share(e: Any) -> Any:
    """log(1 + e) for e from 0 to 1.

    In float32 a polynomial, which takes a third of the time of XLA's own.
    """
    if kind(e) != "float32":
        return gnp.log1p(e)
    return e * polynomial(e, _LOG1P)


_LOG1P = (  # log(1 + e) / e, off by less than 5.3e-9
    0.999999994656292, -0.49999892648063277, 0.3332971049891775, -0.24951616262872076,
    0.19663274257204805, -0.15269667074363288, 0.10543623795419527,
    -0.05637361283010733, 0.019542527261014103, -0.00317605701843196,
)  # fmt: skip


@takes("x")
@operation
def silu(x: Any) -> Any:
    """x sigmoid(x), also called swish.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1000.0, 0.0, 1000.0])
    >>> gs.ops.silu(x).round(3)
    array([  -0.,    0., 1000.])
    >>> gs.grad(lambda x: np.sum(gs.ops.silu(x)))(x)
    array([-0. ,  0.5,  1. ])
    """
    z = precise(x)
    size, e, scaled = _parts(z)
    return like(gnp.where(z < 0, scaled(-size), z) / (1 + e), x)


@silu.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * silu_slope(x)


@operation
def silu_slope(x: Any) -> Any:
    """The slope of silu: sigmoid(x) (1 + x sigmoid(-x)).

    Above 0 it is (1 + e + x e) / (1 + e)^2, below e (1 + x + e) / (1 + e)^2, whose
    numerator crosses 0.
    """
    z = precise(x)
    size, e, scaled = _parts(z)
    below = scaled(_crossing(-size, e))
    top = gnp.where(z < 0, below, 1 + e + size * e)
    return like(top / (1 + e * (2 + e)), x)


@silu_slope.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    z = held(x)
    return dy * bump(z) * (2 - z * gnp.tanh(z / 2))


# The root of 1 + x + exp(x), -1.2784645427610738, in parts: the first two are exact in
# float32, so that x - root keeps its digits.
_ROOT = (-1.2783203125, -0.00014424324035644531, 1.297928265020314e-08)
_AT_ROOT = 0.2784645427610738  # exp(root) = -1 - root


def _crossing(x: Any, e: Any) -> Any:
    """1 + x + exp(x) for x < 0, to all digits.

    With t = x - root it is t + exp(root) (exp(t) - 1), which near 0 is a short series.
    """
    t = x - _ROOT[0]
    near = gnp.abs(t) < 0.2
    if in_kernel():
        t = t - _ROOT[1] - _ROOT[2]
    else:
        # Chosen in between, the parts of the root are not added up by XLA
        t = gnp.where(near, gnp.where(near, t, 0.0) - _ROOT[1], 0.0) - _ROOT[2]
    series = t * _series(t, 12 if kind(x) == "float64" else 6)
    return gnp.where(near, series, (1 + x) + e)


def _series(t: Any, terms: int) -> Any:
    """1 + exp(root) (exp(t) - 1) / t."""
    y = _AT_ROOT / factorial(terms)
    for n in range(terms - 1, 1, -1):
        y = y * t + _AT_ROOT / factorial(n)
    return y * t + (1 + _AT_ROOT)
