"""What an implicit operation asks of a framework, one module each.

    vjp(fn, xs) -> ys, pull     pull(dys) gives dxs, differentiable again
    jvp(fn, xs, dxs) -> ys, dys
    loop(going, step, state)    state = step(state) while going(state)
    quiet()                     the context in which nothing is recorded
    converted(fn, x, arrays)    fn and its arrays, with what it captures among them,
                                where nothing else would find that
    columns(push, like)         the matrix of a linear map of vectors
    insist(x, holds, text, **facts)  x; unless it holds, raise the text once that is
                                known, and make x NaN where nothing can be raised

`fn`, `pull` and `step` take and return lists of the framework's arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....core import trees as _tree
from ....core.arrays import framework_of


def calculus_of(*trees: Any) -> Any:
    """The module for the arrays in trees; the engine's if there are none."""
    names = {framework_of(x) for tree in trees for x in _tree.leaves(tree)}
    foreign = names - {None, "numpy"}
    name = foreign.pop() if foreign else "engine"
    return import_module(f"{__name__}.{name}")
