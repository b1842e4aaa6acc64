"""Softmax without overflow.

Its gradient is dy y - y sum(dy y). Written out naively, exp(1000) overflows and the
probabilities are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def softmax(x, axis=-1):
    e = gnp.exp(x - gnp.max(x, axis=axis, keepdims=True))
    y = e / gnp.sum(e, axis=axis, keepdims=True)

    def grad(dy):
        share = dy * y
        return share - y * gnp.sum(share, axis=axis, keepdims=True)

    return y, grad


@softmax.example
def _():
    return gs.spec("rows classes")


def naive_softmax(x):
    e = gnp.exp(x)
    return e / gnp.sum(e, axis=-1, keepdims=True)


def first_probability(softmax):
    return lambda x: softmax(x)[0]


def report() -> Iterator[str]:
    x = np.array([1000.0, 999.0, 0.0])
    with np.errstate(all="ignore"):
        yield f"naive     {naive_softmax(x)}"
    yield f"stable    {softmax(x)}"
    yield f"gradient  {gs.grad(first_probability(softmax))(x)}"
    _, tangent = gs.jvp(softmax, (x,), (np.array([1.0, 0.0, 0.0]),))
    yield f"tangent   {tangent}  (forward mode, same rule)"


if __name__ == "__main__":
    print(*report(), sep="\n")
