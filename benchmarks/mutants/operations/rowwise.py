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


@define("row-wise", real("nm"))
def cumsum(x: Any) -> Any:
    return gnp.cumsum(x, axis=1)


@cumsum.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.flip(gnp.cumsum(gnp.flip(dy, axis=1), axis=1), axis=1)


@cumsum.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.flip(gnp.cumsum(gnp.flip(dy, axis=0), axis=0), axis=0)


@cumsum.variant("formula")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.cumsum(dy, axis=1)  # not from the end


@define("row-wise", real("nm"))
def cumprod(x: Any) -> Any:
    return gnp.cumprod(x, axis=1)


@cumprod.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    # dx_k = sum over i >= k of dy_i times the product of x_j for j <= i, j != k
    eye = gnp.eye(gnp.shape(x)[1], like=x) == 1
    others = gnp.where(eye, gnp.ones_like(x[:, None, :]), x[:, None, :])
    terms = gnp.triu(dy[:, None, :] * gnp.cumprod(others, axis=2))
    return gnp.sum(terms, axis=2)


@cumprod.variant("nan at zero")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.flip(gnp.cumsum(gnp.flip(dy * y, axis=1), axis=1), axis=1) / x


@define("row-wise", real("nm"))
def sort(x: Any) -> Any:
    return gnp.sort(x, axis=1)


@sort.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    places = gnp.argsort(gnp.argsort(x, axis=1), axis=1)
    return gnp.take_along_axis(dy, places, axis=1)


@sort.variant("formula")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.take_along_axis(dy, gnp.argsort(x, axis=1), axis=1)  # not inverted


@sort.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    places = gnp.argsort(gnp.argsort(x, axis=1), axis=1)
    return gnp.take_along_axis(dy, places, axis=0)
