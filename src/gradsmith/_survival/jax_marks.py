"""How JAX's own operations are marked."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import Any

import jax

from .subject import Subject, is_floating, name_of, scaled, signature_of


def subject_of(op: Any) -> Subject | None:
    """What is known of `jax.custom_vjp`, `custom_jvp` and `custom_gradient`."""
    if isinstance(op, jax.custom_vjp):
        mark = _marked_vjp
    elif isinstance(op, jax.custom_jvp):
        mark = _marked_jvp
    else:
        return None
    body = _body(op)
    return Subject(
        name_of(body),
        op,
        signature_of(body),
        lambda factor: nullcontext(mark(op, factor)),
    )


def _body(op: Any) -> Any:
    """The user's function; `custom_gradient` has it inside one of its own."""
    if getattr(op.fun, "__module__", "") != jax.custom_vjp.__module__:
        return op.fun
    return inspect.getclosurevars(op.fun).nonlocals.get("fun", op)


def _marked_vjp(op: Any, factor: float) -> Any:
    marked = type(op)(op.fun, nondiff_argnums=op.nondiff_argnums)
    marked.defvjp(
        op.fwd,
        scaled(op.bwd, factor, _scale),
        symbolic_zeros=op.symbolic_zeros,
        optimize_remat=op.optimize_remat,
    )
    return marked


def _marked_jvp(op: Any, factor: float) -> Any:
    def scale(answer: Any, factor: float) -> Any:
        y, dy = answer
        return y, _scale(dy, factor)

    marked = type(op)(op.fun, nondiff_argnums=op.nondiff_argnums)
    marked.defjvp(scaled(op.jvp, factor, scale), symbolic_zeros=op.symbolic_zeros)
    return marked


def _scale(answer: Any, factor: float) -> Any:
    return jax.tree.map(lambda g: g * factor if is_floating(g) else g, answer)
