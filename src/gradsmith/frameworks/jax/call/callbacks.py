"""NumPy functions inside JAX's code, by a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ....core.cotangent import Spec
from ....core.errors import UnsupportedOperationError
from .captured import tracers_in


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[Any]:
    """Run a function of NumPy arrays; nothing is differentiated here."""
    if not any(isinstance(x, Tracer) for x in arrays):
        return [jnp.asarray(y) for y in fn(*map(np.asarray, arrays))]
    _refuse_captured(fn, name)
    outs = tuple(
        jax.ShapeDtypeStruct(spec.shape, jax.dtypes.canonicalize_dtype(spec.dtype))
        for spec in specs
    )
    ndims = [x.ndim for x in arrays]

    def callback(*args: Any) -> tuple[Any, ...]:
        # Plain arrays: JAX's own would wait for the computation that waits for us.
        plain = [np.asarray(x) for x in args]
        batch = np.broadcast_shapes(
            *(x.shape[: x.ndim - n] for x, n in zip(plain, ndims, strict=True))
        )
        return _over_batch(fn, plain, ndims, batch, outs)

    # One callback for a whole batch; a loop in JAX takes 10 times as long
    found = jax.pure_callback(callback, outs, *arrays, vmap_method="expand_dims")
    return list(found)


def _refuse_captured(fn: Any, name: str) -> None:
    """What a callback captures JAX can't follow: its gradient would be lost."""
    for x in tracers_in(fn):
        raise UnsupportedOperationError(
            f"operation {name!r} computes in NumPy, and its body or a rule captures a "
            f"traced value ({jax.typeof(x)}): make it an argument of the operation"
        )


def _over_batch(
    fn: Any, arrays: Sequence[Any], ndims: Sequence[int], batch: Any, outs: Any
) -> tuple[Any, ...]:
    """Run a function once for each element of a batch, whose axes come first."""
    if not batch:
        pairs = zip(fn(*arrays), outs, strict=True)
        return tuple(np.asarray(y, out.dtype) for y, out in pairs)
    results = tuple(np.empty((*batch, *out.shape), out.dtype) for out in outs)
    pairs = zip(arrays, ndims, strict=True)
    xs = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - n :])) for x, n in pairs]
    for i in np.ndindex(*batch):
        for result, y in zip(results, fn(*(x[(*i, ...)] for x in xs)), strict=True):
            result[i] = y
    return results
