"""Which gradient a framework's own rule returned for which argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.arrays import described
from ...core.cotangent import Spec
from .problem import Problem


@dataclass(frozen=True)
class Answer:
    """What a rule returned for an array that has a gradient."""

    name: str
    spec: Spec
    gradient: Any


def answers(problem: Problem, xs: list[Any], returned: Any) -> list[Answer]:
    """The gradients of the arrays `xs`, each with its argument."""
    natives = problem.framework.natives
    args, kwargs = problem.inputs
    moved = dict(zip(problem.moved, xs, strict=True))
    found = []
    for name, gradient in natives.gradients_in(problem.info, args, kwargs, returned):
        spec = described(moved[name]) if name in moved else None
        if spec is not None:
            found.append(Answer(name, spec, gradient))
    return found
