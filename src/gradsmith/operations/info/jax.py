"""JAX's own operations."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import Any

import jax

from .info import Around, Subject, name_of, signature_of


def subject_of(op: Any) -> Subject | None:
    """What is known of `jax.custom_vjp`, `custom_jvp` and `custom_gradient`."""
    if isinstance(op, jax.custom_vjp):
        altered = _altered_vjp
    elif isinstance(op, jax.custom_jvp):
        altered = _altered_jvp
    else:
        return None
    body = body_of(op)
    return Subject(
        name_of(body),
        op,
        signature_of(body),
        lambda around: nullcontext(altered(op, around)),
        module=getattr(body, "__module__", None),
    )


def body_of(op: Any) -> Any:
    """The user's function; `custom_gradient` has it inside one of its own."""
    if getattr(op.fun, "__module__", "") != jax.custom_vjp.__module__:
        return op.fun
    return inspect.getclosurevars(op.fun).nonlocals.get("fun", op)


def _altered_vjp(op: Any, around: Around) -> Any:
    copy = type(op)(op.fun, nondiff_argnums=op.nondiff_argnums)
    copy.defvjp(
        op.fwd,
        around(op.bwd),
        symbolic_zeros=op.symbolic_zeros,
        optimize_remat=op.optimize_remat,
    )
    return copy


def _altered_jvp(op: Any, around: Around) -> Any:
    def jvp(*args: Any) -> Any:
        y, dy = op.jvp(*args)
        return y, around(lambda *_: dy)(*args)

    copy = type(op)(op.fun, nondiff_argnums=op.nondiff_argnums)
    copy.defjvp(jvp, symbolic_zeros=op.symbolic_zeros)
    return copy
