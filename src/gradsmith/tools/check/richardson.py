"""Richardson's table of differences: which entry to take, and how far it may be off."""

from __future__ import annotations

import numpy as np

RATIO = 4.0  # of one step to the next
SAFETY = 4.0
ABRUPT = 2.0**12


def abrupt(rows: list[np.ndarray]) -> np.ndarray:
    """Where differences suddenly agree, having been far apart for a larger step.

    Those of a smooth function come closer by 16 from step to step. What agrees suddenly
    is one piece of several: a kink is nearby, or y has so few digits that it is a
    staircase, whose steps say nothing of the slope.
    """
    abrupt = np.zeros(rows[0].shape, bool)
    for a, b, c in zip(rows, rows[1:], rows[2:], strict=False):
        change = np.abs(b - a)
        far = change > 0.3 * np.maximum(np.abs(a), np.abs(b))
        abrupt |= far & (np.abs(c - b) < change / ABRUPT)
    return abrupt


def best_entries(
    rows: list[np.ndarray], noise: np.ndarray, hs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The entry of Richardson's table that agrees best with its neighbours."""
    best, error = rows[0], np.full(rows[0].shape, np.inf)
    above: list[np.ndarray] = []
    smooth: list[tuple[float, np.ndarray]] = []  # entries free of the first power
    for h, first in zip(hs, rows, strict=True):
        row, power = [first], RATIO**2
        for k, entry in enumerate(above):
            row.append(row[k] + (row[k] - entry) / (power - 1))
            power *= RATIO**2
            spread = np.maximum(np.abs(row[-1] - row[k]), np.abs(row[-1] - entry))
            better = np.maximum(spread, noise / h) < error  # never for NaN
            best = np.where(better, row[-1], best)
            error = np.where(better, np.maximum(spread, noise / h), error)
        smooth += [(h, row[1])] if above else []
        above = row
    # Entries may agree by chance, where y has few digits, or because the steps are too
    # large to see what happens at x: what the smallest steps say otherwise, beyond
    # their noise, is an error.
    for h, entry in smooth[-2:]:
        error = np.fmax(error, np.abs(entry - best) - SAFETY * noise / h)
    return best, error


def one_sided(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative from one side, by the smallest steps and by wider ones."""
    a, b, c = rows[-3:]
    return c + (c - b) / (RATIO - 1), b + (b - a) / (RATIO - 1)
