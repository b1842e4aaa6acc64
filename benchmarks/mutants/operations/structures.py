"""Indexing, sliding, pairs of rows, and several outputs."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import between, index, real
from ..operation import define
from . import several  # noqa: F401  (its operations belong to this family)

T = gnp.matrix_transpose


@define("structure", real("nm"), real("3"))
def convolve(x: Any, w: Any) -> Any:
    """y_i = sum over j of w_j x_(i+j), along the rows."""
    width = gnp.shape(x)[1] - 2
    return sum(w[j] * x[:, j : j + width] for j in range(3))


@convolve.gradient
def _(dy: Any, y: Any, x: Any, w: Any) -> Any:
    width = gnp.shape(dy)[1]
    dx = sum(w[j] * gnp.pad(dy, ((0, 0), (j, 2 - j))) for j in range(3))
    dw = [gnp.sum(dy * x[:, j : j + width]) for j in range(3)]
    return dx, gnp.stack(dw)


@convolve.variant("formula")
def _(dy: Any, y: Any, x: Any, w: Any) -> Any:
    width = gnp.shape(dy)[1]
    dx = sum(w[2 - j] * gnp.pad(dy, ((0, 0), (j, 2 - j))) for j in range(3))
    dw = [gnp.sum(dy * x[:, j : j + width]) for j in range(3)]
    return dx, gnp.stack(dw)  # the kernel is turned round


@define("structure", between("n", 0.1, 2.9), real("m"))
def interpolate(t: Any, v: Any) -> Any:
    """Linear between the values v at 0, 1, 2 and so on, and beyond the ends."""
    left, right, w = _neighbours(t, v)
    return (1 - w) * (left @ v[:, None])[:, 0] + w * (right @ v[:, None])[:, 0]


def _neighbours(t: Any, v: Any) -> Any:
    """Which values each t lies between, one-hot, and its distance from the left."""
    last = gnp.shape(v)[0] - 2
    i = gnp.stop_gradient(gnp.clip(gnp.floor(t), 0.0, float(last)))
    places = gnp.astype(gnp.arange(last + 2, like=t), t.dtype)
    left = gnp.astype(gnp.equal(i[:, None], places), v.dtype)
    right = gnp.astype(gnp.equal(i[:, None] + 1, places), v.dtype)
    return left, right, t - i


@interpolate.gradient
def _(dy: Any, y: Any, t: Any, v: Any) -> Any:
    left, right, w = _neighbours(t, v)
    dt = dy * ((right - left) @ v[:, None])[:, 0]
    dv = T(left) @ (dy * (1 - w))[:, None] + T(right) @ (dy * w)[:, None]
    return dt, dv[:, 0]


@interpolate.variant("dropped term")
def _(dy: Any, y: Any, t: Any, v: Any) -> Any:
    left, right, w = _neighbours(t, v)
    dt = dy * ((right - left) @ v[:, None])[:, 0]
    return dt, (T(left) @ (dy * (1 - w))[:, None])[:, 0]


@define("structure", real("nm"), index("n5", below=4))
def gather(x: Any, places: Any) -> Any:
    return gnp.take_along_axis(x, places, axis=1)


def _one_hot(places: Any, count: int, dtype: Any) -> Any:
    columns = gnp.arange(count, dtype=places.dtype, like=places)
    return gnp.astype(gnp.equal(gnp.expand_dims(places, -1), columns), dtype)


@gather.gradient
def _(dy: Any, y: Any, x: Any, places: Any) -> Any:
    hot = _one_hot(places, gnp.shape(x)[1], x.dtype)
    return gnp.sum(dy[:, :, None] * hot, axis=1), None


@gather.variant("formula")
def _(dy: Any, y: Any, x: Any, places: Any) -> Any:
    # What is read twice gets one of its gradients: assigned, not accumulated
    hot = _one_hot(places, gnp.shape(x)[1], x.dtype)
    later = gnp.flip(gnp.cumsum(gnp.flip(hot, axis=1), axis=1), axis=1)
    return gnp.sum(dy[:, :, None] * hot * (later == 1), axis=1), None


@define("structure", real("nm"), index("n", below=2))
def segment_sum(x: Any, segments: Any) -> Any:
    return T(_one_hot(segments, 2, x.dtype)) @ x


@segment_sum.gradient
def _(dy: Any, y: Any, x: Any, segments: Any) -> Any:
    return _one_hot(segments, 2, x.dtype) @ dy, None


@segment_sum.variant("formula")
def _(dy: Any, y: Any, x: Any, segments: Any) -> Any:
    return _one_hot(1 - segments, 2, x.dtype) @ dy, None


@define("structure", real("nk"), real("mk"), real("mk"))
def attention(q: Any, k: Any, v: Any) -> Any:
    return _weights(q, k) @ v


def _weights(q: Any, k: Any) -> Any:
    return gnp.special.softmax(q @ T(k) / gnp.shape(q)[1] ** 0.5, axis=1)


@attention.gradient
def _(dy: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
    p, dp = _weights(q, k), dy @ T(v)
    ds = p * (dp - gnp.sum(dp * p, axis=1, keepdims=True)) / gnp.shape(q)[1] ** 0.5
    return ds @ k, T(ds) @ q, T(p) @ dy


@attention.variant("dropped term")
def _(dy: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
    p, dp = _weights(q, k), dy @ T(v)
    ds = p * dp / gnp.shape(q)[1] ** 0.5
    return ds @ k, T(ds) @ q, T(p) @ dy


@attention.variant("wrong axis")
def _(dy: Any, y: Any, q: Any, k: Any, v: Any) -> Any:
    p, dp = _weights(q, k), dy @ T(v)
    ds = p * (dp - gnp.sum(dp * p, axis=0, keepdims=True)) / gnp.shape(q)[1] ** 0.5
    return ds @ k, T(ds) @ q, T(p) @ dy
