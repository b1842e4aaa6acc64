"""The same program in JAX, in double precision."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks._peers import load

from .program import Program, numpy_namespace


@cache
def _namespace() -> dict[str, Any]:
    jax = load("jax")
    jax.config.update("jax_enable_x64", True)
    names = ("grad", "value_and_grad", "jvp", "vjp", "hessian", "jacfwd", "jacrev")
    calculus = SimpleNamespace(**{name: getattr(jax, name) for name in names})
    found = {
        "np": load("jax.numpy"),
        "gs": calculus,
        "special": load("jax.scipy.special"),
    }
    return {**numpy_namespace(), **found}


def compare(subject: Program, value: Any, dxs: Any) -> list[str]:
    """Say what was compared; raise if gradients differ of values that agree."""
    from .judge import NARROW, WIDE, FoundError, _scale

    jax = load("jax")
    every = tuple(range(len(subject.inputs)))
    try:
        both = jax.value_and_grad(subject.function(_namespace()), every, has_aux=True)
        xs = [jax.numpy.asarray(x) for x in subject.inputs.values()]
        (theirs, _), expected = both(*xs)
    except Exception:  # JAX has no such function, or none with that argument
        return []
    if not np.allclose(theirs, value, rtol=1e-4 if subject.is_narrow else 1e-8):
        return []  # it means something else there
    loose = NARROW if subject.is_narrow else WIDE
    allowed = loose * max(_scale(expected, [1.0] * len(every)), 1e-2)
    for dx, theirs in zip(dxs, expected, strict=True):
        if not np.allclose(dx, theirs, rtol=0, atol=allowed):
            if np.isnan(np.asarray(theirs)).any():
                return []
            raise FoundError("wrong", "the gradient is not JAX's")
    return ["JAX"]
