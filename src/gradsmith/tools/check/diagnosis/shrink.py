"""A small problem like a large one, in which a wrong gradient is easier to name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....core import trees
from ..first import Ground
from ..flat import flat
from .case import Case

SHORT = 4  # axes up to this length stay; others become a little longer than this


def shrunk(case: Case) -> Case | None:
    """The case with short axes, if the operation takes them and is wrong there too.

    Axes of the same length stay so, and those of different ones too.
    """
    problem = case.ground.flat.problem.at_moved(
        case.ground.flat.arguments.arrays(case.ground.x)
    )
    lengths = sorted({n for x in _arrays(problem.inputs) for n in x.shape if n > SHORT})
    if not lengths:
        return None
    short = {n: min(n, SHORT + k) for k, n in enumerate(lengths)}
    try:
        small = flat(problem.with_inputs(_cut(problem.inputs, short)))
        ground = Ground(small, case.random)
        parts = case.ground.flat.arguments.parts
        part = small.arguments.parts[parts.index(case.part)]
        found = replace(case, ground=ground, part=part)
        if not found.is_small or not np.all(np.isfinite(ground.y)):
            return None
        wrong = np.any(found.evidence.states(case.random) > 0)
    except Exception:  # the operation's own: it doesn't take these shapes
        return None
    return found if wrong else None


def _arrays(inputs: Any) -> list[np.ndarray]:
    return [x for x in trees.leaves(inputs) if isinstance(x, np.ndarray)]


def _cut(inputs: Any, short: dict[int, int]) -> Any:
    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        return x[tuple(slice(short.get(n, n)) for n in x.shape)].copy()

    return trees.map(leaf, inputs)
