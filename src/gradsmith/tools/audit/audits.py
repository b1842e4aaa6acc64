"""An audit from what is asked to the report, of one number or of several."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from ...core.arrays import title_of
from ..check.kits import kit_for
from . import run
from .formats import format_of
from .model import Accuracy, Audit, Progress
from .notes import notes_of
from .options import Asked, require
from .rows import Rows
from .runs import Run, flushes
from .samples import samples
from .sampling import ends
from .several import Several
from .shapes import With, arguments_of, constants, on_rows, require_vectors
from .tally import NOTHING
from .targets import Target, target_of
from .task import Task

POINTS = 20_000
VECTORS = 5_000
ALONE = 500  # vectors that are given one by one


def audited(
    op: Any, domain: Any, dtype: Any, *, reference: Any, framework: str | None,
    inputs: Any, points: int | None, exhaustive: bool | None, seed: int,
    executor: Executor | None, jobs: int | None, resume: str | Path | None,
    progress: Progress | None,
) -> Audit:  # fmt: skip
    """`gs.audit` itself."""
    form = format_of(dtype)
    require(domain, points, seed)
    names = tuple(domain) if isinstance(domain, dict) else ()
    target = target_of(op, framework=framework, reference=reference, names=names)
    arguments = arguments_of(target, inputs)
    target = target.having(arguments=tuple(a.name for a in arguments if a.varies))
    asked = Asked(
        target, form, domain, points, exhaustive, seed, executor, progress, jobs, resume
    )
    first, *others = arguments
    if others or first.shape:
        return _several(asked, arguments)
    return _unary(asked if domain else replace(asked, domain=first.domain))


def _unary(asked: Asked) -> Audit:
    started, target, form = perf_counter(), asked.target, asked.form
    exhaustive = form.bits == 16 if asked.exhaustive is None else asked.exhaustive
    (name,) = target.arguments
    domain = asked.domain_of(name)
    if exhaustive and form.bits > 16:
        return _all_numbers(asked, name, started)
    x = run.inputs_of(
        domain, form, points=asked.points or POINTS, exhaustive=exhaustive,
        seed=asked.seed,
    )  # fmt: skip
    how = _run(target, target.call, form.name, elementwise=True)
    task = Task(how, target.reference, form.name, ends(domain, form))
    errors = run.judged(task, x, executor=asked.executor, progress=asked.progress)
    target = target.having(notes=(*target.notes, *notes_of(how, target, form, errors)))
    asked = replace(asked, target=target)
    value, gradient = run.unary(task, target, x, errors)
    return _report(asked, exhaustive, len(x), value, {name: gradient}, started)


def _all_numbers(asked: Asked, name: str, started: float) -> Audit:
    from .exhaustive import all_numbers

    target, form = asked.target, asked.form
    how = _run(target, target.call, form.name, elementwise=True)
    task = Task(how, target.reference, form.name, ends(asked.domain_of(name), form))
    n, (value, gradient), notes = all_numbers(
        task, target, asked.points or POINTS, asked.seed, executor=asked.executor,
        jobs=asked.jobs, resume=asked.resume, progress=asked.progress,
    )  # fmt: skip
    asked = replace(asked, target=target.having(notes=(*target.notes, *notes)))
    return _report(asked, True, n, value, {name: gradient}, started)


def _several(asked: Asked, arguments: Any) -> Audit:
    """The audit of several arguments, or of vectors."""
    started, target, form = perf_counter(), asked.target, asked.form
    require_vectors(arguments, asked.exhaustive)
    call, true, alone = on_rows(target, arguments)
    vectors = any(a.shape for a in arguments)
    n = asked.points or (ALONE if alone else VECTORS if vectors else POINTS)
    how = _run(target, call, form.name, elementwise=False)
    task = Rows(how, true, form.name, target.arguments)
    domains = {name: asked.domain_of(name) for name in target.arguments}
    xs = samples(arguments, domains, form, n, seed=asked.seed)
    held, dy = With(target.op, constants(arguments)), task.upstream(xs, seed=asked.seed)
    points = Several(task, target, held, xs, dy, alone)
    errors = points.errors(executor=asked.executor, progress=asked.progress)
    target = target.having(notes=(*target.notes, *notes_of(how, target, form, errors)))
    value, *found = points.accuracies(errors)
    gradients = dict(zip(target.arguments, found, strict=True))
    return _report(replace(asked, target=target), False, n, value, gradients, started)


def _run(target: Target, call: Any, dtype: str, *, elementwise: bool) -> Run:
    return Run(
        call, target.framework, target.name, elementwise=elementwise,
        flushes=flushes(target.framework, dtype),
    )  # fmt: skip


def _report(
    asked: Asked, exhaustive: bool, n: int, value: Accuracy,
    gradients: dict[str, Accuracy], started: float,
) -> Audit:  # fmt: skip
    target = asked.target
    if target.surrogate:
        gradients = dict.fromkeys(gradients, NOTHING.accuracy())
    worst = max(gradients.values(), key=_badness)
    return Audit(
        target.name, title_of(target.framework), kit_for(target.framework).version,
        asked.form.name, asked.domain, target.arguments, exhaustive, n, value, worst,
        gradients, target.notes, asked.seed, perf_counter() - started,
    )  # fmt: skip


def _badness(one: Accuracy) -> tuple[bool, float]:
    return (one.wrong, one.max_ulp if one.judged else -1.0)
