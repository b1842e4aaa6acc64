"""gs.checkpoint: recompute a function in the backward pass instead of storing it."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from ...core.errors import GradsmithError
from .backends import COMPILERS, backend_for


def checkpoint(
    fn: Callable[..., Any] | None = None, /, *, verify: bool = False
) -> Callable[..., Any]:
    """Return a function that keeps its arguments alive for the gradient, and no more.

    What it computes on the way is computed again when the gradient is asked for. Works
    on NumPy's, TensorFlow's, JAX's and PyTorch's arrays, in both modes and any order.

    >>> import numpy as np
    >>> from gradsmith import grad
    >>> f = checkpoint(lambda x, scale=1.0: np.sum(np.tanh(np.sin(x) * scale)))
    >>> grad(f)(np.zeros(2), scale=3.0)
    array([3., 3.])

    Any callable will do: a method, a torch module, a Keras layer. Randomness is
    replayed. Anything else that makes a second run differ from the first (a counter, a
    file) makes the gradient wrong: with `verify`, each call is also run plainly, and
    raises if values or gradients differ; on the embedded engine it names the operation
    that differs first.
    """
    if fn is None:
        return lambda fn: checkpoint(fn, verify=verify)
    if not callable(fn):
        raise GradsmithError(
            f"gs.checkpoint was given a {type(fn).__name__}\n"
            "  expected: a function (or a layer, a module) whose inside is recomputed\n"
            "  what to do: gs.checkpoint(fn)(x), not gs.checkpoint(fn(x))"
        )
    if not isinstance(verify, bool):
        raise GradsmithError(f"verify= is True or False, not {verify!r}")
    inner: Any = fn

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        for is_compiling, run in COMPILERS:
            if is_compiling():
                return run(inner, args, kwargs, verify=verify)
        backend = backend_for(inner, args, kwargs)
        return backend.checkpoint(inner, args, kwargs, verify=verify)

    # TensorFlow's AutoGraph calls it as it is, and not as the function that it wraps.
    setattr(checkpointed, "autograph_info__", {})  # noqa: B010
    return update_wrapper(checkpointed, inner, updated=())
