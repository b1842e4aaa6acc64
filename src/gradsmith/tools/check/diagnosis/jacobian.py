"""Truth and rule as arrays with the axes of an output and of the argument."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..flat import Part
from .evidence import Evidence

LARGEST = 250_000  # elements of a matrix


@dataclass(frozen=True)
class JacobianBlock:
    """For one output: truth, rule and margin as [output's axes..., argument's axes...].

    Complex arrays have a last axis of 2.
    """

    output: Part
    part: Part
    out: tuple[int, ...]
    inner: tuple[int, ...]
    truth: np.ndarray
    rule: np.ndarray
    margin: np.ndarray

    @property
    def axes(self) -> int:
        return len(self.out) + len(self.inner)

    @property
    def complex_axes(self) -> tuple[int, int] | None:
        """The axes of real and imaginary part, if both arrays are complex."""
        if not (self.output.is_complex and self.part.is_complex):
            return None
        return len(self.out) - 1, self.axes - 1

    @property
    def is_wrong(self) -> bool:
        return not self.same(self.rule)

    def same(self, guess: np.ndarray) -> bool:
        if guess.shape != self.truth.shape:
            return False
        with np.errstate(all="ignore"):
            return bool(np.all(np.abs(guess - self.truth) <= self.margin))

    def present(self, which: str) -> np.ndarray:
        """Where truth or rule is not zero, as far as can be seen."""
        found = self.truth if which == "truth" else self.rule
        size = np.abs(found)
        return (size > self.margin) & (size > 1e-9 * np.max(size, initial=0.0))


def jacobian_blocks(found: Evidence) -> list[JacobianBlock]:
    """One for each output; none if elements or outputs were left out."""
    whole = len(found.columns) == found.part.size
    whole &= len(found.rows) == found.point.y.size
    if not whole or found.truth.size > LARGEST:
        return []
    inner = axes_of(found.part)
    result = []
    for output in found.point.linearization.outputs.parts:
        out = axes_of(output)
        truth, rule, margin = (
            each[output.slice].reshape(out + inner)
            for each in (found.truth, found.matrix, found.margin)
        )
        result.append(
            JacobianBlock(output, found.part, out, inner, truth, rule, margin)
        )
    return result


def axes_of(part: Part) -> tuple[int, ...]:
    return part.shape + ((2,) if part.is_complex else ())
