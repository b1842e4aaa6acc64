"""JAX's operations: `custom_vjp`, `custom_jvp`, `custom_gradient`."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from ...frameworks.jax.natives import function_of
from .hooks import Hooks
from .place import Place, captured_values, place_of
from .recorder import Recorder
from .seen import Seen


def install(hooks: Hooks, module: Any) -> None:
    for cls in (jax.custom_vjp, jax.custom_jvp):
        hooks.replace(cls, "__call__", partial(_recording, hooks.recorder))


def _recording(recorder: Recorder, call: Any) -> Any:
    @wraps(call)
    def recording(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        body = function_of(self)
        place, inputs = partial(_place_of, body), (args, kwargs)
        op = None if _is_bound_to_a_trace(self) else self
        recorder.record("jax", op, place, inputs, read, body)
        return call(self, *args, **kwargs)

    return recording


def _is_bound_to_a_trace(op: Any) -> bool:
    """Whether it captured arrays of a function that is being traced."""
    functions = (getattr(op, name, None) for name in ("fun", "fwd", "bwd", "jvp"))
    return any(
        isinstance(x, jax.core.Tracer) for fn in functions for x in captured_values(fn)
    )


def _place_of(body: Any) -> Place:
    return place_of(getattr(body, "__qualname__", type(body).__name__), body)


def read(x: Any) -> Seen | None:
    """What is seen of an array; inside of vmap one example of the batch."""
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return None
    shape = tuple(n if isinstance(n, int) else None for n in x.shape)
    inside, axes, asked = _peeled(x)
    if isinstance(inside, jax.core.Tracer):
        return Seen(shape, str(x.dtype), None, asked or None)  # `grad` may be outside
    return Seen(shape, str(x.dtype), partial(_copy, inside, axes, x.dtype), asked)


def _peeled(x: Any) -> tuple[Any, list[Any], bool]:
    """What tracers of `grad`, `jvp` and `vmap` stand for, and the axes of batches.

    And whether there is one of `grad` or `jvp` among them.
    """
    axes: list[Any] = []
    asked = False
    while isinstance(x, jax.core.Tracer):
        if hasattr(x, "primal"):
            x, asked = x.primal, True
        elif hasattr(x, "val") and isinstance(getattr(x, "batch_dim", ""), int | None):
            axes += [] if x.batch_dim is None else [x.batch_dim]
            x = x.val
        else:
            break
    return x, axes, asked


def _copy(x: Any, axes: list[Any], dtype: Any) -> Any:
    if jnp.issubdtype(jnp.result_type(x), jax.dtypes.extended):
        return x  # a random key, which nobody can change
    # NumPy's, since a new array of JAX's would be a step of what is being traced
    found = np.asarray(x)
    for axis in reversed(axes):
        found = np.take(found, 0, axis)
    return np.array(found, dtype)  # which of a number is the tracer's
