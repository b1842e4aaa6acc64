"""Softmax with the stable gradient y (dy - sum(dy y)).

Written out naively, exp(1000) overflows and autodiff returns NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    y = e / np.sum(e, axis=axis, keepdims=True)

    def grad(dy):
        return y * (dy - np.sum(dy * y, axis=axis, keepdims=True))

    return y, grad


def naive_softmax(x):
    e = np.exp(x)
    return e / np.sum(e, axis=-1, keepdims=True)


def first_probability(softmax):
    return lambda x: softmax(x)[0]


def report() -> Iterator[str]:
    x = np.array([1000.0, 999.0, 0.0])
    with np.errstate(all="ignore"):
        naive = gs.grad(first_probability(naive_softmax))(x)
        yield f"naive   {naive_softmax(x)}  {naive}"
    yield f"stable  {softmax(x)}  {gs.grad(first_probability(softmax))(x)}"
    _, tangent = gs.jvp(softmax, (x,), (np.array([1.0, 0.0, 0.0]),))
    yield f"forward mode from the same rule  {tangent}"


if __name__ == "__main__":
    print(*report(), sep="\n")
