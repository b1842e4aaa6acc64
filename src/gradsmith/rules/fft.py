"""Discrete Fourier transforms.

All are linear over the reals. Up to its scale, a transform of length n multiplies by
the matrix W with W[j, k] = exp(-2 pi i j k / n), whose adjoint is n times its inverse.
So the transpose of one transform is another with the other scale, cut or padded back to
the length of x. The transforms of real data keep half of a spectrum that is its own
mirror image: there, most frequencies stand for two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.rule import linear
from .products import conj

# The scale 1/n stands with the inverse ("backward", the default), with the transform
# ("forward"), or its root with both: the adjoint of the one with it has none.
_OPPOSITE: dict[Any, Any] = {
    None: "forward",
    "backward": "forward",
    "forward": "backward",
    "ortho": "ortho",
}


def fitted(dx: Any, n: int, axis: int) -> Any:
    """Cut or pad with zeros to length n, as the transforms do with their argument."""
    size = dx.shape[axis]
    if size == n:
        return dx
    if size > n:
        keep = [slice(None)] * dx.ndim
        keep[axis] = slice(n)
        return dx[tuple(keep)]
    shape = list(dx.shape)
    shape[axis] = n - size
    return np.concatenate([dx, np.zeros(shape, dx.dtype)], axis=axis)


def mirrored(dy: Any, n: int, axis: int, factor: float) -> Any:
    """Multiply the frequencies of half a spectrum that stand for two of n."""
    size = dy.shape[axis]
    weights = np.full(size, factor, np.finfo(dy.dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[n // 2 :] = 1
    shape = [1] * dy.ndim
    shape[axis] = size
    return dy * np.reshape(weights, shape)


# --- one axis: from dy, the length n of the transform and x's length -----------------


def fft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    return fitted(np.fft.ifft(dy, n, axis, _OPPOSITE[norm]), size, axis)


def ifft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    return fitted(np.fft.fft(dy, n, axis, _OPPOSITE[norm]), size, axis)


def rfft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    dy = mirrored(dy, n, axis, 0.5)
    return fitted(np.fft.irfft(dy, n, axis, _OPPOSITE[norm]), size, axis)


def irfft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    dx = np.fft.rfft(dy, n, axis, _OPPOSITE[norm])
    return fitted(mirrored(dx, n, axis, 2.0), size, axis)


# hfft(x) is irfft(conj(x)), and ihfft(x) is conj(rfft(x)), with the other scale.


def hfft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    return conj(irfft_back(dy, n, size, axis, _OPPOSITE[norm]))


def ihfft_back(dy: Any, n: int, size: int, axis: int, norm: Any) -> Any:
    return rfft_back(conj(dy), n, size, axis, _OPPOSITE[norm])


def usual_length(back: Any, size: int) -> int:
    """The length of a transform that is not told one."""
    return 2 * (size - 1) if back in (irfft_back, hfft_back) else size


def single(back: Any) -> Callable[..., Any]:
    """The transpose of a transform along one axis."""

    def transpose(
        dy: Any, y: Any, a: Any, n: Any = None, axis: int = -1, norm: Any = None,
        out: Any = None,
    ) -> Any:  # fmt: skip
        size = a.shape[axis]
        return back(dy, n or usual_length(back, size), size, axis, norm)

    return transpose


linear(np.fft.fft, single(fft_back))
linear(np.fft.ifft, single(ifft_back))
linear(np.fft.rfft, single(rfft_back))
linear(np.fft.irfft, single(irfft_back))
linear(np.fft.hfft, single(hfft_back))
linear(np.fft.ihfft, single(ihfft_back))

# --- several axes --------------------------------------------------------------------

# NumPy makes them of the above, an axis after the other, each finding the lengths that
# those before have left. The transposes go the other way.


def several(
    last: Any, others: Any, axes: Any = None, last_first: bool = True
) -> Callable[..., Any]:
    """The transpose of a transform whose last axis is special."""
    default = axes

    def transpose(
        dy: Any, y: Any, a: Any, s: Any = None, axes: Any = default, norm: Any = None,
        out: Any = None,
    ) -> Any:  # fmt: skip
        sizes, steps = list(a.shape), []
        axes, lengths = axes_and_lengths(sizes, axes, s, last is irfft_back)
        order = range(len(axes))
        for i in reversed(order) if last_first else order:
            back = last if i == order[-1] else others
            axis, n, size = axes[i], lengths[i], sizes[axes[i]]
            n = n or usual_length(back, size)
            steps.append((back, n, size, axis))
            sizes[axis] = n // 2 + 1 if back is rfft_back else n
        for back, n, size, axis in reversed(steps):
            dy = back(dy, n, size, axis, norm)
        return dy

    return transpose


def axes_and_lengths(
    shape: Any, axes: Any, s: Any, inverse_real: bool
) -> tuple[list[int], list[Any]]:
    """The axes as numbers from 0, and the lengths along them (None: the usual one)."""
    if axes is None:
        axes = range(-len(shape if s is None else s), 0)
    if s is None:
        lengths = [shape[a] for a in axes]
        if inverse_real:
            lengths[-1] = None
    else:
        lengths = [shape[a] if n == -1 else n for a, n in zip(axes, s, strict=True)]
    return [a % len(shape) for a in axes], lengths


_PLANE = (-2, -1)
linear(np.fft.fftn, several(fft_back, fft_back))
linear(np.fft.fft2, several(fft_back, fft_back, _PLANE))
linear(np.fft.ifftn, several(ifft_back, ifft_back))
linear(np.fft.ifft2, several(ifft_back, ifft_back, _PLANE))
linear(np.fft.rfftn, several(rfft_back, fft_back))
linear(np.fft.rfft2, several(rfft_back, fft_back, _PLANE))
linear(np.fft.irfftn, several(irfft_back, ifft_back, last_first=False))
linear(np.fft.irfft2, several(irfft_back, ifft_back, _PLANE, last_first=False))

linear(np.fft.fftshift, lambda dy, y, x, axes=None: np.fft.ifftshift(dy, axes))
linear(np.fft.ifftshift, lambda dy, y, x, axes=None: np.fft.fftshift(dy, axes))
