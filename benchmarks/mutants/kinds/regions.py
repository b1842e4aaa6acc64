"""Wrong on a part of the domain alone, which the user's inputs don't reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from ..inputs import Arg
from ..kind import Kind, of_first
from ..operation import Operation, Rule

WORDS = ("region",)
FACTOR = 0.5  # how wrong it is there
BEYOND, NEAR, LENGTH = 2.5, 0.01, 1024


def where_wrong(
    holds: Callable[[Any], Any], low: float, high: float
) -> Callable[[Operation], Rule | None]:
    """Wrong where `holds(x)`, if the domain reaches that far between low and high."""

    def make(op: Operation) -> Rule | None:
        arg = op.args[op.floats[0]]
        if arg.structured or arg.low > low or arg.high < high:
            return None
        return of_first(op, lambda dx, x: gnp.where(holds(x), FACTOR * dx, dx))

    return make


def late_elements(op: Operation) -> Rule | None:
    """As a kernel whose second block is never started: zero from element 1024 on."""
    arg = op.args[op.floats[0]]
    if arg.structured or len(arg.shape) < 2:
        return None
    return of_first(op, _without_late)


def _without_late(dx: Any, x: Any) -> Any:
    shape = tuple(gnp.shape(x))
    late = np.arange(int(np.prod(shape))).reshape(shape) >= LENGTH
    return gnp.where(gnp.asarray(late, like=dx), 0 * dx, dx)


def positive(arg: Arg, x: np.ndarray) -> np.ndarray:
    return np.abs(x) + 0.05


def negative(arg: Arg, x: np.ndarray) -> np.ndarray:
    return -np.abs(x) if arg.low < 0 else x


def away_from_zero(arg: Arg, x: np.ndarray) -> np.ndarray:
    return x + np.copysign(0.05, x)


def close_to_zero(arg: Arg, x: np.ndarray) -> np.ndarray:
    return x * 1e-3


def moderate(arg: Arg, x: np.ndarray) -> np.ndarray:
    return 1.8 * np.tanh(x / 1.8)


def large(arg: Arg, x: np.ndarray) -> np.ndarray:
    return x if arg.high < BEYOND else np.abs(x) + 3


KINDS = (
    Kind(
        "wrong where x < 0",
        where_wrong(lambda x: x < 0, -1.0, 1.0),
        diagnosis=WORDS,
        given=positive,
        shows=(negative,),
    ),
    Kind(
        "wrong near 0",
        where_wrong(lambda x: gnp.abs(x) < NEAR, 0.0, 1.0),
        diagnosis=WORDS,
        given=away_from_zero,
        shows=(close_to_zero,),
    ),
    Kind(
        "wrong beyond 2.5",
        where_wrong(lambda x: x > BEYOND, 0.0, 3.0),
        diagnosis=WORDS,
        given=moderate,
        shows=(large,),
    ),
    Kind(
        "wrong from element 1024",
        late_elements,
        diagnosis=WORDS,
        showing_sizes=(("n", 40), ("m", 40), ("k", 40)),
    ),
)
