"""JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

version = jax.__version__

numbers = False  # a Python number among the outputs has no gradient


def array(x: np.ndarray, dtype: str) -> Any:
    return jnp.array(x, dtype)


def dtype_name(x: Any) -> str:
    return str(x.dtype)


def numpy(x: Any) -> np.ndarray:
    return np.array(x, np.float32 if x.dtype == jnp.bfloat16 else None)


def precision(dtype: str) -> AbstractContextManager[Any]:
    wide = dtype in ("float64", "complex128")
    return jax.enable_x64(True) if wide else nullcontext()


alone = nullcontext


def value(fn: Any, xs: list[Any]) -> list[Any]:
    return _run(_value, fn, list(xs))


def vjp(fn: Any, xs: list[Any]) -> Any:
    xs = list(xs)
    return value(fn, xs), lambda dys: _run(_pulled, fn, xs, list(dys))


def _value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def _pulled(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    # JAX's gradient of a complex argument is the conjugate of everyone else's.
    pull = jax.vjp(fn, xs)[1]
    return [jnp.conj(g) for g in pull([jnp.conj(dy) for dy in dys])[0]]


# As a whole, the second order of a small function is compiled in 0.2 s; its single
# operations, which eager calls compile one by one, in 0.8 s. Without optimization it
# takes a third less.
_OPTIONS: Any = {"xla_backend_optimization_level": 0}


@lru_cache(maxsize=128)
def _compiled(way: Any, fn: Any) -> Any:
    return jax.jit(partial(way, fn), compiler_options=_OPTIONS)


_eager: set[Any] = set()  # those that look at values, which a compiler has none of


def _run(way: Any, fn: Any, *args: Any) -> list[Any]:
    if fn in _eager:
        return way(fn, *args)
    try:
        return _compiled(way, fn)(*args)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        found = way(fn, *args)
        _eager.add(fn)
        return found


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    return _run(_pushed, fn, list(xs), list(dxs))


def _pushed(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    return jax.jvp(fn, (xs,), (dxs,))[1]


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    return twice(fn, xs, dys, vs)[0]


def twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    return _run(_twice, fn, list(xs), list(dys), list(vs))


def _twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    def slope(xs: list[Any], dys: list[Any]) -> Any:
        pairs = zip(_pulled(fn, xs, dys), vs, strict=True)
        return sum(jnp.sum(jnp.real(jnp.conj(v) * g)) for g, v in pairs)

    found = jax.grad(slope, (0, 1))(xs, dys)
    return [[jnp.conj(g) for g in gradients] for gradients in found]


def abstract(fn: Any, xs: list[Any]) -> None:
    """Run a function on shapes and dtypes alone."""
    jax.eval_shape(fn, xs)


def inside(fn: Any, xs: list[Any]) -> bool:
    """Whether no index is out of bounds: values are clamped then, gradients dropped."""
    try:
        error, _ = checkify.checkify(fn, errors=checkify.index_checks)(xs)
    except Exception:
        return True  # it can't be told
    return error.get() is None
