"""What a gradient keeps alive between the passes, as each framework finds it."""

from __future__ import annotations

from typing import NamedTuple

from ..core.places import Place


class Residual(NamedTuple):
    """An array that an operation keeps for its gradient."""

    operation: str
    place: Place | None  # the line of the operation
    nbytes: int
