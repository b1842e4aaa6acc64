"""Elementwise and smooth: one derivative each, right also in the tails."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import gradsmith.numpy as gnp

from ..inputs import nonzero, positive, real
from ..operation import define

expit = gnp.special.expit


@define("elementwise", real("nm"))
def tanh(x: Any) -> Any:
    return gnp.tanh(x)


@tanh.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * (1 - y * y)


@tanh.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * (1 - y)


@tanh.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(2 * x)
    return dy * 4 * e / (e + 1) ** 2


@define("elementwise", real("nm"))
def softplus(x: Any) -> Any:
    return gnp.maximum(x, 0) + gnp.log1p(gnp.exp(-gnp.abs(x)))


@softplus.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * expit(x)


@softplus.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(x)
    return dy * e / (1 + e)


@define("elementwise", real("nm"))
def sigmoid(x: Any) -> Any:
    return expit(x)


@sigmoid.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * y * (1 - y)


@sigmoid.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * y


@sigmoid.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(-x)
    return dy * e / (1 + e) ** 2


@define("elementwise", real("nm"))
def gelu(x: Any) -> Any:
    return x * 0.5 * (1 + gnp.special.erf(x / sqrt(2)))


@gelu.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    # Φ(x) + x φ(x)
    return dy * (_normal_cdf(x) + x * gnp.exp(-x * x / 2) / sqrt(2 * pi))


def _normal_cdf(x: Any) -> Any:
    return 0.5 * (1 + gnp.special.erf(x / sqrt(2)))


@gelu.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * _normal_cdf(x)


@gelu.variant("approximation")
def _(dy: Any, y: Any, x: Any) -> Any:
    # The derivative of x (1 + tanh u) / 2
    u = sqrt(2 / pi) * (x + 0.044715 * x * x * x)
    t, du = gnp.tanh(u), sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x)
    return dy * 0.5 * (1 + t + x * (1 - t * t) * du)


@define("elementwise", real("nm"))
def silu(x: Any) -> Any:
    return x * expit(x)


@silu.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    s = expit(x)
    return dy * s * (1 + x * (1 - s))


@silu.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * expit(x)


@silu.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(x)
    s = e / (1 + e)
    return dy * s * (1 + x * (1 - s))


@define("elementwise", real("nm"))
def cube(x: Any) -> Any:
    return x * x * x


@cube.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return 3 * x * x * dy


@define("elementwise", nonzero("nm"))
def reciprocal(x: Any) -> Any:
    return 1 / x


@reciprocal.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return -dy * y * y


@define("elementwise", positive("nm"))
def log(x: Any) -> Any:
    return gnp.log(x)


@log.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy / x


@log.variant("approximation")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy / (x + 1e-3)


@define("elementwise", positive("nm"))
def square_root(x: Any) -> Any:
    return gnp.sqrt(x)


@square_root.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return 0.5 * dy / y  # gradient +inf at x == 0


@define("elementwise", real("nm"))
def gaussian(x: Any) -> Any:
    return gnp.exp(-x * x)


@gaussian.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return -2 * x * y * dy
