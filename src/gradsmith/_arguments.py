"""The arguments of a call as the contract sees them: names, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from . import _tree
from ._cotangent import Spec
from ._parameters import Bound


class Kind(IntEnum):
    """What an argument is to a gradient."""

    FLOATING = 0  # it has one
    INTEGER = 1  # an array without one
    NUMBER = 2  # a Python number, for which a rule may return one
    WHOLE_NUMBER = 3
    STATIC = 4


class Argument(NamedTuple):
    """One argument: its name, a tree with the specs of its arrays, and its kind.

    A leaf that is no array is `None` in the tree; a tree is of the first kind that one
    of its leaves is of.
    """

    name: str
    specs: Any
    kind: Kind

    @property
    def has_arrays(self) -> bool:
        return self.kind <= Kind.INTEGER


def arguments_of(bound: Bound, specs: Iterable[Spec]) -> list[Argument]:
    """The arguments of a call, given the specs of the arrays in them."""
    rest, is_array = iter(specs), bound.signature.is_array

    def spec_of(x: Any) -> Spec | None:
        return next(rest) if is_array(x) else None

    arguments = []
    for name, value in bound.arguments():
        if _tree.is_leaf(value):
            spec = spec_of(value)
            arguments.append(Argument(name, spec, _kind(value, spec)))
        else:
            tree = _tree.map(spec_of, value)
            kinds = map(_kind, _tree.leaves(value), _tree.leaves(tree))
            arguments.append(Argument(name, tree, min(kinds, default=Kind.STATIC)))
    return arguments


def has_gradient(spec: Any) -> bool:
    """Whether a dtype is one of numbers that can be varied (V: bfloat16 and its like)."""
    return spec.dtype.kind in "fcOV"


def _kind(x: Any, spec: Spec | None) -> Kind:
    if spec is not None:
        return Kind.FLOATING if has_gradient(spec) else Kind.INTEGER
    if isinstance(x, (float, complex)):
        return Kind.NUMBER
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return Kind.WHOLE_NUMBER
    return Kind.STATIC
