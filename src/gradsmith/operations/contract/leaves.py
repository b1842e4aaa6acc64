"""The gradient of one argument, an array or a tree of arrays, checked leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import described, same_shape
from ...core.errors import GradientContractError
from ...core.specs import AnySpec
from ..arguments import has_gradient
from . import causes
from .causes import describe, outline, written
from .words import is_word


class MisfitError(Exception):
    """What is wrong with a gradient, before it is known whose it is."""

    def __init__(self, what: str, expected: str, got: str, cause: str) -> None:
        self.what = what
        self.details = f"  expected: {expected}\n  got: {got}\n  likely cause: {cause}"

    def error(self, subject: str) -> GradientContractError:
        return GradientContractError(f"{subject} {self.what}\n{self.details}")


def checked(name: str, specs: Any, gradient: Any) -> list[Any]:
    """The gradients of the arrays in a tree, flat, each checked."""
    if isinstance(specs, AnySpec):
        return [_checked_leaf(name, specs, gradient)]
    return [
        _checked_leaf(leaf_name, spec, leaf)
        for leaf_name, spec, leaf in _paired(name, specs, gradient)
        if spec is not None
    ]


def fits(specs: Any, gradient: Any) -> bool:
    """Whether a gradient is structured like the argument."""
    if isinstance(specs, AnySpec):
        return not isinstance(gradient, (tuple, list, dict))
    try:
        pairs = list(_paired("", specs, gradient))
    except MisfitError:
        return False
    return all(spec is None or fits(spec, leaf) for _, spec, leaf in pairs)


def _paired(name: str, specs: Any, gradient: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves with their names, specs and gradients; a word stands for a subtree."""
    expected = trees.children(specs)
    if expected is None:
        yield name, specs, gradient
        return
    if is_word(gradient):
        got = {step: gradient for step, _ in expected}
    else:
        got = dict(trees.children(gradient) or ())
    steps = [step for step, _ in expected]
    different = [
        step for step in (*steps, *got) if step not in got or step not in steps
    ]
    if different:
        raise MisfitError(
            f"for {name!r} has the wrong structure",
            outline(specs),
            outline(gradient),
            "the gradient of a tree is a tree of the same structure, and "
            f"{name}{different[0]} is in one of them only",
        )
    for step, child in expected:
        yield from _paired(name + step, child, got[step])


def _checked_leaf(name: str, spec: AnySpec, leaf: Any) -> Any:
    if is_word(leaf):
        return leaf
    if not has_gradient(spec):
        return None
    if spec.describes(leaf):
        return leaf
    got = described(leaf)
    if got is None:
        return _checked_number(name, spec, leaf)
    if not same_shape(got.shape, spec.shape):
        cause = causes.of_shape(name, _plain(spec.shape), _plain(got.shape))
        raise _wrong_shape(name, spec, written(got), cause)
    if got.dtype != spec.dtype:
        cause = causes.of_dtype(name, spec.dtype, got.dtype)
        raise _wrong_dtype(name, spec, written(got), cause)
    return leaf


def _plain(shape: Any) -> Any:
    return None if shape is None else tuple(shape)


def _checked_number(name: str, spec: AnySpec, leaf: Any) -> Any:
    """A Python number is the gradient of a scalar, and of nothing else."""
    if not isinstance(leaf, (int, float, complex)) or isinstance(leaf, bool):
        what = f"for {name!r} is not an array"
        raise MisfitError(what, written(spec), describe(leaf), causes.of_type(leaf))
    if spec.shape != ():
        cause = causes.of_shape(name, spec.shape, ())
        raise _wrong_shape(name, spec, f"the number {leaf!r}", cause)
    if isinstance(leaf, complex) and spec.dtype.kind == "f":
        cause = causes.of_dtype(name, spec.dtype, np.dtype(complex))
        raise _wrong_dtype(name, spec, f"the number {leaf!r}", cause)
    return np.asarray(leaf, spec.dtype)


def _wrong_shape(name: str, spec: AnySpec, got: str, cause: str) -> MisfitError:
    return MisfitError(f"for {name!r} has the wrong shape", written(spec), got, cause)


def _wrong_dtype(name: str, spec: AnySpec, got: str, cause: str) -> MisfitError:
    return MisfitError(f"for {name!r} has the wrong dtype", written(spec), got, cause)
