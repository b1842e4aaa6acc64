"""The accuracy of a sample: what fails where, and what is behind it.

A region is explained by a wrong formula, or by the operation to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS
from ...operations.info import is_floating
from ...report.figures import percent
from .arguments import Fixed
from .causes import cause_of, gradient_steps, value_steps
from .errors import LOST, UNDERFLOW, Errors
from .model import Accuracy, Region
from .regions import Found, by_features, on_a_line
from .targets import Target
from .task import AuditTask, Points
from .wrong import off_by_formula


@dataclass(frozen=True)
class Sample:
    """The points of a task, and what is needed to explain their errors."""

    task: AuditTask
    target: Target
    points: Points
    constants: tuple[tuple[int, Any], ...] = ()  # arguments that are fixed

    def accuracies(self, errors: Sequence[Errors]) -> list[Accuracy]:
        """Of the value, then of the gradient by each argument."""
        return [self._accuracy(i, each) for i, each in enumerate(errors)]

    def _accuracy(self, i: int, errors: Errors) -> Accuracy:
        names = self.task.names
        what = "gradient" if i else "value"
        if i and len(names) > 1:
            what = f"gradient of {names[i - 1]}"
        found = self._regions(i, what, errors)
        wrong = any(region.kind == "wrong" for region in found)
        if wrong:  # in whichever way it shows, it is the same
            kind = np.where(errors.kind == UNDERFLOW, LOST, errors.kind)
            found = self._regions(i, what, replace(errors, kind=kind))
        tally = self.task.tally(self.points, errors, dy=i > 0)
        figures = tally.accuracy(self.task.form.numbers)
        return replace(figures, regions=found, wrong=wrong)

    def _regions(self, i: int, what: str, errors: Errors) -> tuple[Region, ...]:
        task, xs = self.task, self.points.xs
        if task.ends is None:
            found = by_features(task.names, xs, errors, task.form, what)
        else:
            form, (name,) = task.form, task.names

            def probe(codes: Any) -> Errors:
                codes = np.clip(codes, *task.span)  # beyond are infinity and NaN
                return task.errors(Points([form.numbers(codes)]))[i]

            found = on_a_line(xs[0], errors, probe, form, what, name)
        return tuple(self._explained(i, what, each) for each in found)

    def _explained(self, i: int, what: str, found: Found) -> Region:
        region, op = found.region, Fixed(self.target.op, self.constants)
        if i and region.kind in ("lost", "underflow"):
            true = Fixed(self.target.reference, self.constants)
            some = self.points.at(found.points)
            share = off_by_formula(self.task, op, true, some, i - 1)
            if np.mean(share > 0) >= 0.5:
                return _wrong(region, what, share)
        if self.target.native:
            return region
        at = int(found.points[0])
        if all(x.ndim == 1 for x in self.points.xs):  # numbers, in arrays of one
            worst = self.points.at(slice(at, at + 1))
        else:
            worst = self.points.at(at)
        try:
            xs = [np.asarray(x, np.float64) for x in worst.xs]
            cause = self._cause(i, region, op.complete(xs), worst.dy)
        except Exception:  # a cause is a help: without it the region stands
            cause = None
        if cause is None:
            return region
        return replace(region, cause=cause, text=f"{region.text} ({cause})")

    def _cause(self, i: int, region: Region, args: list[Any], dy: Any) -> str | None:
        target, form = self.target, self.task.form
        if target.framework != "numpy":
            return _origin(target, region, args, form.name)
        if i:
            steps = gradient_steps(target.op, args, form, dy=dy)
        else:
            steps = value_steps(target.op, args, form)
        return cause_of(region.kind, steps, form, region.bits)


def _wrong(region: Region, what: str, share: Any) -> Region:
    """A region whose formula is off by these shares."""
    off = float(np.nanmedian(share))
    clear = region.where in ("everywhere", "here and there")
    at = region.where if clear else f"for {region.where}"
    text = f"{what} is wrong {at}: the formula itself is off by {_share(off)}"
    return replace(region, kind="wrong", text=f"{text}, however exactly it is computed")


def _share(share: float) -> str:
    if share == float("inf"):
        return "more than the derivative, which is 0"
    return percent(share)


def _origin(target: Target, region: Region, args: list[Any], dtype: str) -> str | None:
    """Where a NaN or inf came up, in a function of another framework."""
    from ..nan import find_nan

    if region.kind not in ("nan", "overflow", "infinite"):
        return None
    arrays = FRAMEWORKS[target.framework].arrays
    with arrays.precision(dtype):
        given = [arrays.array(x, dtype) if is_floating(x) else x for x in args]
        seen = find_nan(target.op, *given, framework=target.framework)
    if seen.where is None:
        return None
    kind = {"nan": "NaN", "inf": "overflow"}[seen.kind or "nan"]
    return f"{kind} in `{seen.operation}`, line {seen.where.line}"
