"""Which gradient a rule returned for which argument, by each framework's convention.

PyTorch      backward(ctx, *dys)           one per argument of forward, None for all
                                           that is no tensor; more Nones may follow
JAX          bwd(*nondiff, res, dy)        a tuple, one tree per argument that is
                                           not in nondiff_argnums
TensorFlow   grad(*dys, variables=None)    flat, one per tensor in the arguments
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...core import trees
from ...core.arrays import described, is_array
from ...core.cotangent import Spec
from ...operations.contract.causes import describe
from ...operations.info import positional
from .problem import Problem

Named = list[tuple[str, Any]]


@dataclass(frozen=True)
class Answer:
    """What a rule returned for an array that has a gradient."""

    name: str
    spec: Spec
    gradient: Any


class StructureError(Exception):
    """A rule returned too much, too little, or something else altogether."""


def answers(problem: Problem, xs: list[Any], returned: Any) -> list[Answer]:
    """The gradients of the arrays `xs`, each with its argument."""
    pairs = _PAIRS[problem.framework](problem, returned)
    moved = dict(zip(problem.moved, xs, strict=True))
    found = []
    for name, gradient in pairs:
        spec = described(moved[name]) if name in moved else None
        if spec is not None:
            found.append(Answer(name, spec, gradient))
    return found


def _arguments(problem: Problem) -> Named:
    """The arguments by name, in the order of the signature."""
    args, kwargs = problem.inputs
    names = positional(problem.subject, args)
    named = dict(zip(names, args, strict=False), **kwargs)
    order = [*names, *kwargs]
    return sorted(named.items(), key=lambda pair: order.index(pair[0]))


def _of_torch(problem: Problem, returned: Any) -> Iterator[tuple[str, Any]]:
    arguments = _arguments(problem)
    gradients = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    rest = gradients[len(arguments) :]
    if len(gradients) < len(arguments) or any(g is not None for g in rest):
        raise _miscounted(arguments, returned)
    yield from _by_tree(arguments, gradients)


def _of_jax(problem: Problem, returned: Any) -> Iterator[tuple[str, Any]]:
    static = getattr(problem.subject.call, "nondiff_argnums", ())
    arguments = _arguments(problem)
    static = {i % len(arguments) for i in static if isinstance(i, int)}
    arguments = [pair for i, pair in enumerate(arguments) if i not in static]
    if not isinstance(returned, (tuple, list)) or len(returned) != len(arguments):
        raise _miscounted(arguments, returned)
    yield from _by_tree(arguments, returned)


def _of_tensorflow(problem: Problem, returned: Any) -> Iterator[tuple[str, Any]]:
    args, _ = problem.inputs
    arguments = _arguments(problem)[: len(args)]
    names = [name for pair in arguments for name in _leaf_names(*pair)]
    gradients = _flat(returned)
    if len(gradients) != len(names) and _has_variables(returned):
        gradients = _flat(returned[0])
    if len(gradients) != len(names):
        raise _miscounted([(name, None) for name in names], returned)
    yield from zip(names, gradients, strict=True)


def _has_variables(returned: Any) -> bool:
    """Whether the gradients of variables come with those of the arguments."""
    is_pair = isinstance(returned, (tuple, list)) and len(returned) == 2
    return is_pair and isinstance(returned[1], (tuple, list))


def _flat(tree: Any) -> list[Any]:
    """All leaves; None is one."""
    if not isinstance(tree, (tuple, list)):
        return [tree]
    return [leaf for part in tree for leaf in _flat(part)]


_PAIRS: dict[str, Any] = {
    "torch": _of_torch,
    "jax": _of_jax,
    "tensorflow": _of_tensorflow,
}


def _by_tree(arguments: Named, gradients: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of each argument with those of its gradient."""
    for (name, x), gradient in zip(arguments, gradients, strict=False):
        names = _leaf_names(name, x)
        if is_array(x) or isinstance(x, (float, complex)) or not names:
            yield name, gradient
        elif gradient is None:
            yield from ((leaf, None) for leaf in names)
        else:
            leaves = trees.leaves(gradient)
            if len(leaves) != len(names):
                raise StructureError(
                    f"the gradient of {name!r} has another structure than {name!r}\n"
                    f"  expected: {len(names)} arrays in the structure of the argument"
                    f"\n  got: {describe(gradient)}"
                )
            yield from zip(names, leaves, strict=True)


def _leaf_names(name: str, x: Any) -> list[str]:
    return [leaf for leaf, _ in trees.leaves_with_names(x, name)]


def _miscounted(arguments: Named, returned: Any) -> StructureError:
    names = ", ".join(name for name, _ in arguments)
    n = len(arguments)
    many = f"{n} gradients, one for each of" if n != 1 else "one gradient, for"
    return StructureError(
        f"the rule returned the wrong number of gradients\n  expected: {many} {names}\n"
        f"  got: {describe(returned)}"
    )
