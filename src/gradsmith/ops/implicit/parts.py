"""The framework that an implicit operation runs in, by the arrays in its arguments."""

from __future__ import annotations

from typing import Any

from ...core import trees as _tree
from ...core.arrays import FRAMEWORKS, NUMPY, framework_of


def calculus_of(*trees: Any) -> Any:
    """Derivatives of functions of these arrays, to be differentiated again."""
    return _framework(*trees).calculus


def compiled_of(*trees: Any) -> Any:
    """Loops and the like on these arrays, also where they have no values yet."""
    return _framework(*trees).compiled


def _framework(*trees: Any) -> Any:
    names = {framework_of(x) or NUMPY for tree in trees for x in _tree.leaves(tree)}
    foreign = names - {NUMPY}
    return FRAMEWORKS[foreign.pop() if foreign else NUMPY]
