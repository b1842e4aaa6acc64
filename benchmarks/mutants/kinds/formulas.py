"""Wrong formulas, which the operations themselves bring as variants of their rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..inputs import SQUARE, Arg
from ..kind import Kind
from ..operation import Operation, Rule

SQUARES = tuple(SQUARE.items())


def variant(name: str) -> Callable[[Operation], Rule | None]:
    return lambda op: op.variants.get(name)


def ties(arg: Arg, x: np.ndarray) -> np.ndarray:
    return np.sign(np.round(x))


def zeros(arg: Arg, x: np.ndarray) -> np.ndarray:
    return np.zeros_like(x)


def some_zeros(arg: Arg, x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(x.size).reshape(x.shape) % 3 == 0, 0, x)


def hundreds(arg: Arg, x: np.ndarray) -> np.ndarray:
    return 100 * np.sign(x)


def enormous(arg: Arg, x: np.ndarray) -> np.ndarray:
    return 1e25 * x


KINDS = (
    Kind("wrong axis", variant("wrong axis"), diagnosis=("axis",), sizes=SQUARES),
    Kind("dropped term", variant("dropped term"), diagnosis=("dropped",)),
    Kind("formula", variant("formula"), sizes=SQUARES),
    Kind("approximation", variant("approximation")),
    Kind("ties counted twice", variant("ties"), shows=(ties,)),
    Kind("nan at zero", variant("nan at zero"), shows=(zeros, some_zeros)),
    Kind(
        "overflow of float32",
        variant("overflow"),
        dtypes=("float32",),
        shows=(hundreds, enormous),
    ),
)
