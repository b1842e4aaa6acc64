"""Recomputing on JAX: by jax.checkpoint, as a function of the arrays alone.

JAX's own wants all arguments to be arrays in containers that it knows, and static ones
named by number. What is captured, and keys of random numbers, are right as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ...core.arrays import framework_of
from .._randomness import Streams
from .._recompute import FlatCall, ScanPlan, name_of, require_same


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    flat = FlatCall(fn, args, kwargs, lambda x: framework_of(x) == "jax")
    if verify:
        _require_equal(flat, name_of(fn))
    return flat.restored(jax.checkpoint(flat.__call__)(*flat.arrays))


def scan(plan: ScanPlan) -> list[Any]:
    return plan.in_blocks(lambda leaves, inner: checkpoint(inner, (leaves,), {}))


def unstack(x: Any) -> Any:
    return jnp.unstack(x)


@contextmanager
def unchanged(*roots: Any) -> Iterator[None]:
    """Let generators be afterwards what they were; JAX's functions change nothing."""
    with Streams(*roots).unchanged():
        yield


def rewinding(*roots: Any) -> Callable[[], Any]:
    return Streams(*roots).unchanged


def _require_equal(flat: FlatCall, name: str) -> None:
    """Compare both; while JAX traces, when the values are there."""
    xs = [jax.lax.stop_gradient(x) for x in flat.arrays]
    runs = (flat.__call__, jax.checkpoint(flat.__call__))
    plain, recomputed = (_values(fn, xs, flat.names) for fn in runs)

    def compare(plain: Any, recomputed: Any) -> None:
        require_same(name, plain, recomputed, exact=False)

    values = (*plain.values(), *recomputed.values())
    if any(isinstance(x, Tracer) for x in values):
        jax.debug.callback(compare, plain, recomputed)
    else:
        compare(plain, recomputed)


def _values(fn: Callable[..., Any], xs: list[Any], names: list[str]) -> dict[str, Any]:
    """The results, and the gradients of all arrays for one upstream."""
    floating = [i for i, x in enumerate(xs) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_floating(*some: Any) -> Any:
        full = list(xs)
        for i, x in zip(floating, some, strict=True):
            full[i] = x
        return fn(*full)

    ys, pull = jax.vjp(of_floating, *(xs[i] for i in floating))
    random = np.random.default_rng(0)
    dxs = pull([_cotangent(y, random) for y in ys])
    found = {f"the value {i}": y for i, y in enumerate(ys)}
    for i, dx in zip(floating, dxs, strict=True):
        found[f"the gradient for {names[i]}"] = dx
    return found


def _cotangent(y: Any, random: np.random.Generator) -> Any:
    if not jnp.issubdtype(y.dtype, jnp.inexact):
        return np.zeros(y.shape, jax.dtypes.float0)
    return jnp.asarray(random.standard_normal(y.shape), y.dtype)
