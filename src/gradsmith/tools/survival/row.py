"""A row of a framework's table of transformations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GRADIENT = "gradient"  # the gradient of phi at t
TANGENT = "tangent"  # its derivative along dt
BATCH = "batch"  # its gradient at each of the points
SECOND = "second"  # the second derivative times dt
KINDS: tuple[str, ...] = (GRADIENT, TANGENT, BATCH, SECOND)


@dataclass(frozen=True)
class Row:
    """A transformation: its name, the kind of its result, and how to run it.

    `run` is given a `Scalar`, and may return a note with the result, as `Noted`. With
    `keyword` the operation is called by keywords.
    """

    name: str
    kind: str
    run: Callable[[Any], Any]
    keyword: bool = False
    forward: bool = False  # decided by a forward rule, where there is one
    full: bool = False  # a whole matrix is computed: not for large arguments


@dataclass(frozen=True)
class Noted:
    """A result with something to say on how it was found."""

    result: Any
    note: str
