"""The arguments of a call as the contract sees them: names, shapes and dtypes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ..core import trees
from ..core.specs import AnySpec
from .parameters import Bound


class Kind(IntEnum):
    """What an argument is to a gradient."""

    FLOATING = 0  # it has one
    INTEGER = 1  # an array without one
    NUMBER = 2  # one for which a rule may return a gradient, to no avail
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


def arguments_of(bound: Bound) -> list[Argument]:
    """The arguments of a call in which the arrays are replaced by their specs."""
    arguments = []
    for name, value in bound.arguments():
        specs = trees.map(lambda x: x if isinstance(x, AnySpec) else None, value)
        kind = min([*map(_kind, trees.leaves(value)), Kind.STATIC])
        arguments.append(Argument(name, specs, kind))
    return arguments


def has_gradient(spec: Any) -> bool:
    """Whether a dtype is of numbers that can be varied (V: bfloat16 and its like)."""
    return spec.dtype.kind in "fcOV"


def _kind(x: Any) -> Kind:
    if isinstance(x, AnySpec):
        return Kind.FLOATING if has_gradient(x) else Kind.INTEGER
    if isinstance(x, (float, complex, np.inexact)):
        return Kind.NUMBER
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return Kind.WHOLE_NUMBER
    return Kind.STATIC
