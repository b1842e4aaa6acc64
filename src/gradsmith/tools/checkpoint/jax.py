"""gs.checkpoint on JAX: by jax.checkpoint, as a function of its arrays alone.

JAX's own wants all arguments to be arrays in containers that it knows, and static ones
named by number. What is captured, and keys of random numbers, are right as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ...core.arrays import framework_of
from .compare import difference, disagreement
from .flat import Flat, name_of
from .plan import Plan


def _is_array(x: Any) -> bool:
    return framework_of(x) == "jax"


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    flat = Flat(fn, args, kwargs, _is_array)
    if verify:
        _require_equal(flat, name_of(fn))
    return flat.restored(jax.checkpoint(flat.__call__)(*flat.arrays))


def scan(plan: Plan) -> list[Any]:
    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return checkpoint(inner, (leaves,), {})

    return plan.in_blocks(block)


def unstacked(x: Any) -> Any:
    return jnp.unstack(x)


def _require_equal(flat: Flat, name: str) -> None:
    """Compare both; while JAX traces, when the values are there."""
    xs = [jax.lax.stop_gradient(x) for x in flat.arrays]
    plain, again = (_values(fn, xs) for fn in (flat.__call__, _checkpointed(flat)))
    words = [f"the value {i}" for i in range(len(plain) - len(xs))]
    words += [f"the gradient for {each}" for each in flat.names]

    def compare(plain: Any, again: Any) -> None:
        for what, one, other in zip(words, plain, again, strict=True):
            told = difference(np.asarray(one), np.asarray(other), exact=False)
            if told:
                raise disagreement(name, what, told)

    if any(isinstance(x, Tracer) for x in (*plain, *again)):
        jax.debug.callback(compare, plain, again)
    else:
        compare(plain, again)


def _checkpointed(flat: Flat) -> Callable[..., Any]:
    return jax.checkpoint(flat.__call__)


def _values(fn: Callable[..., Any], xs: list[Any]) -> list[Any]:
    """The results, and the gradients of all arrays for one upstream."""
    floating = [i for i, x in enumerate(xs) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_floating(*some: Any) -> Any:
        full = list(xs)
        for i, x in zip(floating, some, strict=True):
            full[i] = x
        return fn(*full)

    ys, pull = jax.vjp(of_floating, *(xs[i] for i in floating))
    random = np.random.default_rng(0)
    dys = [_cotangent(y, random) for y in ys]
    found = dict(zip(floating, pull(dys), strict=True))
    return [*ys, *(found.get(i, jnp.zeros(())) for i in range(len(xs)))]


def _cotangent(y: Any, random: np.random.Generator) -> Any:
    if not jnp.issubdtype(y.dtype, jnp.inexact):
        return np.zeros(y.shape, jax.dtypes.float0)
    return jnp.asarray(random.standard_normal(y.shape), y.dtype)
