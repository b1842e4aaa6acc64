"""JAX's own custom gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax

from ...operations.info import Around, OperationInfo, name_of, signature_of
from .._natives import Arguments, by_tree, info_of_module, miscounted, named_arguments
from ..keras import natives as keras

defaults = {"gelu": {"approximate": True}}
functions = ("fun", "fwd", "bwd", "jvp")


def info_of(op: Any) -> OperationInfo | None:
    """What is known of `jax.custom_vjp`, `custom_jvp`, `custom_gradient`, modules."""
    if isinstance(op, jax.custom_vjp):
        altered = _altered_vjp
    elif isinstance(op, jax.custom_jvp):
        altered = _altered_jvp
    else:
        return keras.info_of(op, "jax") or _of_module(op)
    function = function_of(op)
    return OperationInfo(
        name_of(function),
        op,
        signature_of(function),
        lambda around: nullcontext(altered(op, around)),
        module=getattr(function, "__module__", None),
        reverse=isinstance(op, jax.custom_vjp),
        body=op.fun,
        rule=_rule_of(op),
    )


def _of_module(module: Any) -> OperationInfo | None:
    """A callable tree, as the modules of equinox and flax are, or one that is bound."""
    if not callable(module) or inspect.isclass(module) or inspect.isroutine(module):
        return None
    if getattr(module, "scope", None) is not None and hasattr(module, "unbind"):
        unbound, variables = module.unbind()
        call = WithLeaves(variables, lambda tree: partial(unbound.apply, tree))
    elif not jax.tree_util.all_leaves([module]):
        call = WithLeaves(module, lambda tree: tree)
    else:
        return None
    return info_of_module(module, call, module, call.leaves)


class WithLeaves:
    """A module as a function of its arguments and, by path, of the arrays in a tree.

    Each call has a tree of its own, so that the state in it is the same each time.
    """

    def __init__(self, tree: Any, module_of: Callable[[Any], Any]) -> None:
        self._module_of = module_of
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(tree)
        self._paths = [jax.tree_util.keystr(path).lstrip(".") for path, _ in leaves]
        self._all = [leaf for _, leaf in leaves]
        pairs = zip(self._paths, self._all, strict=True)
        self.leaves = {
            n: x for n, x in pairs if isinstance(x, jax.Array) and _floats(x)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pairs = zip(self._paths, self._all, strict=True)
        leaves = [kwargs.pop(path, leaf) for path, leaf in pairs]
        tree = jax.tree.unflatten(self._structure, leaves)
        return self._module_of(tree)(*args, **kwargs)


def _floats(x: Any) -> bool:
    return jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)


def _rule_of(op: Any) -> Any:
    """As its author wrote it: `custom_gradient` has it inside of the function."""
    if isinstance(op, jax.custom_jvp):
        return op.jvp
    function = function_of(op)
    return op.bwd if function is op.fun else function


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
