"""Reductions over an axis."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import real
from ..operation import define


def column(dy: Any) -> Any:
    """One value per row, to be broadcast along the row."""
    return gnp.expand_dims(dy, -1)


@define("reduction", real("nm"))
def sum_columns(x: Any) -> Any:
    return gnp.sum(x, axis=0)


@sum_columns.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.broadcast_to(dy, gnp.shape(x))


@sum_columns.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.broadcast_to(column(dy), gnp.shape(x))


@define("reduction", real("nm"))
def mean_rows(x: Any) -> Any:
    return gnp.mean(x, axis=1)


@mean_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.broadcast_to(column(dy) / gnp.shape(x)[1], gnp.shape(x))


@mean_rows.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.broadcast_to(dy / gnp.shape(x)[1], gnp.shape(x))


@define("reduction", real("nm"))
def max_rows(x: Any) -> Any:
    return gnp.max(x, axis=1)


@max_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    hit = gnp.astype(x == column(y), dy.dtype)
    return column(dy) * hit / gnp.sum(hit, axis=1, keepdims=True)


@max_rows.variant("ties")
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.where(x == column(y), column(dy), 0 * column(dy))


@define("reduction", real("nm"))
def range_rows(x: Any) -> Any:
    return gnp.max(x, axis=1) - gnp.min(x, axis=1)


@range_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    high, low = _hits(dy, x)
    shares = high / gnp.sum(high, axis=1, keepdims=True)
    return column(dy) * (shares - low / gnp.sum(low, axis=1, keepdims=True))


def _hits(dy: Any, x: Any) -> Any:
    high = x == gnp.max(x, axis=1, keepdims=True)
    low = x == gnp.min(x, axis=1, keepdims=True)
    return gnp.astype(high, dy.dtype), gnp.astype(low, dy.dtype)


@range_rows.variant("ties")
def _(dy: Any, y: Any, x: Any) -> Any:
    high, low = _hits(dy, x)
    return column(dy) * (high - low)


@range_rows.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    high, _ = _hits(dy, x)
    return column(dy) * high / gnp.sum(high, axis=1, keepdims=True)


@define("reduction", real("nm"))
def logsumexp(x: Any) -> Any:
    return gnp.special.logsumexp(x, axis=1)


@logsumexp.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy) * gnp.special.softmax(x, axis=1)


@logsumexp.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy) * gnp.special.softmax(x, axis=0)


@logsumexp.variant("overflow")
def _(dy: Any, y: Any, x: Any) -> Any:
    e = gnp.exp(x)
    return column(dy) * e / gnp.sum(e, axis=1, keepdims=True)


@define("reduction", real("nm"))
def norm_rows(x: Any) -> Any:
    # Squares of x / max|x| neither overflow nor vanish
    s = gnp.stop_gradient(gnp.max(gnp.abs(x), axis=1, keepdims=True))
    s = gnp.where(s > 0, s, gnp.ones_like(s))
    return s[:, 0] * gnp.sqrt(gnp.sum((x / s) ** 2, axis=1))


@norm_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    r = column(gnp.where(y > 0, y, gnp.ones_like(y)))
    return column(dy) * (x / r)  # 0 is a subgradient at the tip


@norm_rows.variant("nan at zero")
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy) * x / column(y)


@norm_rows.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * x / (y + 1e-30)


@define("reduction", real("nm"))
def var_rows(x: Any) -> Any:
    return gnp.var(x, axis=1)


@var_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    d = x - gnp.mean(x, axis=1, keepdims=True)
    return column(dy) * 2 * d / gnp.shape(x)[1]


@var_rows.variant("dropped term")
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy) * 2 * x / gnp.shape(x)[1]


@var_rows.variant("wrong axis")
def _(dy: Any, y: Any, x: Any) -> Any:
    d = x - gnp.mean(x, axis=0, keepdims=True)
    return column(dy) * 2 * d / gnp.shape(x)[1]


@define("reduction", real("nm"))
def prod_rows(x: Any) -> Any:
    return gnp.prod(x, axis=1)


@prod_rows.gradient
def _(dy: Any, y: Any, x: Any) -> Any:
    # The product of the others, without a division: right also beside zeros
    itself = gnp.eye(gnp.shape(x)[1], like=x) == 1
    others = gnp.where(itself, gnp.ones_like(x[:, None, :]), x[:, None, :])
    return column(dy) * gnp.prod(others, axis=2)


@prod_rows.variant("nan at zero")
def _(dy: Any, y: Any, x: Any) -> Any:
    return column(dy * y) / x
