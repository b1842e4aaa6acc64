"""What is done to the upstream gradient before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from ..kind import Kind, each
from ..operation import Operation, Rule


def upstream(change: Callable[[Any], Any]) -> Callable[[Operation], Rule]:
    """A kind whose rule is right for another upstream gradient."""

    def make(op: Operation) -> Rule:
        def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
            return op.rule(each(change, dy), y, *xs)

        return rule

    return make


def clipped(dy: Any) -> Any:
    return gnp.clip(dy, -1.0, 1.0)


def rectified(dy: Any) -> Any:
    return gnp.maximum(dy, 0)


KINDS = (
    Kind("upstream ignored", upstream(gnp.ones_like), diagnosis=("ignored",)),
    Kind("upstream clipped", upstream(clipped), diagnosis=("clip",)),
    Kind("upstream rectified", upstream(rectified), diagnosis=("rectif", "relu")),
    Kind("upstream absolute", upstream(gnp.abs)),
)
