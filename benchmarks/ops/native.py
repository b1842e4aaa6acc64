"""How each framework computes a value with its gradient, compiled as its users do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradsmith as gs
from benchmarks._peers import load

Call = Callable[..., Any]  # arguments and the upstream gradient: value and gradients


@dataclass(frozen=True)
class Framework:
    """Eager and compiled: `pull(fn)(dy, *xs)` is the value, then the gradients.

    The gradients are those of the first `n` arguments, which are floats.
    """

    name: str = "numpy"
    compiler: str = "eager"

    def array(self, x: Any) -> Any:
        return x

    def plain(self, x: Any) -> Any:
        return np.asarray(x)

    def pull(self, fn: Callable[..., Any], n: int) -> Call:
        def run(dy: Any, *xs: Any) -> Any:
            y, back = gs.vjp(lambda *some: fn(*some, *xs[n:]), *xs[:n])
            return (y, *back(dy))

        return run

    def compiled(self, fn: Callable[..., Any], n: int) -> Call:
        return self.pull(fn, n)

    def done(self, results: Any) -> Any:
        return results

    def by_hand(self, value: Any, gradient: Any) -> Callable[..., Any]:
        """An operation by the framework's own mechanism: `gradient(dy, x)`."""
        return gs.with_gradient(value, lambda dy, y, x: gradient(dy, x))


class TensorFlow(Framework):
    def array(self, x: Any) -> Any:
        return load("tensorflow").constant(x)

    def pull(self, fn: Callable[..., Any], n: int) -> Call:
        tf = load("tensorflow")

        def run(dy: Any, *xs: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(xs[:n])
                y = fn(*xs)
            return (y, *tape.gradient(y, xs[:n], dy))

        return run

    def compiled(self, fn: Callable[..., Any], n: int) -> Call:
        tf = load("tensorflow")
        return tf.function(self.pull(fn, n), jit_compile=True, autograph=False)

    def by_hand(self, value: Any, gradient: Any) -> Callable[..., Any]:
        tf = load("tensorflow")

        @tf.custom_gradient
        def op(x: Any) -> Any:
            return value(x), lambda dy: gradient(dy, x)

        return op


class Jax(Framework):
    def array(self, x: Any) -> Any:
        return load("jax.numpy").asarray(x)

    def pull(self, fn: Callable[..., Any], n: int) -> Call:
        jax = load("jax")

        def run(dy: Any, *xs: Any) -> Any:
            y, back = jax.vjp(lambda *some: fn(*some, *xs[n:]), *xs[:n])
            return (y, *back(dy))

        return run

    def compiled(self, fn: Callable[..., Any], n: int) -> Call:
        return load("jax").jit(self.pull(fn, n))

    def done(self, results: Any) -> Any:
        return load("jax").block_until_ready(results)

    def by_hand(self, value: Any, gradient: Any) -> Callable[..., Any]:
        op = load("jax").custom_vjp(value)
        op.defvjp(lambda x: (value(x), x), lambda x, dy: (gradient(dy, x),))
        return op


class Torch(Framework):
    def array(self, x: Any) -> Any:
        return load("torch").tensor(x)

    def plain(self, x: Any) -> Any:
        return x.detach().numpy()

    def pull(self, fn: Callable[..., Any], n: int) -> Call:
        torch = load("torch")

        def run(dy: Any, *xs: Any) -> Any:
            some = [x.detach().requires_grad_() for x in xs[:n]]
            y = fn(*some, *xs[n:])
            return (y, *torch.autograd.grad(y, some, dy))

        return run

    def compiled(self, fn: Callable[..., Any], n: int) -> Call:
        torch = load("torch")
        torch._dynamo.reset()
        return self.pull(torch.compile(lambda *xs: fn(*xs), fullgraph=True), n)

    def by_hand(self, value: Any, gradient: Any) -> Callable[..., Any]:
        torch = load("torch")

        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return value(x)

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                return gradient(dy, *ctx.saved_tensors)

        return Op.apply


FRAMEWORKS: Sequence[Framework] = (
    Framework(),
    TensorFlow("tensorflow", "XLA"),
    Jax("jax", "jit"),
    Torch("torch", "torch.compile"),
)
