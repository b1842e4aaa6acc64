"""Running sums and products.

No rule divides by x, so zeros among the factors of a product are nothing special.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, linear, primitive
from .axes import as_type, conj, kept_shape, swapped, swapped_back


def cumsum_transpose(
    dy: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    axis = 0 if axis is None else axis
    total = np.flip(np.cumsum(np.flip(dy, axis), axis=axis), axis)
    return np.reshape(total, a.shape)


linear(np.cumsum, cumsum_transpose)


def without_initial(y: Any, axis: Any, include_initial: bool) -> Any:
    """A running result without the element that `include_initial` put before it."""
    if not include_initial:
        return y
    axis = 0 if axis is None else axis % y.ndim
    return y[(slice(None),) * axis + (slice(1, None),)]


def cumulative_sum_transpose(
    dy: Any, y: Any, x: Any, *, axis: Any = None, dtype: Any = None, out: Any = None,
    include_initial: bool = False,
) -> Any:  # fmt: skip
    return cumsum_transpose(without_initial(dy, axis, include_initial), y, x, axis)


linear(np.cumulative_sum, cumulative_sum_transpose)

# Linear recurrences, which are what running products are made of


@primitive
def scan(a: Any, b: Any) -> Any:
    """Solve t[k] = b[k] + a[k] t[k-1] along the last axis; a[0] is not looked at."""
    n = b.shape[-1]
    if n < 2:
        return b
    # Two steps at a time give the odd ones: the recurrence of half the length
    #   t[k] = (b[k] + a[k] b[k-1]) + a[k] a[k-1] t[k-2],
    # so a million steps take twenty rounds of array operations.
    a1, b1 = a[..., 1::2], b[..., 1::2]
    half = b1.shape[-1]
    a0, b0 = a[..., ::2][..., :half], b[..., ::2][..., :half]
    odd = scan(a0 * a1, b1 + a1 * b0)
    t = np.empty(b.shape, odd.dtype)
    t[..., 1::2] = odd
    t[..., 0] = b[..., 0]
    t[..., 2::2] = b[..., 2::2] + a[..., 2::2] * odd[..., : (n - 1) // 2]
    return t


@primitive
def scan_back(a: Any, b: Any) -> Any:
    """Solve t[k] = b[k] + a[k+1] t[k+1]: the transpose of `scan` in b."""
    flipped = np.concatenate([a[..., :1], a[..., :0:-1]], axis=-1)
    return scan(flipped, b[..., ::-1])[..., ::-1]


def delayed(t: Any, first: float) -> Any:
    """`first`, then all elements of each line but the last."""
    head = np.full((*t.shape[:-1], min(t.shape[-1], 1)), first, t.dtype)
    return np.concatenate([head, t[..., :-1]], axis=-1)


# t = scan(a, b), with u = scan_back(a', dt) the cotangent of the right-hand side:
#   db[k] = u[k],   da[k] = u[k] t[k-1]'
def scan_vjp(dt: Any, y: Any, a: Any, b: Any) -> Any:
    u = scan_back(conj(a), dt)
    return u * conj(delayed(y, 0)), u


def scan_back_vjp(dt: Any, y: Any, a: Any, b: Any) -> Any:
    u = scan(conj(a), dt)
    return delayed(u, 0) * conj(y), u


differentiable(scan, scan_vjp, saves="a y", arrays=2)
differentiable(scan_back, scan_back_vjp, saves="a y", arrays=2)

# Products


# y[k] = x[k] y[k-1]:   dy[k] = dx[k] y[k-1] + x[k] dy[k-1]
def running_product_push(dx: Any, x: Any, y: Any) -> Any:
    return scan(x, dx * delayed(y, 1))


def running_product_pull(dy: Any, x: Any, y: Any) -> Any:
    return conj(delayed(y, 1)) * scan_back(conj(x), dy)


def cumprod_vjp(
    dy: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    lines = [swapped(v, axis) for v in (dy, as_type(a, y.dtype), y)]
    return swapped_back(running_product_pull(*lines), a.shape, axis)


def cumprod_jvp(
    dx: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    lines = [swapped(as_type(v, y.dtype), axis) for v in (dx, a, y)]
    return swapped_back(running_product_push(*lines), y.shape, axis)


differentiable(np.cumprod, cumprod_vjp, cumprod_jvp, saves="a y")


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
    include_initial: bool = False,
) -> Any:  # fmt: skip
    if axis is None and x.ndim != 1:
        raise ValueError("np.cumulative_prod of an array with several axes needs axis=")
    axis = 0 if axis is None else axis
    y = np.cumprod(x, axis=axis, dtype=dtype)
    if not include_initial:
        return y
    one = np.ones(kept_shape(y.shape, axis), y.dtype)
    return np.concatenate([one, y], axis=axis)


composite(np.cumulative_prod, cumulative_prod)
