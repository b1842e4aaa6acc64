"""Equal elements of several arguments: who of them gets the gradient?

Where max(a, b) has a = b, each of the two may have any share of it, but both together
have one gradient to share. That shows if they are moved together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .flat import Flat, Part


@dataclass(frozen=True)
class Ties:
    """The elements that equal one of another argument, and whose they are."""

    elements: np.ndarray  # flags
    names: tuple[str, ...]

    @property
    def part(self) -> Part:
        """All arguments as one."""
        return Part(" and ".join(self.names), 0, self.elements.shape)


def tied(flat: Flat, x: np.ndarray) -> Ties | None:
    """What equals an element of another argument; None if nothing does."""
    parts = flat.arguments.parts
    if len(parts) < 2 or flat.symmetric:
        return None
    values, which = np.unique(x, return_inverse=True)
    seen = np.zeros((len(parts), values.size), bool)
    for flags, part in zip(seen, parts, strict=True):
        flags[which[part.slice]] = True
    several = (np.sum(seen, axis=0) > 1) & np.isfinite(values)
    if not np.any(several):
        return None
    pairs = zip(parts, seen, strict=True)
    names = [part.name for part, flags in pairs if np.any(flags & several)]
    return Ties(several[which], tuple(names))
