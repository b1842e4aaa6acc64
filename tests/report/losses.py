"""What the screenshot in the docs shows: right, wrong, inaccurate, on purpose."""

from __future__ import annotations

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def softplus(x):
    return gnp.logaddexp(x, 0.0), lambda dy: dy / (1 + gnp.exp(-x))


@gs.custom_gradient
def mean_square(x):
    return gnp.mean(x**2), lambda dy: 2 * x * dy


@gs.custom_gradient
def swish(x):
    s = 1 / (1 + gnp.exp(-x))
    return x * s, lambda dy: dy * (s + x * s)


@gs.custom_gradient
def softmax(x, axis=-1):
    e = gnp.exp(x - gnp.max(x, axis=axis, keepdims=True))
    y = e / gnp.sum(e, axis=axis, keepdims=True)
    return y, lambda dy: y * (dy - gnp.sum(dy * y, axis=axis, keepdims=True))


@gs.custom_gradient(surrogate="straight-through rounding")
def quantize(x):
    return gnp.round(x), lambda dy: dy
