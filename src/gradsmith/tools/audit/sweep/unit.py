"""A unit of work: adjacent numbers, swept chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import joined
from ..formats import Format
from ..tally import Tally
from ..task import Points, Task
from .measure import Scratch
from .pieces import Piece, pieces_or_points
from .sums import Sums
from .truths import Quantity, truths

CHUNK = 1 << 14  # numbers at a time: what they need stays in the cache
MANY = 4096  # points that are looked at in one go


def swept(task: Task, first: int, last: int) -> tuple[Tally, Tally]:
    """The tallies of value and gradient of all numbers with these codes."""
    unit = _Unit(task)
    if first <= 0 <= last:
        unit.judge(np.array([0.0, -0.0]).astype(task.form.dtype), None)
    for low, high in ((first, min(last, -1)), (max(first, 1), last)):
        if low <= high:
            unit.sweep(pieces_or_points(task.reference, low, high, task.form))
    return unit.sums[0].tally(), unit.sums[1].tally()


class _Unit:
    def __init__(self, task: Task) -> None:
        self.task, self.form = task, task.form
        self.sums = Sums(task), Sums(task)  # of the value and of the gradient
        self.scratch = Scratch(CHUNK, self.form), Scratch(CHUNK, self.form)

    def sweep(self, pieces: list[Piece]) -> None:
        """Go through adjacent pieces in chunks that don't cross a bin's end."""
        code, i, last = pieces[0].first, 0, pieces[-1].last
        while code <= last:
            end = min(code + CHUNK - 1, last, self.sums[0].bin_end(code))
            j = i
            while pieces[j].last < end:
                j += 1
            self._chunk(code, end, pieces[i : j + 1])
            i, code = j + (pieces[j].last == end), end + 1

    def _chunk(self, first: int, last: int, pieces: list[Piece]) -> None:
        if all(piece.outside for piece in pieces):
            for sums in self.sums:
                sums.outside += last + 1 - first
            return
        x = _numbers(first, last, self.form)
        y, (dx,) = self.task.runner([x], self.form)
        flushes = self.task.runner.flushes
        true = truths(x, first, pieces, self.form, self.scratch, flushes=flushes)
        if self.task.runner.framework == "numpy":
            true[1].leave_out_declared(dx)
        for sums, results, quantity in zip(self.sums, (y, dx), true, strict=True):
            sums.add(results, quantity, first)
        self.judge(x, true)

    def judge(self, x: Any, true: tuple[Quantity, Quantity] | None) -> None:
        """Add the points that are open, one by one; all of them if nothing is known."""
        everywhere, nowhere = np.ones(len(x), bool), np.zeros(len(x), bool)
        if true is None:
            masks = [everywhere, everywhere]
        else:
            masks = [nowhere if q.open is None else q.open for q in true]
        at = np.flatnonzero(masks[0] | masks[1])
        if not len(at):
            return
        found = [*map(self.task.errors, Points([x[at]]).chunks(MANY))]
        for k, sums in enumerate(self.sums):
            own = masks[k][at]
            if own.any():
                errors = joined([pair[k] for pair in found]).at(own)
                sums.parts.append(self.task.tally(Points([x[at[own]]]), errors))


def _numbers(first: int, last: int, form: Format) -> Any:
    """The numbers of adjacent codes of one sign."""
    kind = f"u{form.bits // 8}"
    if first >= 0:
        return np.arange(first, last + 1, dtype=kind).view(form.dtype)
    sign = 1 << (form.bits - 1)
    down = np.arange(sign - first, sign - last - 1, -1, dtype=np.int64)
    return down.astype(kind).view(form.dtype)
