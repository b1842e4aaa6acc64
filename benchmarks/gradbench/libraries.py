"""The libraries: their functions by NumPy's names, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._peers import load


class Library(NamedTuple):
    """What a program in NumPy's style is written in."""

    np: Any
    grad: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    vjp: Callable[..., Any]
    jacobian: Callable[..., Any]
    gradient_and_hvp: Callable[..., Any]  # (f, x, v) to f'(x) and f''(x) v
    vander: Callable[..., Any]  # `np.vander`, or what the library has in its place


def ours() -> Library:
    import gradsmith as gs
    import gradsmith.numpy as gnp

    def hvp(f: Any, x: Any, v: Any) -> tuple[Any, Any]:
        def product(x: Any) -> tuple[Any, Any]:
            gradient = gs.grad(f)(x)
            return np.sum(gradient * v), gradient

        curvature, gradient = gs.grad(product, has_aux=True)(x)
        return gradient, curvature

    derivatives = (gs.grad, gs.value_and_grad, gs.vjp, gs.jacobian, hvp)
    return Library(np, *derivatives, gnp.vander)


def autograd() -> Library:
    autograd = load("autograd")

    def vjp(f: Any, *xs: Any) -> tuple[Any, Any]:
        pull, value = autograd.make_vjp(f, tuple(range(len(xs))))(*xs)
        return value, pull

    def hvp(f: Any, x: Any, v: Any) -> tuple[Any, Any]:
        product, gradient = autograd.differential_operators.make_hvp(f)(x)
        return gradient, product(v)

    def jacobian(f: Any) -> Any:  # by columns, as `autograd.jacobian` is by rows
        def matrix(x: Any) -> Any:
            push = autograd.make_jvp(f)(x)
            return np.stack([push(dx)[1] for dx in np.eye(len(x))], axis=-1)

        return matrix

    derivatives = (autograd.grad, autograd.value_and_grad, vjp, jacobian, hvp)
    names = load("autograd.numpy")
    return Library(names, *derivatives, names.vander)


def jax() -> Library:
    jax = load("jax")
    hvp = lambda f, x, v: jax.jvp(jax.grad(f), (x,), (v,))
    derivatives = (jax.grad, jax.value_and_grad, jax.vjp, jax.jacfwd, hvp)
    names = load("jax.numpy")
    return Library(names, *derivatives, names.vander)


def torch_value_and_grad(torch: Any, f: Any, variables: int = 1) -> Any:
    """The value of f and its gradient with respect to the first inputs, leaves."""

    def both(*xs: Any) -> Any:
        y = f(*xs)
        dxs = torch.autograd.grad(y, xs[:variables])
        return y.detach(), dxs if variables > 1 else dxs[0]

    return both


# Contenders: a problem, its size and its inputs to a call that returns arrays


def with_tape(problem: Any, size: Any, inputs: Any) -> Callable[[], Any]:
    return partial(problem.in_numpy(ours(), **size), *inputs)


def with_compile(problem: Any, size: Any, inputs: Any) -> Callable[[], Any]:
    """The whole program compiled; or, if Python decides in it, what it calls."""
    import gradsmith as gs

    if hasattr(problem, "in_parts"):
        return partial(problem.in_parts(ours(), gs.compile, **size), *inputs)
    return partial(gs.compile(problem.in_numpy(ours(), **size)), *inputs)


def with_autograd(problem: Any, size: Any, inputs: Any) -> Callable[[], Any]:
    return partial(problem.in_numpy(autograd(), **size), *inputs)


def with_torch(problem: Any, size: Any, inputs: Any) -> Callable[[], Any]:
    torch = load("torch")
    torch.set_num_threads(1)
    tensors = [torch.tensor(x) for x in inputs]
    for x in tensors[: problem.VARIABLES]:
        x.requires_grad_()
    return partial(problem.in_torch(torch, **size), *tensors)


def with_jax(problem: Any, size: Any, inputs: Any) -> Callable[[], Any]:
    library, jax = globals()["jax"](), load("jax")
    program = getattr(problem, "in_jax", problem.in_numpy)(library, **size)
    compiled, arrays = jax.jit(program), [library.np.asarray(x) for x in inputs]
    return lambda: jax.block_until_ready(compiled(*arrays))


OURS = {"the tape": with_tape, "gs.compile": with_compile}
PEERS = {"torch": with_torch, "autograd": with_autograd, "jax": with_jax}
