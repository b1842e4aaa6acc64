"""The audit of a function of several arguments, or of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .causes import cause_of, gradient_steps, value_steps
from .explained import wrong_words
from .judged import LOST, UNDERFLOW, Judged
from .model import Accuracy, Progress, Region
from .projections import Told, regions
from .rows import Rows
from .run import in_chunks
from .shapes import With
from .targets import Target

CHUNK = 500  # points at a time
FEW = 25  # if they are given one by one: the way back of each passes all of them
SOME = 16  # points at which a formula is looked at


@dataclass(frozen=True)
class Several:
    """A task, its points, and what is needed to explain what it finds."""

    task: Rows
    target: Target
    held: With  # puts constants between the arguments
    xs: Sequence[Any]
    dy: Any
    alone: bool  # points are given one by one

    def errors(
        self, *, executor: Executor | None, progress: Progress | None
    ) -> list[Judged]:
        """The errors of the value, then of the gradient by each argument."""
        n, size = len(self.xs[0]), FEW if self.alone else CHUNK
        chunks = [self._chunk(slice(i, i + size)) for i in range(0, n, size)]
        return in_chunks(self.task, chunks, n, executor=executor, progress=progress)

    def accuracies(self, errors: Sequence[Judged]) -> list[Accuracy]:
        """What these errors come to, with what fails where."""
        return [self._accuracy(i, each) for i, each in enumerate(errors)]

    def _chunk(self, at: Any) -> Any:
        return [x[at] for x in self.xs], None if self.dy is None else self.dy[at]

    def _accuracy(self, i: int, errors: Judged) -> Accuracy:
        names = self.task.names
        what = "gradient" if i else "value"
        if i and len(names) > 1:
            what = f"gradient of {names[i - 1]}"
        said = self._regions(i, what, errors)
        wrong = any(region.kind == "wrong" for region in said)
        if wrong:  # in whichever way it shows, it is the same
            kind = np.where(errors.kind == UNDERFLOW, LOST, errors.kind)
            said = self._regions(i, what, replace(errors, kind=kind))
        found = self.task.tally(self.xs, self.dy if i else None, errors).accuracy()
        return replace(found, regions=said, wrong=wrong)

    def _regions(self, i: int, what: str, errors: Judged) -> tuple[Region, ...]:
        told = regions(self.task.names, self.xs, errors, self.task.form, what)
        return tuple(self._explained(i, what, each) for each in told)

    def _explained(self, i: int, what: str, told: Told) -> Region:
        region = told.region
        if i and region.kind in ("lost", "underflow"):
            from .wrong_rows import wrong_at

            at = told.points[np.linspace(0, len(told.points) - 1, SOME).astype(int)]
            xs, dy = self._chunk(at)
            share = wrong_at(self.task, self.target, self.held, xs, dy, i - 1)
            if np.mean(share > 0) >= 0.5:
                return wrong_words(region, what, share)
        cause = self._cause(i, told)
        if cause is None:
            return region
        return replace(region, cause=cause, text=f"{region.text} ({cause})")

    def _cause(self, i: int, told: Told) -> str | None:
        if self.target.native or self.target.framework != "numpy":
            return None
        xs, dy = self._chunk(told.worst)
        point = self.held.inserted([np.asarray(x, self.task.form.dtype) for x in xs])
        try:
            if i:
                seen = gradient_steps(self.target.op, point, self.task.form, dy=dy)
            else:
                seen = value_steps(self.target.op, point, self.task.form)
        except Exception:  # a cause is a help: without it the region stands
            return None
        region = told.region
        return cause_of(region.kind, seen, self.task.form, region.bits)
