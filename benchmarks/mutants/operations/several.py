"""Pairs of rows, coefficients, and operations with several outputs."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import real
from ..operation import define

EPS = 1e-6


def column(x: Any) -> Any:
    return gnp.expand_dims(x, -1)


@define("structure", real("nm"), real("nm"))
def cosine_similarity(a: Any, b: Any) -> Any:
    return gnp.sum(_unit(a)[0] * _unit(b)[0], axis=1)


def _unit(a: Any) -> Any:
    r = gnp.sqrt(gnp.sum(a * a, axis=1, keepdims=True) + EPS)
    return a / r, r


@cosine_similarity.gradient
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    # d(u·v)/da = (v - (u·v) u) / |a|
    (u, r), (v, s), dy, y = _unit(a), _unit(b), column(dy), column(y)
    return dy * (v - y * u) / r, dy * (u - y * v) / s


@cosine_similarity.variant("dropped term")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    (u, r), (v, s), dy = _unit(a), _unit(b), column(dy)
    return dy * v / r, dy * u / s


@define("structure", real("nm"), real("nm"))
def distance(a: Any, b: Any) -> Any:
    d = a - b
    s = gnp.stop_gradient(gnp.max(gnp.abs(d), axis=1, keepdims=True))
    s = gnp.where(s > 0, s, gnp.ones_like(s))  # squares neither overflow nor vanish
    return s[:, 0] * gnp.sqrt(gnp.sum((d / s) ** 2, axis=1))


@distance.gradient
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    r = column(gnp.where(y > 0, y, gnp.ones_like(y)))
    da = column(dy) * ((a - b) / r)  # 0 is a subgradient where the rows meet
    return da, -da


@distance.variant("nan at zero")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    da = column(dy) * (a - b) / column(y)
    return da, -da


@distance.variant("dropped term")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    r = column(gnp.where(y > 0, y, gnp.ones_like(y)))
    return column(dy) * (a / r), -column(dy) * ((a - b) / r)


@define("structure", real("nk"), real("mk"))
def squared_distances(a: Any, b: Any) -> Any:
    return gnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2)


@squared_distances.gradient
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    terms = 2 * dy[:, :, None] * (a[:, None, :] - b[None, :, :])
    return gnp.sum(terms, axis=1), -gnp.sum(terms, axis=0)


@squared_distances.variant("wrong axis")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    terms = 2 * dy[:, :, None] * (a[:, None, :] - b[None, :, :])
    return gnp.sum(terms, axis=0), -gnp.sum(terms, axis=1)


@define("structure", real("nm"), real("4"))
def polynomial(x: Any, c: Any) -> Any:
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]))


@polynomial.gradient
def _(dy: Any, y: Any, x: Any, c: Any) -> Any:
    dc = [gnp.sum(dy), gnp.sum(dy * x), gnp.sum(dy * x * x), gnp.sum(dy * x * x * x)]
    return dy * (c[1] + x * (2 * c[2] + x * 3 * c[3])), gnp.stack(dc)


@polynomial.variant("dropped term")
def _(dy: Any, y: Any, x: Any, c: Any) -> Any:
    dc = [gnp.sum(dy), gnp.sum(dy * x), gnp.sum(dy * x * x), gnp.sum(dy * x * x * x)]
    return dy * (c[1] + x * 2 * c[2]), gnp.stack(dc)


@define("structure", real("nm"))
def sine_and_cosine(x: Any) -> Any:
    return gnp.sin(x), gnp.cos(x)


@sine_and_cosine.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy[0] * y[1] - dy[1] * y[0]


@sine_and_cosine.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy[0] * y[1]


@define("structure", real("nm"))
def mean_and_deviation(x: Any) -> Any:
    d = x - gnp.mean(x, axis=1, keepdims=True)
    return gnp.mean(x, axis=1), gnp.sqrt(gnp.mean(d * d, axis=1) + EPS)


@mean_and_deviation.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    d = x - column(y[0])
    return (column(dy[0]) + column(dy[1] / y[1]) * d) / gnp.shape(x)[1]


@mean_and_deviation.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy[1] / y[1]) * (x - column(y[0])) / gnp.shape(x)[1]


@mean_and_deviation.variant("approximation")
def _(dy: Any, y: Any, x: Any) -> Any:
    n = gnp.shape(x)[1]  # the deviation's divisor is n - 1
    return column(dy[0]) / n + column(dy[1] / y[1]) * (x - column(y[0])) / (n - 1)
