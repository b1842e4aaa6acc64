"""An audit from its options to the report, of one number or of several arguments."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, title_of
from ...core.errors import GradsmithError
from ...report.figures import percent
from .._inputs import RANDOM
from . import sampling
from .arguments import Argument, arguments_of, constants, on_rows
from .certified.truth import OUTSIDE
from .errors import Errors
from .explain import Sample
from .formats import Format
from .model import Accuracy, Audit, Domain, Progress
from .runner import Runner, flushes
from .tally import NOTHING
from .targets import Target, target_of
from .task import AuditTask, Points

POINTS, VECTORS = 20_000, 5_000  # sampled by default
ALONE = 500  # vectors that are given one by one
CHUNKS = 4096, 500  # numbers and vectors at a time: what they need stays in the cache
FEW = 16  # points that are tried twice
CHUNK_ALONE = 25  # the way back of each passes all of them


@dataclass(frozen=True)
class Options:
    """The options of an audit, checked."""

    form: Format
    domain: Domain | dict[str, Domain] | None
    points: int | None
    exhaustive: bool | None
    seed: int
    executor: Executor | None
    jobs: int | None
    resume: str | Path | None
    progress: Progress | None

    def __post_init__(self) -> None:
        points, seed = self.points, self.seed
        if points is not None and (not isinstance(points, Integral) or points < 1):
            raise GradsmithError(f"points={points!r}: give a whole number, at least 1")
        if not isinstance(seed, Integral) or seed < 0:
            raise GradsmithError(f"seed={seed!r}: give a whole number, at least 0")
        domain = self.domain
        given = domain if isinstance(domain, dict) else {"": domain}
        for name, one in given.items():
            pair = isinstance(one, (tuple, list)) and len(one) == 2
            if one is None or (pair and all(isinstance(end, Real) for end in one)):
                continue
            shown = f"domain={{{name!r}: {one!r}}}" if name else f"domain={one!r}"
            raise GradsmithError(f"{shown}: give (low, high), such as (-10, 10)")

    def settled(self, target: Target, arguments: Sequence[Argument]) -> Options:
        """With what the arguments say of the domain, and whether all are taken."""
        names = target.arguments
        if isinstance(self.domain, dict):
            unknown = [name for name in self.domain if name not in names]
            if unknown:
                raise GradsmithError(
                    f"domain= names {unknown[0]!r}, and {target.name} takes "
                    f"{', '.join(names)}"
                )
        for name in names:
            if self.domain_of(name) is not None:
                sampling.ends(self.domain_of(name), self.form)  # raises if it is empty
        if is_single(arguments):
            every = self.form.bits == 16 if self.exhaustive is None else self.exhaustive
            domain = self.domain or arguments[0].domain
            return replace(self, exhaustive=every, domain=domain)
        if self.exhaustive:
            raise GradsmithError(
                "exhaustive=True is for functions of one number; this one takes "
                f"{', '.join(a.name for a in arguments)}: vectors or several "
                "arguments, which are sampled"
            )
        return replace(self, exhaustive=False)

    def domain_of(self, name: str) -> Domain | None:
        return self.domain.get(name) if isinstance(self.domain, dict) else self.domain


def is_single(arguments: Sequence[Argument]) -> bool:
    """Whether there is one argument, a number."""
    return len(arguments) == 1 and not arguments[0].shape


def run_audit(
    op: Any, options: Options, *, reference: Any, framework: str | None, inputs: Any
) -> Audit:
    """`gs.audit` itself."""
    started = perf_counter()
    names = tuple(options.domain) if isinstance(options.domain, dict) else ()
    target = target_of(op, framework=framework, reference=reference, names=names)
    arguments = arguments_of(target, inputs)
    target = target.having(arguments=tuple(a.name for a in arguments if a.varies))
    options = options.settled(target, arguments)
    n, (value, *slopes), notes = _found(target, arguments, options)
    gradients = dict(zip(target.arguments, slopes, strict=True))
    if target.surrogate:
        gradients = dict.fromkeys(gradients, NOTHING.accuracy())
    used = FRAMEWORKS[target.framework]
    return Audit(
        target.name, used.title, used.arrays.version,
        options.form.name, options.domain, target.arguments, bool(options.exhaustive),
        n, value, max(gradients.values(), key=_badness), gradients,
        (*target.notes, *notes), options.seed, perf_counter() - started,
    )  # fmt: skip


def _found(
    target: Target, arguments: Sequence[Argument], options: Options
) -> tuple[int, list[Accuracy], list[str]]:
    """How many inputs there are, the accuracy of all quantities, and notes."""
    call, true, alone = on_rows(target, arguments)
    vectors, single = any(a.shape for a in arguments), is_single(arguments)
    task = _task(target, call, true, options, elementwise=not vectors, single=single)
    n = options.points or (ALONE if alone else VECTORS if vectors else POINTS)
    if options.exhaustive and options.form.bits > 16:
        from .exhaustive import all_numbers

        return all_numbers(
            task, target, n, options.seed, executor=options.executor,
            jobs=options.jobs, resume=options.resume, progress=options.progress,
        )  # fmt: skip
    points = _points(task, arguments, options, n)
    _require_same_twice(task, points)
    errors = task.all_errors(
        points,
        chunk=CHUNK_ALONE if alone else CHUNKS[not single],
        executor=options.executor,
        progress=options.progress,
    )
    found = Sample(task, target, points, constants(arguments)).accuracies(errors)
    return len(points), found, notes_of(task, target, errors)


def _require_same_twice(task: AuditTask, points: Points) -> None:
    few = points.at(slice(None, None, -(-len(points) // FEW)))
    (first, _), (second, _) = (task.runner(few.xs, task.form, few.dy) for _ in range(2))
    with np.errstate(all="ignore"):
        same = np.allclose(
            first.astype(float), second.astype(float), rtol=0.1, atol=0, equal_nan=True
        )
    if not same:
        raise GradsmithError(RANDOM)


def _task(
    target: Target, call: Any, true: Any, options: Options, *, elementwise: bool,
    single: bool,
) -> AuditTask:  # fmt: skip
    form = options.form
    runner = Runner(
        call, target.framework, target.name, elementwise=elementwise,
        flushes=flushes(target.framework, form.name),
    )  # fmt: skip
    domain = options.domain_of(target.arguments[0])
    ends = sampling.ends(domain, form) if single else None
    return AuditTask(runner, true, form.name, ends, target.arguments)


def _points(
    task: AuditTask, arguments: Sequence[Argument], options: Options, n: int
) -> Points:
    form, seed = options.form, options.seed
    domains = {name: options.domain_of(name) for name in task.names}
    if task.ends is None:
        xs = sampling.samples(arguments, domains, form, n, seed=seed)
        return task.with_upstream(xs, seed=seed)
    (domain,) = domains.values()
    if options.exhaustive:
        return Points([sampling.all_of(domain, form)])
    return Points([sampling.sampled(domain, form, n, seed=seed)])


def notes_of(task: AuditTask, target: Target, errors: Sequence[Errors]) -> list[str]:
    """What was not judged, and what was computed in another format."""
    form, found = task.form, list[str]()
    if target.surrogate:
        found.append(
            f"the gradient is declared a surrogate ({target.surrogate}): it is not "
            "compared with the derivative"
        )
    if target.framework == "numpy" and form.name == "bfloat16":
        found.append("NumPy computes bfloat16 in float32, and the results are rounded")
    least = form.smallest_normal
    small, large = (
        max(np.mean((e.status == OUTSIDE) & there(np.abs(e.true))) for e in errors)
        for there in (
            lambda size: (size < least) & (size > 0),
            lambda size: size >= form.overflow,
        )
    )
    if task.runner.flushes and small:
        found.append(
            f"{title_of(target.framework)} flushes subnormal numbers to 0: inputs and "
            f"results below {least:.3g} are not judged"
        )
    if target.framework == "numpy" and large and not target.surrogate:
        found.append(
            f"the engine's gradient is 0 where the true one is larger than any "
            f"{form.name}, {percent(float(large))} of the inputs: not judged"
        )
    return found


def _badness(one: Accuracy) -> tuple[bool, float]:
    return (one.wrong, one.max_ulp if one.judged else -1.0)
