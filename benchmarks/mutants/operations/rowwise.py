"""Row-wise: each row of the output depends on a whole row of the input."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import real
from ..operation import define

EPS = 1e-5


def mean(x: Any, axis: int = 1) -> Any:
    return gnp.mean(x, axis=axis, keepdims=True)


@define("row-wise", real("nm"))
def softmax(x: Any) -> Any:
    return gnp.special.softmax(x, axis=1)


@softmax.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return y * (dy - gnp.sum(dy * y, axis=1, keepdims=True))


@softmax.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return y * (dy - gnp.sum(dy * y, axis=0, keepdims=True))


@softmax.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return y * dy


@softmax.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(x)
    y = e / gnp.sum(e, axis=1, keepdims=True)
    return y * (dy - gnp.sum(dy * y, axis=1, keepdims=True))


@define("row-wise", real("nm"))
def log_softmax(x: Any) -> Any:
    return gnp.special.log_softmax(x, axis=1)


@log_softmax.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy - gnp.special.softmax(x, axis=1) * gnp.sum(dy, axis=1, keepdims=True)


@log_softmax.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy - gnp.special.softmax(x, axis=1) * gnp.sum(dy, axis=0, keepdims=True)


@log_softmax.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return 1 * dy


@log_softmax.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(x)
    p = e / gnp.sum(e, axis=1, keepdims=True)
    return dy - p * gnp.sum(dy, axis=1, keepdims=True)


@define("row-wise", real("nm"), real("m"), real("m"))
def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return _standardized(x)[0] * gain + bias


def _standardized(x: Any) -> Any:
    d = x - mean(x)
    r = 1 / gnp.sqrt(mean(d * d) + EPS)
    return d * r, r


@layer_norm.gradient
def _(dy: Any, y: Any, x: Any, gain: Any, bias: Any) -> Any:
    h, r = _standardized(x)
    dh = dy * gain
    dx = r * (dh - mean(dh) - h * mean(dh * h))
    return dx, gnp.sum(dy * h, axis=0), gnp.sum(dy, axis=0)


@layer_norm.variant("dropped term")
def _(dy: Any, y: Any, x: Any, gain: Any, bias: Any) -> Any:
    h, r = _standardized(x)
    dh = dy * gain
    return r * (dh - mean(dh)), gnp.sum(dy * h, axis=0), gnp.sum(dy, axis=0)


@layer_norm.variant("wrong axis")
def _(dy: Any, y: Any, x: Any, gain: Any, bias: Any) -> Any:
    h, r = _standardized(x)
    dh = dy * gain
    dx = r * (dh - mean(dh, axis=0) - h * mean(dh * h, axis=0))
    return dx, gnp.sum(dy * h, axis=0), gnp.sum(dy, axis=0)


@define("row-wise", real("nm"), real("m"))
def rms_norm(x: Any, gain: Any) -> Any:
    return x * gain / gnp.sqrt(mean(x * x) + EPS)


@rms_norm.gradient
def _(dy: Any, y: Any, x: Any, gain: Any) -> Any:
    r = 1 / gnp.sqrt(mean(x * x) + EPS)
    h, dh = x * r, dy * gain
    return r * (dh - h * mean(dh * h)), gnp.sum(dy * h, axis=0)


@rms_norm.variant("dropped term")
def _(dy: Any, y: Any, x: Any, gain: Any) -> Any:
    r = 1 / gnp.sqrt(mean(x * x) + EPS)
    return r * dy * gain, gnp.sum(dy * x * r, axis=0)


@rms_norm.variant("wrong axis")
def _(dy: Any, y: Any, x: Any, gain: Any) -> Any:
    r = 1 / gnp.sqrt(mean(x * x) + EPS)
    h, dh = x * r, dy * gain
    return r * (dh - h * mean(dh * h, axis=0)), gnp.sum(dy * h, axis=0)
