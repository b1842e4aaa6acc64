"""Arrays made from numbers: evenly spaced, filled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.rule import composite, convert, differentiable, fit

# y[k] = (1 - t[k]) * start + t[k] * stop, with t from 0 to 1


def fractions(num: int, endpoint: bool, axis: int, y: Any) -> Any:
    """The numbers t, along an axis of y."""
    t = np.arange(num) / max(num - bool(endpoint), 1)
    shape = [1] * y.ndim
    shape[axis] = num
    return t.reshape(shape).astype(y.dtype)


def linspace_vjp(
    dy: Any,
    y: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> tuple[Any, Any]:
    if retstep:
        (dy, dstep), (y, _) = dy, y
    t = fractions(num, endpoint, axis, y)
    dstart, dstop = np.sum(dy * (1 - t), axis), np.sum(dy * t, axis)
    if retstep and num > bool(endpoint):
        dstep = dstep / (num - bool(endpoint))
        return dstart - dstep, dstop + dstep
    return dstart, dstop


def linspace_jvp(
    dx: Any,
    y: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    dy = np.linspace(dx[0], dx[1], num, endpoint, retstep, axis=axis)
    return [*map(fit, dy, y)] if retstep else dy


differentiable(np.linspace, linspace_vjp, linspace_jvp, arrays=2)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    ndim = np.ndim(base)
    if ndim:
        ndim = max(map(np.ndim, (start, stop, base)))
        start, stop, base = (_with_axes(x, ndim) for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    y = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else convert(y, dtype)


def _with_axes(x: Any, ndim: int) -> Any:
    return np.reshape(x, (1,) * (ndim - np.ndim(x)) + np.shape(x))


composite(np.logspace, logspace)


# y = start**(1 - t) * stop**t, so dy/y = (1 - t) * dstart/start + t * dstop/stop.
def geomspace_vjp(
    dy: Any,
    y: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> tuple[Any, Any]:
    t = fractions(num, endpoint, axis, y)
    dy = dy * np.conj(y)
    dstart, dstop = np.sum(dy * (1 - t), axis), np.sum(dy * t, axis)
    return dstart / np.conj(start), dstop / np.conj(stop)


def geomspace_jvp(
    dx: Any,
    y: Any,
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    return y * np.linspace(dx[0] / start, dx[1] / stop, num, endpoint, axis=axis)


differentiable(
    np.geomspace, geomspace_vjp, geomspace_jvp, arrays=2, saves="y start stop"
)


# Of a full array the shape comes from a, the values from elsewhere.
differentiable(
    np.full_like,
    (
        lambda dy, y, a, fill_value, *_, **__: None,
        lambda dy, y, a, fill_value, *_, **__: dy,
    ),
    lambda dx, y, a, fill_value, *_, **__: dx[1],
    arrays=2,
)
