"""The five frameworks behind one interface, for tests that hold in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.core import trees
from gradsmith.core.arrays import FRAMEWORKS as REGISTRY


@dataclass(frozen=True)
class Engine:
    """NumPy arrays and the embedded engine: the reference for the others."""

    name: str = "numpy"
    calls_back = True  # compiled and mapped code can run Python code

    def array(self, x: Any, dtype: Any = None) -> Any:
        return np.asarray(x, dtype)

    def plain(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def gradients(self, loss: Any, *xs: Any) -> tuple[Any, ...]:
        return gs.grad(loss, argnums=tuple(range(len(xs))))(*xs)

    def tangent(self, fn: Any, xs: Any, dxs: Any) -> Any:
        return gs.jvp(fn, xs, dxs)[1]

    def compiled(self, fn: Any) -> Any:
        return fn

    def compiled_gradients(self, loss: Any) -> Any:
        """The function that computes the gradients, compiled as far as it can be."""
        return self.compiled(lambda *xs: self.gradients(loss, *xs))

    def quickly(self, fn: Any) -> Any:
        """The function, compiled where an eager run would take longer."""
        return fn

    def batched(self, fn: Any, *xs: Any) -> Any:
        """The function of each of the stacked arguments."""
        return np.stack([fn(*each) for each in zip(*xs, strict=True)])


class TensorFlow(Engine):
    def array(self, x: Any, dtype: Any = None) -> Any:
        return self.module.convert_to_tensor(np.asarray(x, dtype))

    @property
    def module(self) -> Any:
        return import_module("tensorflow")

    def gradients(self, loss: Any, *xs: Any) -> tuple[Any, ...]:
        with self.module.GradientTape() as tape:
            tape.watch(xs)
            y = loss(*xs)
        return tuple(tape.gradient(y, xs, unconnected_gradients="zero"))

    def tangent(self, fn: Any, xs: Any, dxs: Any) -> Any:
        with self.module.autodiff.ForwardAccumulator(xs, dxs) as accumulator:
            y = fn(*xs)
        return accumulator.jvp(y, unconnected_gradients="zero")

    def compiled(self, fn: Any) -> Any:
        return self.module.function(fn, autograph=False)

    def batched(self, fn: Any, *xs: Any) -> Any:
        return self.module.vectorized_map(lambda each: fn(*each), xs)


class Jax(Engine):
    def array(self, x: Any, dtype: Any = None) -> Any:
        return import_module("jax.numpy").asarray(np.asarray(x, dtype))

    @property
    def module(self) -> Any:
        return import_module("jax")

    def gradients(self, loss: Any, *xs: Any) -> tuple[Any, ...]:
        return self.module.grad(loss, argnums=tuple(range(len(xs))))(*xs)

    def tangent(self, fn: Any, xs: Any, dxs: Any) -> Any:
        return self.module.jvp(fn, tuple(xs), tuple(dxs))[1]

    def compiled(self, fn: Any) -> Any:
        return self.module.jit(fn)

    def quickly(self, fn: Any) -> Any:
        return self.module.jit(fn)  # eager, JAX compiles every operation by itself

    def batched(self, fn: Any, *xs: Any) -> Any:
        return self.module.vmap(fn)(*xs)


class Torch(Engine):
    def array(self, x: Any, dtype: Any = None) -> Any:
        return self.module.as_tensor(np.array(x, dtype))

    @property
    def module(self) -> Any:
        return import_module("torch")

    def plain(self, x: Any) -> np.ndarray:
        return x.detach().numpy()

    def gradients(self, loss: Any, *xs: Any) -> tuple[Any, ...]:
        graph = any(x.requires_grad for x in xs)  # a derivative around this one
        xs = tuple(x if x.requires_grad else x.detach().requires_grad_() for x in xs)
        y = loss(*xs)
        if not y.requires_grad:
            return tuple(map(self.module.zeros_like, xs))
        return self.module.autograd.grad(
            y, xs, create_graph=graph, materialize_grads=True
        )

    def tangent(self, fn: Any, xs: Any, dxs: Any) -> Any:
        return self.module.func.jvp(fn, tuple(xs), tuple(dxs))[1]

    def compiled(self, fn: Any) -> Any:
        return self.module.compile(
            fn, fullgraph=True, dynamic=False, backend="aot_eager"
        )

    def compiled_gradients(self, loss: Any) -> Any:
        compiled = self.compiled(loss)
        return lambda *xs: self.gradients(compiled, *xs)

    def batched(self, fn: Any, *xs: Any) -> Any:
        return self.module.func.vmap(fn)(*xs)


class Mlx(Engine):
    calls_back = False

    def array(self, x: Any, dtype: Any = None) -> Any:
        return REGISTRY["mlx"].arrays.array(np.asarray(x, dtype))

    @property
    def module(self) -> Any:
        return import_module("mlx.core")

    def gradients(self, loss: Any, *xs: Any) -> tuple[Any, ...]:
        found = self.module.grad(loss, argnums=tuple(range(len(xs))))(*xs)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    def tangent(self, fn: Any, xs: Any, dxs: Any) -> Any:
        ys = []

        def flat(*xs: Any) -> Any:
            ys[:] = [fn(*xs)]
            return trees.leaves(ys[0])

        _, dys = self.module.jvp(flat, list(xs), list(dxs))
        return trees.unflatten(ys[0], dys)

    def compiled(self, fn: Any) -> Any:
        return self.module.compile(fn)

    def batched(self, fn: Any, *xs: Any) -> Any:
        return self.module.vmap(fn)(*xs)


ENGINE = Engine()
FOREIGN = [TensorFlow("tensorflow"), Jax("jax"), Torch("torch"), Mlx("mlx")]
ALL = [ENGINE, *FOREIGN]
