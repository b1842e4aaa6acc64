"""A forward function and a rule as each framework's own custom operation.

`native(framework, forward, rule)` is what a user of that framework would write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from benchmarks._peers import load

Forward = Callable[..., Any]
Rule = Callable[..., tuple[Any, ...]]


def native(framework: str, forward: Forward, rule: Rule, *, arity: int) -> Any:
    """The operation in a framework; `arity` is the number of its arguments."""
    return _MAKERS[framework](forward, rule, arity)


def inputs(framework: str, xs: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """NumPy arrays as the framework's own. JAX needs its x64 mode for float64."""
    if framework == "torch":
        return tuple(load("torch").tensor(x) for x in xs)
    if framework == "jax":
        return tuple(load("jax.numpy").asarray(x) for x in xs)
    if framework == "tensorflow":
        return tuple(load("tensorflow").constant(x) for x in xs)
    return xs


def _engine(forward: Forward, rule: Rule, arity: int) -> Any:
    import gradsmith as gs

    op = gs.operation(forward)
    op.vjp(_bare(rule, arity))
    return op


def _bare(rule: Rule, arity: int) -> Callable[..., Any]:
    """One gradient alone is given as it is."""

    def grad(dy: Any, y: Any, *xs: Any) -> Any:
        dxs = rule(dy, y, *xs)
        return dxs[0] if arity == 1 else dxs

    return grad


def _torch(forward: Forward, rule: Rule, arity: int) -> Any:
    torch = load("torch")

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(*xs: Any) -> Any:
            return forward(*xs)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.several = isinstance(output, tuple)
            ctx.save_for_backward(*inputs, *(output if ctx.several else (output,)))

        @staticmethod
        def backward(ctx: Any, *dys: Any) -> Any:
            xs, ys = ctx.saved_tensors[:arity], ctx.saved_tensors[arity:]
            if ctx.several:
                return rule(dys, ys, *xs)
            return rule(dys[0], ys[0], *xs)

    Operation.__name__ = Operation.__qualname__ = forward.__name__
    return Operation.apply


def _jax(forward: Forward, rule: Rule, arity: int) -> Any:
    jax = load("jax")
    asarray = load("jax.numpy").asarray  # eager JAX hands on NumPy's arrays as they are

    @wraps(forward)
    def body(*xs: Any) -> Any:
        return forward(*map(asarray, xs))

    op = jax.custom_vjp(body)

    def fwd(*xs: Any) -> Any:
        y = body(*xs)
        return y, (y, xs)

    def bwd(saved: Any, dy: Any) -> Any:
        dy, (y, xs) = jax.tree.map(asarray, (dy, saved))
        return rule(dy, y, *xs)

    op.defvjp(fwd, bwd)
    return op


def _tensorflow(forward: Forward, rule: Rule, arity: int) -> Any:
    tf = load("tensorflow")

    def body(*xs: Any) -> Any:
        y = forward(*xs)

        def grad(*dys: Any) -> Any:
            dxs = rule(dys if isinstance(y, tuple) else dys[0], y, *xs)
            return dxs[0] if arity == 1 else list(dxs)

        return y, grad

    body.__name__ = forward.__name__
    return tf.custom_gradient(body)


def _autograd(forward: Forward, rule: Rule, arity: int) -> Any:
    """HIPS' primitive. Its rule sees plain arrays, so it has no second order."""
    extend = load("autograd.extend")
    op = extend.primitive(lambda *xs: forward(*xs))

    def vjpmaker(i: int) -> Callable[..., Any]:
        def make(y: Any, *xs: Any) -> Callable[[Any], Any]:
            return lambda dy: _or_zero(rule(dy, y, *xs)[i], xs[i])

        return make

    extend.defvjp(op, *map(vjpmaker, range(arity)))
    return op


def _or_zero(dx: Any, x: Any) -> Any:
    return np.zeros_like(x) if dx is None else dx


_MAKERS: dict[str, Callable[[Forward, Rule, int], Any]] = {
    "numpy": _engine,
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "autograd": _autograd,
}
