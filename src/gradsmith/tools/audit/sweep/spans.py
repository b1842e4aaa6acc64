"""A span of adjacent numbers, compared with the truth chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import joined
from ..formats import Format, literal
from ..tally import BINS, WORST, Bins, Tally, Worst, merged
from ..task import AuditTask, Points
from .measure import SLACK, Quantity, Scratch, measured, truths
from .pieces import Piece, pieces_or_points

CHUNK = 1 << 14  # numbers at a time: what they need stays in the cache
MANY = 4096  # points that are certified in one go


def swept(task: AuditTask, first: int, last: int) -> tuple[Tally, Tally]:
    """The tallies of value and gradient of all numbers with these codes."""
    span = _Span(task)
    if first <= 0 <= last:
        span.judge(np.array([0.0, -0.0]).astype(task.form.dtype), None)
    for low, high in ((first, min(last, -1)), (max(first, 1), last)):
        if low <= high:
            span.sweep(pieces_or_points(task.reference, low, high, task.form))
    return span.sums[0].tally(), span.sums[1].tally()


class _Span:
    def __init__(self, task: AuditTask) -> None:
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


class Sums:
    """Counts, sums and maxima of one quantity. A chunk lies in one bin of the curve."""

    def __init__(self, task: AuditTask) -> None:
        self.form, self.ends = task.form, task.span
        self.width = (float(self.ends[1]) - float(self.ends[0]) + 1) / BINS
        self.parts: list[Tally] = []  # of points that were certified one by one
        self.judged = self.outside = self.beyond = 0
        self.sum_ulp = self.sum_bits = 0.0
        self.kinds = np.zeros(5, np.int64)
        self.worst: list[tuple[float, int]] = []
        self.least = -1.0  # what an error has to exceed to be among the worst
        self.bins: dict[int, list[Any]] = {}

    def bin_of(self, code: int) -> int:
        place = int((float(code) - float(self.ends[0])) / self.width)
        return min(max(place, 0), BINS - 1)

    def bin_end(self, code: int) -> int:
        """The last code that is in the same bin."""
        here = self.bin_of(code)
        if here == BINS - 1:
            return self.ends[1]
        end = int(self.ends[0] + (here + 1) * self.width) + 2
        while self.bin_of(end) > here:
            end -= 1
        return end

    def add(self, results: Any, true: Quantity, first: int) -> None:
        """Judge the results of a chunk, but those that are left out."""
        p, inverse, at = true.p, true.inverse, None
        if true.outside is not None:
            self.outside += int(np.count_nonzero(true.outside))
        if true.open is not None or true.outside is not None:
            out = [mask for mask in (true.open, true.outside) if mask is not None]
            at = np.flatnonzero(~np.any(out, axis=0))
            results, p, inverse = results[at], p[at], inverse[at]
        if not len(p):
            return
        found = measured(results, p, inverse, self.form, true.scratch)
        self.judged += len(p)
        self.beyond += found.beyond
        self.sum_ulp += found.sum_ulp
        self.sum_bits += found.sum_bits
        self.kinds[1:] += found.kinds
        i = found.at
        self._bin(first, len(p), found, first + (i if at is None else int(at[i])))
        if found.max_ulp > self.least or len(self.worst) < WORST:
            self._keep(found.ulp, first, at)

    def _bin(self, first: int, n: int, found: Any, code: int) -> None:
        known = self.bins.setdefault(self.bin_of(first), [0, 0.0, -1.0, 0])
        known[0] += n
        known[1] += found.sum_ulp
        if (found.max_ulp, -abs(code)) > (known[2], -abs(known[3])):
            known[2:] = found.max_ulp, code

    def _keep(self, ulp: Any, first: int, at: Any) -> None:
        """Keep the worst inputs, of equal ones those nearest to 0."""
        n = min(WORST, len(ulp))
        limit = max(self.least, np.partition(ulp, -n)[-n])
        some = np.flatnonzero(ulp >= limit)
        near = some[:n] if first >= 0 else some[-n:]
        some = np.concatenate([near, some[ulp[some] > limit]])
        codes = first + (some if at is None else at[some])
        new = zip(ulp[some].tolist(), codes.tolist(), strict=True)
        order = sorted({*self.worst, *new}, key=lambda w: (-w[0], abs(w[1])))
        self.worst = order[:WORST]
        self.least = self.worst[-1][0] if len(self.worst) == WORST else -1.0

    def tally(self) -> Tally:
        """All of it. What is known of each true number is at most SLACK off."""
        places = sorted(self.bins)
        bins = None
        if places:
            table = [self.bins.get(k, [0, 0.0, -1.0, 0]) for k in
                     range(places[0], places[-1] + 1)]  # fmt: skip
            bins = Bins(places[0], *map(np.array, zip(*table, strict=True)))
        worst = tuple(
            Worst(ulp, SLACK, code, literal(self.form.numbers(code)[()], self.form))
            for ulp, code in self.worst
        )
        self.kinds[0] = self.judged + self.outside - self.kinds[1:].sum()
        own = Tally(
            self.judged, 0, 0, self.outside, self.beyond, self.sum_ulp, self.sum_bits,
            tuple(map(int, self.kinds)), worst, bins,
        )  # fmt: skip
        return merged([own, *self.parts])
