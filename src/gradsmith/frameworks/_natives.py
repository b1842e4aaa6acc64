"""Frameworks' own operations: modules, and which gradient is for which argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core import trees
from ..core.arrays import is_array
from ..operations.contract.causes import describe
from ..operations.info import OperationInfo, positional, signature_of

Arguments = list[tuple[str, Any]]


def info_of_module(
    module: Any, call: Callable[..., Any], forward: Any, captured: dict[str, Any]
) -> OperationInfo:
    """A module, called as a function of its arguments and of what it has captured."""
    return OperationInfo(
        type(module).__name__,
        call,
        signature_of(forward),
        None,
        "its rules are those of the operations inside it, which can't be silenced",
        module=type(module).__module__,
        captured=captured,
    )


class StructureError(Exception):
    """A rule returned too much, too little, or something else altogether."""


def named_arguments(info: OperationInfo, args: Any, kwargs: Any) -> Arguments:
    """The arguments by name, in the order of the signature."""
    names = positional(info, args)
    named = dict(zip(names, args, strict=False), **kwargs)
    order = [*names, *kwargs]
    return sorted(named.items(), key=lambda pair: order.index(pair[0]))


def by_tree(arguments: Arguments, gradients: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of each argument with those of its gradient."""
    for (name, x), gradient in zip(arguments, gradients, strict=False):
        names = leaf_names(name, x)
        if is_array(x) or isinstance(x, (float, complex)) or not names:
            yield name, gradient
        elif gradient is None:
            yield from ((leaf, None) for leaf in names)
        else:
            leaves = dict(trees.leaves_with_names(gradient, name))
            if len(leaves) != len(names):
                raise StructureError(
                    f"the gradient of {name!r} has another structure than {name!r}\n"
                    f"  expected: {len(names)} arrays in the structure of the argument"
                    f"\n  got: {describe(gradient)}"
                )
            # By name: a dict of gradients may have another order, as JAX's have.
            if leaves.keys() != {*names}:
                leaves = dict(zip(names, leaves.values(), strict=True))
            yield from ((leaf, leaves[leaf]) for leaf in names)


def leaf_names(name: str, x: Any) -> list[str]:
    return [leaf for leaf, _ in trees.leaves_with_names(x, name)]


def miscounted(arguments: Arguments, returned: Any) -> StructureError:
    names = ", ".join(name for name, _ in arguments)
    n = len(arguments)
    many = f"{n} gradients, one for each of" if n != 1 else "one gradient, for"
    return StructureError(
        f"the rule returned the wrong number of gradients\n  expected: {many} {names}\n"
        f"  got: {describe(returned)}"
    )
