"""Elementwise with kinks; at a kink the rule is a valid subgradient."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import real
from ..operation import define


@define("piecewise", real("nm"))
def leaky_relu(x: Any) -> Any:
    return gnp.where(x > 0, x, 0.1 * x)


@leaky_relu.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.where(x > 0, dy, 0.1 * dy)


@define("piecewise", real("nm"))
def absolute(x: Any) -> Any:
    return gnp.abs(x)


@absolute.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * gnp.sign(x)


@absolute.variant("nan at zero")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * x / gnp.abs(x)


@define("piecewise", real("nm"))
def huber(x: Any) -> Any:
    size = gnp.abs(x)
    return gnp.where(size < 1, 0.5 * x * x, size - 0.5)


@huber.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * gnp.clip(x, -1.0, 1.0)


@huber.variant("approximation")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * x / gnp.sqrt(1 + x * x)


@define("piecewise", real("nm"))
def hard_tanh(x: Any) -> Any:
    return gnp.clip(x, -1.0, 1.0)


@hard_tanh.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.where(gnp.abs(x) < 1, dy, 0 * dy)


@hard_tanh.variant("approximation")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy / gnp.cosh(gnp.clip(x, -9.0, 9.0)) ** 2


@define("piecewise", real("nm"))
def elu(x: Any) -> Any:
    return gnp.where(x > 0, x, gnp.expm1(gnp.minimum(x, 0)))


@elu.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * gnp.where(x > 0, gnp.ones_like(x), gnp.exp(gnp.minimum(x, 0)))


@elu.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    # y where e^x = y + 1 was meant
    return dy * gnp.where(x > 0, gnp.ones_like(x), y)


@define("piecewise", real("nm"))
def softsign(x: Any) -> Any:
    return x / (1 + gnp.abs(x))


@softsign.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    d = 1 + gnp.abs(x)
    return dy / d / d


@softsign.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy / (1 + gnp.abs(x))


@define("piecewise", real("nm"))
def relu_squared(x: Any) -> Any:
    positive = gnp.maximum(x, 0)
    return positive * positive


@relu_squared.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return 2 * dy * gnp.maximum(x, 0)
