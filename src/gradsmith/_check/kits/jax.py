"""JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

version = jax.__version__


def array(x: np.ndarray, dtype: str) -> Any:
    return jnp.array(x, dtype)


def dtype_name(x: Any) -> str:
    return str(x.dtype)


def numpy(x: Any) -> np.ndarray:
    return np.array(x, np.float32 if x.dtype == jnp.bfloat16 else None)


def precision(dtype: str) -> AbstractContextManager[Any]:
    wide = dtype in ("float64", "complex128")
    return jax.enable_x64(True) if wide else nullcontext()


def value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def vjp(fn: Any, xs: list[Any]) -> Any:
    ys, pull = jax.vjp(fn, list(xs))
    # JAX's gradient of a complex argument is the conjugate of everyone else's.
    return ys, lambda dys: [jnp.conj(g) for g in pull([jnp.conj(dy) for dy in dys])[0]]


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    return jax.jvp(fn, (list(xs),), (list(dxs),))[1]


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    return twice(fn, xs, dys, vs)[0]


def twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    def slope(xs: list[Any], dys: list[Any]) -> Any:
        gradients = vjp(fn, xs)[1](dys)
        pairs = zip(gradients, vs, strict=True)
        return sum(jnp.sum(jnp.real(jnp.conj(v) * g)) for g, v in pairs)

    found = jax.grad(slope, (0, 1))(list(xs), list(dys))
    return [[jnp.conj(g) for g in gradients] for gradients in found]


def staged(fn: Any) -> Any:
    """A function that is compiled as a whole, if it can be, and else as it is.

    Eagerly, JAX compiles each operation for each dtype: 0.8 s for the second order of
    a small function, and 0.2 s as a whole. Without optimization it takes a third less.
    """
    options: Any = {"xla_backend_optimization_level": 0}
    compiled, whole = jax.jit(fn, compiler_options=options), True

    def call(*args: Any) -> Any:
        nonlocal whole
        if whole:
            try:
                return compiled(*args)
            except Exception:  # it looks at values, say
                whole = False
        return fn(*args)

    return call


def abstract(fn: Any, xs: list[Any]) -> None:
    """Run a function on shapes and dtypes alone."""
    jax.eval_shape(fn, xs)
