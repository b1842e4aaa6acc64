"""An operation against the truth at some points: pure, so that it can run anywhere.

A point is a number or a row of each argument, its error that of its worst element. A
gradient of vectors is a sum over the outputs, in which terms may cancel whatever one
does: its unit is that of the sum of their sizes. With an upstream gradient of one
element, which most points have, that is the gradient's own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.transforms import vjp
from ..workers import map_unordered
from .certified.certify import certify
from .errors import Errors, errors_of, joined
from .formats import Format, format_of, literal
from .model import Progress
from .runner import Runner
from .sampling import upstreams
from .tally import Tally, tally

MANY = 300_000  # points that are worth several processes


@dataclass(frozen=True)
class Points:
    """Rows of each argument, and of the upstream gradient: of ones if it is None."""

    xs: Sequence[Any]
    dy: Any = None

    def __len__(self) -> int:
        return len(self.xs[0])

    def at(self, index: Any) -> Points:
        dy = None if self.dy is None else self.dy[index]
        return Points([x[index] for x in self.xs], dy)

    def chunks(self, size: int) -> Iterator[Points]:
        return (self.at(slice(i, i + size)) for i in range(0, len(self), size))


@dataclass(frozen=True)
class AuditTask:
    """An operation, how it is run, and its true function.

    `task(points)` gives the tallies of the value and of the gradient by each argument,
    `task.errors(points)` their errors one by one. It can be pickled if `runner.call`
    and `reference` can. With `ends`, the first and the last code of the whole domain,
    it is an elementwise function of one number.
    """

    runner: Runner
    reference: Callable[..., Any]
    format: str
    ends: tuple[int, int] | None = None
    names: tuple[str, ...] = ("x",)

    @property
    def form(self) -> Format:
        return format_of(self.format)

    @property
    def span(self) -> tuple[int, int]:
        """The ends, of a function of one number."""
        assert self.ends is not None
        return self.ends

    def __call__(self, points: Points) -> list[Tally]:
        found = self.errors(points)
        return [self.tally(points, errors) for errors in found]

    def errors(self, points: Points) -> list[Errors]:
        """The errors of the value and of the gradient by each argument."""
        xs, dy, form = points.xs, points.dy, self.form
        y, dxs = self.runner(xs, form, dy)
        wide = [x.astype(np.float64) for x in xs]
        value, slopes = certify(
            self.reference, wide, form, dy=None if dy is None else dy.astype(float)
        )
        skip = self.runner.skip(xs, value, form)
        found = [errors_of(y, value, form, skip=skip)]
        sizes = self._sizes(wide, dy)
        for dx, slope, size in zip(dxs, slopes, sizes, strict=True):
            skip = self.runner.skip(xs, slope, form, dx)
            found.append(errors_of(dx, slope, form, skip=skip, size=size))
        return [each.by_rows() for each in found]

    def all_errors(
        self, points: Points, *, chunk: int, executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> list[Errors]:  # fmt: skip
        """The errors at many points, chunk by chunk, in their order."""
        chunks = [*enumerate(points.chunks(chunk))]
        parts: list[Any] = [None] * len(chunks)
        n, done = len(points), 0
        jobs = None if n >= MANY else 1
        work = _Numbered(self)
        for (i, _), part in map_unordered(work, chunks, executor=executor, jobs=jobs):
            parts[i] = part
            done += len(part[0].ulp)
            if progress is not None:
                progress(done, n)
        return [joined(each) for each in zip(*parts, strict=True)]

    def tally(self, points: Points, errors: Errors, *, dy: bool = True) -> Tally:
        """The tally of errors that are known, whoever has found them."""
        if self.ends is not None:
            (x,), form = points.xs, self.form
            codes = form.codes(x)
            return tally(errors, codes, lambda i: literal(x[i], form), self.ends)
        shown = dict(zip(self.names, points.xs, strict=True))
        if dy and points.dy is not None:
            shown["dy"] = points.dy
        return tally(errors, np.arange(len(points)), lambda i: self._shown(shown, i))

    def _shown(self, arrays: dict[str, Any], i: int) -> str:
        parts = [f"{k}={literals(x[i], self.form)}" for k, x in arrays.items()]
        return ", ".join(parts)

    def with_upstream(self, xs: Sequence[Any], *, seed: int) -> Points:
        """Points with upstream gradients, if a value has several elements."""
        if all(x.ndim == 1 for x in xs):
            return Points(xs)
        y, _ = self.runner([x[:1] for x in xs], self.form)
        if y.ndim < 2:
            return Points(xs)
        return Points(xs, upstreams((len(xs[0]), *y.shape[1:]), self.form, seed=seed))

    def _sizes(self, xs: Sequence[Any], dy: Any) -> list[Any]:
        """The sums of the sizes of terms, in double precision."""
        if dy is None:
            return [None] * len(xs)
        try:
            with np.errstate(all="ignore"):
                y, pull = vjp(self.reference, *xs)
                sums = [np.zeros(x.shape) for x in xs]
                for place in np.ndindex(*np.shape(y)[1:]):
                    one = np.zeros(np.shape(y))
                    one[(slice(None), *place)] = dy[(slice(None), *place)]
                    for total, dx in zip(sums, pull(one), strict=True):
                        total += np.abs(dx)
        except Exception:  # a reference that runs on balls alone
            return [None] * len(xs)
        return [np.where(np.isfinite(total), total, 0) for total in sums]


@dataclass(frozen=True)
class _Numbered:
    task: AuditTask

    def __call__(self, numbered: tuple[int, Points]) -> list[Errors]:
        return self.task.errors(numbered[1])


def literals(x: Any, form: Format) -> str:
    """A number or an array of numbers, exactly."""
    if np.ndim(x) == 0:
        return literal(x, form)
    return f"[{', '.join(literals(each, form) for each in x)}]"
