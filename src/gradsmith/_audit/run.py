"""The audit of a unary operation: results against the oracle, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from . import sampling
from .formats import Format
from .judged import Judged, joined
from .model import Accuracy, Domain
from .regions import in_order, regions
from .task import Task

CHUNK = 4096  # points at a time: what they need stays in the cache

# Called with how many points are done, and of how many
Progress = Callable[[int, int], None]


def inputs_of(
    domain: Domain | None, form: Format, *, points: int, exhaustive: bool, seed: int
) -> Any:
    """The numbers at which a unary operation is looked at."""
    if exhaustive:
        return sampling.all_of(domain, form)
    return sampling.sampled(domain, form, points, seed=seed)


def judged(
    task: Any, x: Any, *, executor: Executor | None, progress: Progress | None
) -> list[Judged]:
    """The errors of the value and of the gradients at all inputs."""
    chunks = [x[i : i + CHUNK] for i in range(0, len(x), CHUNK)]
    parts = (map if executor is None else executor.map)(task.judged, chunks)
    parts = [*_told(parts, len(x), progress)]
    return [joined(each) for each in zip(*parts, strict=True)]


def _told(parts: Iterable[Any], n: int, progress: Progress | None) -> Iterable[Any]:
    done = 0
    for part in parts:
        done += len(part[0].ulp)
        if progress is not None:
            progress(done, n)
        yield part


def unary(task: Task, x: Any, errors: list[Judged], name: str) -> list[Accuracy]:
    """The accuracy of the value and of the gradient, with what fails where."""
    return [
        replace(
            task.tally(x, each).accuracy(task.form.numbers),
            regions=tuple(regions_in(task, i, x, each, name)),
        )
        for i, each in enumerate(errors)
    ]


def regions_in(task: Task, i: int, x: Any, errors: Judged, name: str) -> list[Any]:
    """The failing regions of the value (i = 0) or of the gradient (i = 1)."""
    form, what = task.form, ("value", "gradient")[i]

    def probe(codes: Any) -> Judged:
        return task.judged(form.numbers(codes))[i]

    points = in_order(form.codes(x), errors, probe, form, what, name)
    return [found.region for found in regions(points)]
