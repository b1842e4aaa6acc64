"""Two arguments that broadcast; the rules leave the sums to `partials`."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import nonzero, positive, real
from ..operation import define


@define("broadcast", real("nm"), real("m"))
def add_bias(a: Any, b: Any) -> Any:
    return a + b


@add_bias.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy, dy


@define("broadcast", real("nm"), real("n1"))
def multiply(a: Any, b: Any) -> Any:
    return a * b


@multiply.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * b, dy * a


@define("broadcast", real("nm"), nonzero("m"))
def divide(a: Any, b: Any) -> Any:
    return a / b


@divide.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy / b, -dy * y / b


@define("broadcast", positive("nm"), real("m"))
def power(a: Any, b: Any) -> Any:
    return gnp.power(a, b)


@power.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    # At a == 0: b a^(b-1) with b == 0 is zero, and so is a^b log a with b > 0
    constant = b == 0
    da = dy * b * gnp.power(a, gnp.where(constant, gnp.ones_like(b), b - 1))
    return da, dy * y * gnp.log(gnp.where(a > 0, a, gnp.ones_like(a)))


@power.variant("nan at zero")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * b * y / a, dy * y * gnp.log(a)


@define("broadcast", real("nm"), real("m"))
def hypot(a: Any, b: Any) -> Any:
    return gnp.hypot(a, b)


@hypot.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    r = gnp.where(y > 0, y, gnp.ones_like(y))  # 0 is a subgradient at the tip
    return dy * (a / r), dy * (b / r)


@hypot.variant("nan at zero")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * a / y, dy * b / y


@hypot.variant("overflow")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    r = gnp.sqrt(a * a + b * b + 1e-30)
    return dy * a / r, dy * b / r


@define("broadcast", real("nm"), real("m"))
def logaddexp(a: Any, b: Any) -> Any:
    return gnp.logaddexp(a, b)


@logaddexp.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * gnp.special.expit(a - b), dy * gnp.special.expit(b - a)


@logaddexp.variant("overflow")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    e, f = gnp.exp(a), gnp.exp(b)
    return dy * e / (e + f), dy * f / (e + f)


@define("broadcast", real("nm"), real("m"))
def maximum(a: Any, b: Any) -> Any:
    return gnp.maximum(a, b)


@maximum.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    half = 0.5 * dy  # a tie is shared
    return (
        gnp.where(a > b, dy, gnp.where(a == b, half, 0 * dy)),
        gnp.where(b > a, dy, gnp.where(a == b, half, 0 * dy)),
    )


@maximum.variant("ties")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return gnp.where(a >= b, dy, 0 * dy), gnp.where(b >= a, dy, 0 * dy)


@define("broadcast", real("nm"), real("m"))
def arctan2(a: Any, b: Any) -> Any:
    return gnp.arctan2(a, b)


@arctan2.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    r = gnp.hypot(a, b)
    r = gnp.where(r > 0, r, gnp.ones_like(r))
    return dy * (b / r) / r, -dy * (a / r) / r


@arctan2.variant("nan at zero")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * b / (a * a + b * b), -dy * a / (a * a + b * b)


@define("broadcast", real("nm"), positive("m"))
def xlogy(a: Any, b: Any) -> Any:
    return a * gnp.log(b)


@xlogy.partials
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy * gnp.log(b), dy * a / b
