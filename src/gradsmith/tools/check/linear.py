"""The outputs of an operation at a point, and its rule there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = list[np.ndarray]
Gradients = list[np.ndarray | None]


@dataclass(frozen=True)
class Linear:
    """The outputs at a point, and the rule there: `pull(dys)` gives the gradients.

    It may be called often. A gradient is None where the framework says that the
    argument is not connected.
    """

    ys: Arrays
    pull: Callable[[Sequence[np.ndarray]], Gradients]


def wide(x: Any) -> np.ndarray:
    """In double precision; the array itself if it is."""
    x = np.asarray(x)
    return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)
