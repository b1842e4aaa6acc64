"""Does each output depend on its own element of an argument alone?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..first import Ground
from ..flat import Part

FEW = 200  # elements that are looked at one by one


def is_elementwise(ground: Ground, part: Part, random: np.random.Generator) -> bool:
    """Whether outputs change with their own elements alone, where some are moved."""
    outputs = ground.point.outputs.parts
    if len(outputs) != 1 or outputs[0].shape != part.shape:
        return False
    if part.is_complex or part.size < 2:
        return False
    moved = np.zeros(part.size, bool)
    for half in _halves(part.size, random):
        x = ground.x.copy()
        x[part.slice] += 2.0**-7 * ground.scale[part.slice] * half
        with np.errstate(all="ignore"):
            now = ~(ground.flat.value(x) == ground.y)
        if np.any(now & ~half):
            return False
        moved |= now
    return bool(np.any(moved))


def _halves(n: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Halves of the elements, such that any two are apart in one of them.

    Of many elements, one random half is unlikely to miss anything.
    """
    if n > FEW:
        yield random.integers(0, 2, n, dtype=bool)
        return
    for bit in range((n - 1).bit_length()):
        half = (np.arange(n) >> bit & 1).astype(bool)
        yield half
        yield ~half
