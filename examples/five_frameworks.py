"""One definition, five frameworks: the third example's softmax, portable.

`gradsmith.numpy` has NumPy's names for the arrays of every framework.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def softmax(x, axis=-1):
    e = gnp.exp(x - gnp.max(x, axis=axis, keepdims=True))
    y = e / gnp.sum(e, axis=axis, keepdims=True)

    def grad(dy):
        return y * (dy - gnp.sum(dy * y, axis=axis, keepdims=True))

    return y, grad


@softmax.example
def _():
    return gs.spec("rows classes")


def by_numpy(x):
    gradient = gs.grad(lambda x: softmax(x)[0])(x)
    return gradient, gs.jvp(softmax, (x,), (x,))[1]


def by_tensorflow(x):
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = softmax(x)[0]
    with tf.autodiff.ForwardAccumulator(x, x) as accumulator:
        z = softmax(x)
    return tape.gradient(y, x).numpy(), accumulator.jvp(z).numpy()


def by_jax(x):
    import jax

    gradient = jax.jit(jax.grad(lambda x: softmax(x)[0]))(x)
    _, tangent = jax.jvp(softmax, (jax.numpy.asarray(x),), (jax.numpy.asarray(x),))
    return np.asarray(gradient), np.asarray(tangent)


def by_torch(x):
    import torch

    x = torch.tensor(x, requires_grad=True)
    softmax(x)[0].backward()
    _, tangent = torch.func.jvp(softmax, (x.detach(),), (x.detach(),))
    return x.grad.numpy(), tangent.numpy()


def by_mlx(x):
    import mlx.core as mx

    x = mx.array(x)
    gradient = mx.compile(mx.grad(lambda x: softmax(x)[0]))(x)
    _, (tangent,) = mx.jvp(softmax, [x], [x])
    return np.array(gradient), np.array(tangent)


FRAMEWORKS = {
    "numpy": by_numpy,
    "tensorflow": by_tensorflow,
    "jax": by_jax,
    "torch": by_torch,
    "mlx": by_mlx,
}


def report() -> Iterator[str]:
    x = np.array([1000.0, 999.0, 0.0], np.float32)
    yield f"{'':11} {'reverse mode':36} forward mode, same rule"
    for name, run in FRAMEWORKS.items():
        if find_spec(name) is None:
            yield f"{name:11} is not installed"
        else:
            gradient, tangent = run(x)
            yield f"{name:11} {gradient!s:36} {tangent}"


if __name__ == "__main__":
    print(*report(), sep="\n")
