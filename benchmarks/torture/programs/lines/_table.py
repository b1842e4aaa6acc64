"""The table that the files of kinds fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Kind = Callable[[Any], str]
KINDS: dict[Kind, float] = {}  # each with its weight


class NumpyOnly(str):
    """A line that means something else in JAX, or nothing."""

    __slots__ = ()


def kind(weight: float = 1.0) -> Callable[[Kind], Kind]:
    """Register a kind of line."""

    def register(write: Kind) -> Kind:
        KINDS[write] = weight
        return write

    return register
