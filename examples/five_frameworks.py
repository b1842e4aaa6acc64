"""One definition, five frameworks, same numbers.

The softmax of `stable_softmax.py`, differentiated and compiled by each framework:
reverse mode, and forward mode from the same rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

import gradsmith as gs
from examples.stable_softmax import softmax


def first(x):
    return softmax(x)[0]


def by_numpy(x, dx):
    gradient = gs.compile(gs.grad(first))(x)
    return gradient, gs.jvp(softmax, (x,), (dx,))[1]


def by_tensorflow(x, dx):
    import tensorflow as tf

    @tf.function
    def derivatives(x, dx):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = first(x)
        with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:
            z = softmax(x)
        return tape.gradient(y, x), accumulator.jvp(z)

    gradient, tangent = derivatives(tf.constant(x), tf.constant(dx))
    return gradient.numpy(), tangent.numpy()


def by_jax(x, dx):
    import jax

    gradient = jax.jit(jax.grad(first))(x)
    _, tangent = jax.jit(lambda x, dx: jax.jvp(softmax, (x,), (dx,)))(x, dx)
    return np.asarray(gradient), np.asarray(tangent)


def by_torch(x, dx):
    import torch

    x, dx = torch.tensor(x, requires_grad=True), torch.tensor(dx)
    torch.compile(first, fullgraph=True, backend="aot_eager")(x).backward()
    _, tangent = torch.func.jvp(softmax, (x.detach(),), (dx,))
    return x.grad.numpy(), tangent.numpy()


def by_mlx(x, dx):
    import mlx.core as mx

    x, dx = mx.array(x), mx.array(dx)
    gradient = mx.compile(mx.grad(first))(x)
    _, (tangent,) = mx.jvp(softmax, [x], [dx])
    return np.array(gradient), np.array(tangent)


# By package: its name in words, what runs it, and what compiles it
FRAMEWORKS = {
    "numpy": ("NumPy", by_numpy, "gs.compile"),
    "tensorflow": ("TensorFlow", by_tensorflow, "tf.function"),
    "jax": ("JAX", by_jax, "jax.jit"),
    "torch": ("PyTorch", by_torch, "torch.compile"),
    "mlx": ("MLX", by_mlx, "mx.compile"),
}


def report() -> Iterator[str]:
    x, dx = np.array([1000, 999], np.float32), np.array([1, 0], np.float32)
    yield f"{'':12}{'reverse mode':23}{'forward mode':23}compiled by"
    for package, (name, run, compiler) in FRAMEWORKS.items():
        if find_spec(package):
            gradient, tangent = (f"{a:9.6f} {b:9.6f}" for a, b in run(x, dx))
            yield f"{name:11} {gradient}    {tangent}    {compiler}"


if __name__ == "__main__":
    print(*report(), sep="\n")
