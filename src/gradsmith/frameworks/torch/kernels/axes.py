"""PyTorch's kernels along axes: reductions, order, shapes, indices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .arrays import FLOATS

Axes = tuple[int, ...]


def _by_int64(kernel: Any) -> Any:
    """PyTorch multiplies no uint64; the bits of int64 are the same."""

    def run(x: Tensor, *options: Any) -> Tensor:
        if x.dtype is torch.uint64:
            return kernel(x.to(torch.int64), *options).to(torch.uint64)
        return kernel(x, *options)

    return run


def sum(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    if x.dtype in FLOATS:
        if len(axes) == x.ndim and not keepdims:
            return torch.sum(x)  # 0.5 us less than with all axes named
        return torch.sum(x, axes, keepdims)
    if x.dtype is torch.uint64:
        return torch.sum(x.to(torch.int64), axes, keepdims).to(torch.uint64)
    return torch.sum(x, axes, keepdims, dtype=x.dtype)


def count(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.sum(x, axes, keepdims)  # booleans add up in 64 bits


def mean(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    if len(axes) == x.ndim and not keepdims:
        return torch.mean(x)
    return torch.mean(x, axes, keepdims)


@_by_int64
def prod(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    for i in sorted(axes, reverse=True):  # PyTorch's takes one axis
        x = torch.prod(x, i, keepdim=keepdims, dtype=x.dtype)
    return x


def max(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.amax(x, axes, keepdims)


def min(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.amin(x, axes, keepdims)


def any(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.any(x, axes, keepdim=keepdims)


def all(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.all(x, axes, keepdim=keepdims)


def logsumexp(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return torch.logsumexp(x, axes, keepdim=keepdims)


softmax, log_softmax = torch.softmax, torch.log_softmax


def _orderable(x: Tensor) -> Tensor:
    return x.to(torch.uint8) if x.dtype is torch.bool else x


def argmax(x: Tensor, axis: int) -> Tensor:
    return torch.argmax(_orderable(x), axis)


def argmin(x: Tensor, axis: int) -> Tensor:
    return torch.argmin(_orderable(x), axis)


@_by_int64
def cumsum(x: Tensor, axis: int) -> Tensor:
    return torch.cumsum(x, axis, dtype=x.dtype)


@_by_int64
def cumprod(x: Tensor, axis: int) -> Tensor:
    return torch.cumprod(x, axis, dtype=x.dtype)


def sort(x: Tensor, axis: int) -> Tensor:
    return torch.sort(x, dim=axis, stable=True).values


def argsort(x: Tensor, axis: int) -> Tensor:
    return torch.argsort(x, dim=axis, stable=True)


def searchsorted(x1: Tensor, x2: Tensor, side: Any) -> Tensor:
    return torch.searchsorted(x1.detach().contiguous(), x2.contiguous(), side=side)


def reshape(x: Tensor, shape: Any) -> Tensor:
    return torch.reshape(x, shape)


def transpose(x: Tensor, axes: Axes) -> Tensor:
    return torch.permute(x, axes)


def expand_dims(x: Tensor, axis: int) -> Tensor:
    return torch.unsqueeze(x, axis)


squeeze, broadcast_to, flip = torch.squeeze, torch.broadcast_to, torch.flip
roll, tile, repeat = torch.roll, torch.tile, torch.repeat_interleave
concat, stack, unstack = torch.cat, torch.stack, torch.unbind


def unbroadcast(dy: Tensor, shape: Any) -> Tensor:
    return dy.sum_to_size(shape)


def split(x: Tensor, sections: int, axis: int) -> list[Tensor]:
    return list(torch.tensor_split(x, sections, axis))


def pad(x: Tensor, widths: Any, value: Tensor) -> Tensor:
    for i, width in enumerate(widths):
        first, last = (
            value.expand((*x.shape[:i], n, *x.shape[i + 1 :])) for n in width
        )
        x = torch.cat([first, x, last], i)
    return x


def _from_front(indices: Tensor, n: int) -> Tensor:
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + n, indices)


def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return x[(slice(None),) * axis + (indices.to(torch.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    # torch.take_along_dim would repeat an axis of length 1 instead of refusing.
    def along(a: Tensor) -> tuple[int, ...]:
        return (*rest[:axis], a.shape[axis], *rest[axis:])

    axis %= x.ndim
    shapes = [(*a.shape[:axis], *a.shape[axis + 1 :]) for a in (x, indices)]
    rest = torch.broadcast_shapes(*shapes)
    indices = _from_front(indices, x.shape[axis])
    return torch.gather(x.expand(along(x)), axis, indices.expand(along(indices)))


def diagonal(x: Tensor, offset: int) -> Tensor:
    return torch.diagonal(x, offset, -2, -1)


diag, tril, triu = torch.diag, torch.tril, torch.triu
