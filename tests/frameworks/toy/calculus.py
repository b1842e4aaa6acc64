"""Derivatives."""

import numpy as np

from . import Array, gradients


def vjp(fn, xs, *, nested=False, eager=False):
    xs = xs if nested else [Array(x.value) for x in xs]
    ys = fn(xs)
    return ys, lambda dys: gradients(ys, xs, dys)


def jvp(fn, xs, dxs, *, nested=False):
    # <u, J dx> = <pull(u), dx>, of which the gradient by u is J dx.
    ys = fn(xs)
    us = [Array(np.zeros(y.shape, y.dtype)) for y in ys]
    _, dys = second(fn, xs, us, dxs)
    return ys, [u if dy is None else dy for u, dy in zip(us, dys, strict=True)]


def second(fn, xs, dys, vs):
    xs, dys = [Array(x.value) for x in xs], [Array(dy.value) for dy in dys]
    pulled = vjp(fn, xs, nested=True)[1](dys)
    pairs = [(dx, v) for dx, v in zip(pulled, vs, strict=True) if dx is not None]
    found = gradients([dx for dx, _ in pairs], [*xs, *dys], [v for _, v in pairs])
    return found[: len(xs)], found[len(xs) :]
