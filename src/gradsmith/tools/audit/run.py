"""The audit of a unary operation: results against the oracle, chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import sampling
from .executing import carried_out
from .explained import explained
from .formats import Format
from .judged import LOST, UNDERFLOW, Judged, joined
from .model import Accuracy, Domain, Progress
from .regions import Found, in_order, regions
from .targets import Target
from .task import Task

CHUNK = 4096  # points at a time: what they need stays in the cache
MANY = 300_000  # points that are worth several processes


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
    return in_chunks(task, chunks, len(x), executor=executor, progress=progress)


def in_chunks(
    task: Any, chunks: Sequence[Any], n: int, *,
    executor: Executor | None, progress: Progress | None,
) -> list[Judged]:  # fmt: skip
    """The errors of all chunks, of n points together, in their order."""
    parts: list[Any] = [None] * len(chunks)
    jobs, done = None if n >= MANY else 1, 0
    for (i, _), part in carried_out(
        _Judging(task), [*enumerate(chunks)], executor=executor, jobs=jobs
    ):
        parts[i] = part
        done += len(part[0].ulp)
        if progress is not None:
            progress(done, n)
    return [joined(each) for each in zip(*parts, strict=True)]


@dataclass(frozen=True)
class _Judging:
    task: Any

    def __call__(self, numbered: tuple[int, Any]) -> list[Judged]:
        return self.task.judged(numbered[1])


def unary(task: Task, target: Target, x: Any, errors: list[Judged]) -> list[Accuracy]:
    """The accuracy of the value and of the gradient, with what fails where."""
    found = []
    for what, each in zip(("value", "gradient"), errors, strict=True):
        said = explained(regions_in(task, what, x, each, target), what, target, task)
        wrong = any(region.kind == "wrong" for region in said)
        if wrong:  # in whichever way it shows, it is the same
            plain = replace(
                each, kind=np.where(each.kind == UNDERFLOW, LOST, each.kind)
            )
            said = explained(
                regions_in(task, what, x, plain, target), what, target, task
            )
        accuracy = task.tally(x, each).accuracy(task.form.numbers)
        found.append(replace(accuracy, regions=said, wrong=wrong))
    return found


def _said(task: Task, target: Target, x: Any, errors: Judged, what: str) -> Any:
    found = regions_in(task, what, x, errors, target)
    return explained(found, what, target, task)


def regions_in(
    task: Task, what: str, x: Any, errors: Judged, target: Target
) -> list[Found]:
    """The failing regions of the value or of the gradient."""
    form, i = task.form, int(what == "gradient")

    def probe(codes: Any) -> Judged:
        return task.judged(form.numbers(codes))[i]

    name = target.arguments[0]
    return regions(in_order(form.codes(x), errors, probe, form, what, name))
