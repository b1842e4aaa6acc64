"""JAX's own custom gradients."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import jax

from ...operations.info import Around, OperationInfo, name_of, signature_of
from .._natives import Arguments, by_tree, miscounted, named_arguments

defaults = {"gelu": {"approximate": True}}
functions = ("fun", "fwd", "bwd", "jvp")


def info_of(op: Any) -> OperationInfo | None:
    """What is known of `jax.custom_vjp`, `custom_jvp` and `custom_gradient`."""
    if isinstance(op, jax.custom_vjp):
        altered = _altered_vjp
    elif isinstance(op, jax.custom_jvp):
        altered = _altered_jvp
    else:
        return None
    function = function_of(op)
    return OperationInfo(
        name_of(function),
        op,
        signature_of(function),
        lambda around: nullcontext(altered(op, around)),
        module=getattr(function, "__module__", None),
        reverse=isinstance(op, jax.custom_vjp),
        body=op.fun,
        rule=op.bwd if isinstance(op, jax.custom_vjp) else op.jvp,
    )


def function_of(op: Any) -> Any:
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


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    """`bwd(*nondiff, res, dy)`: a tuple, a tree for each but the nondiff_argnums."""
    arguments: Arguments = _with_defaults(info, args, kwargs)
    numbers = getattr(info.call, "nondiff_argnums", ())
    static = {i % len(arguments) for i in numbers if isinstance(i, int)}
    arguments = [pair for i, pair in enumerate(arguments) if i not in static]
    if not isinstance(returned, (tuple, list)) or len(returned) != len(arguments):
        raise miscounted(arguments, returned)
    yield from by_tree(arguments, returned)


def _with_defaults(info: OperationInfo, args: Any, kwargs: Any) -> Arguments:
    """JAX fills defaults in before it calls a rule."""
    signature = info.signature
    kinds = [] if signature is None else [p.kind for p in signature.parameters.values()]
    if signature is None or inspect.Parameter.VAR_POSITIONAL in kinds:
        return named_arguments(info, args, kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return [*bound.arguments.items()]
