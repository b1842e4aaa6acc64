"""Along the rows: running sums and products, and sorting."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import real
from ..operation import define


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
