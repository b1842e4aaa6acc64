"""Recording JAX's own operations: `custom_vjp`, `custom_jvp`, `custom_gradient`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from ...core.patching import patched
from .._recording import Recorder, Seen
from .call.captured import tracers_in
from .natives import function_of
from .private import peeled


@contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    with ExitStack() as stack:
        for cls in (jax.custom_vjp, jax.custom_jvp):
            call = _recorded(cls.__call__, recorder)
            stack.enter_context(patched(cls, __call__=call))
        yield


def _recorded(call: Any, recorder: Recorder) -> Any:
    @wraps(call)
    def recording(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        body = function_of(self)
        name = getattr(body, "__qualname__", type(body).__name__)
        op = None if _is_bound_to_a_trace(self) else self
        recorder.record("jax", op, name, (body,), (args, kwargs), read)
        return call(self, *args, **kwargs)

    return recording


def _is_bound_to_a_trace(op: Any) -> bool:
    """Whether it captured arrays of a function that is being traced."""
    functions = (getattr(op, name, None) for name in ("fun", "fwd", "bwd", "jvp"))
    return bool(tracers_in(*functions))


def read(x: Any) -> Seen | None:
    """What is seen of an array; inside of vmap one example of the batch."""
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return None
    shape = tuple(n if isinstance(n, int) else None for n in x.shape)
    inside, axes, differentiated = peeled(x)
    if isinstance(inside, jax.core.Tracer):  # and `grad` may be outside
        return Seen(shape, str(x.dtype), None, differentiated or None)
    copy = partial(_copy, inside, axes, x.dtype)
    return Seen(shape, str(x.dtype), copy, differentiated)


def _copy(x: Any, axes: list[int], dtype: Any) -> Any:
    if jnp.issubdtype(jnp.result_type(x), jax.dtypes.extended):
        return x  # a random key, which nobody can change
    # NumPy's, since a new array of JAX's would be a step of what is being traced
    found = np.asarray(x)
    for axis in reversed(axes):
        found = np.take(found, 0, axis)
    return np.array(found, dtype)  # which of a number is the tracer's
