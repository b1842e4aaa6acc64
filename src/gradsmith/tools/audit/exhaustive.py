"""The audit of all numbers of a format that has many: the sweep, and what it costs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ...core import __version__
from ...core.errors import GradsmithError
from ..workers import Journal, cores, map_unordered
from . import sampling
from .explain import Sample
from .formats import Format
from .model import Accuracy, Progress
from .sweep.pieces import pieces_or_points
from .sweep.spans import swept
from .tally import Tally, merged
from .targets import Target
from .task import AuditTask, Points

PACE = 45e-9  # seconds for a number, on a core
LONG = 600.0  # seconds beyond which a warning is due
CHUNK = 4096  # points at a time
PROBE = 1024  # adjacent numbers that tell of those around them


def all_numbers(
    task: AuditTask, target: Target, points: int, seed: int, **how: Any
) -> tuple[int, list[Accuracy], list[str]]:
    """How many numbers there are, the accuracy at all of them, and notes.

    Failing regions are those that samples and the worst inputs show.
    """
    from .pipeline import notes_of

    form, notes = task.form, list[str]()
    if form.bits > 32:
        raise GradsmithError(
            f"{form.name} has too many numbers to take all; omit exhaustive="
        )
    x = sampling.sampled(_domain(task), form, points, seed=seed)
    started = perf_counter()
    task.errors(Points([x[:CHUNK]]))
    rate = (perf_counter() - started) / len(x[:CHUNK])
    _forewarn(forecast(task, rate), how)
    tallies = sweep(task, notes=notes, **how)
    worst = [one.code for tally in tallies for one in tally.worst]
    some = Points([form.numbers(np.unique([*form.codes(x), *worst]))])
    errors = task.all_errors(some, chunk=CHUNK)
    found = [
        replace(tally.accuracy(form.numbers), regions=one.regions, wrong=one.wrong)
        for tally, one in zip(
            tallies, Sample(task, target, some).accuracies(errors), strict=True
        )
    ]  # fmt: skip
    notes += notes_of(task, target, errors)
    first, last = task.span
    n = last + 1 - first + (first <= 0 <= last)
    notes.insert(0, f"all {n:,} numbers: the largest errors are proven")
    return n, found, notes


def _domain(task: AuditTask) -> tuple[float, float]:
    low, high = task.form.numbers(np.array(task.span)).astype(np.float64)
    return float(low), float(high)


def forecast(task: AuditTask, rate: float) -> float:
    """About how many seconds all numbers take on a core.

    `rate` is that of numbers one by one, as they are where a function goes up and down
    between neighbours, as sin(1e20), or where its series is not known.
    """
    size = sum(
        (last + 1 - first) * (PACE if _has_polynomials(task, first, last) else rate)
        for first, last in spans_of(*task.span, task.form)
    )
    return float(size)


def _has_polynomials(task: AuditTask, first: int, last: int) -> bool:
    if first == 0:
        first = min(1, last)
    middle = (first + last) // 2
    end = min(middle + PROBE - 1, last)
    found = pieces_or_points(task.reference, middle, end, task.form, parts=1)
    return all(piece.value is not None or piece.outside for piece in found)


def _forewarn(seconds: float, how: dict[str, Any]) -> None:
    at_once = how.get("jobs") or cores()
    seconds /= at_once
    if how.get("executor") is None and seconds > LONG:
        warnings.warn(
            f"all numbers will take about {duration(seconds)} on {at_once} cores: the "
            "function changes too fast to be approximated between neighbours, so that "
            "they are certified one by one. Narrow the domain, or keep what is done "
            "with resume=FILE",
            stacklevel=4,
        )


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(95), duration(4000)
    ('95 s', '67 min')
    """
    for size, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if seconds < 120 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


@dataclass(frozen=True)
class Sweep:
    """The work: `sweep((first, last))` gives the tallies of value and gradient."""

    task: AuditTask

    def __call__(self, codes: tuple[int, int]) -> tuple[Tally, Tally]:
        return swept(self.task, *codes)


def spans_of(first: int, last: int, form: Format) -> list[tuple[int, int]]:
    """Binades, and what there is of them at the ends; 0 is with the numbers above it.

    >>> from .formats import FORMATS
    >>> spans_of(-3, 2000, FORMATS["float16"])
    [(-3, -1), (0, 1023), (1024, 2000)]
    """
    size = 1 << (form.digits - 1)
    cuts = [first]
    if first < 0:
        cuts += [-k for k in range(-first // size * size, 0, -size) if -k >= first]
        cuts = [cuts[0], *[cut + 1 for cut in cuts[1:] if cut + 1 <= min(last, -1)]]
    start = max(first, 0) // size * size
    cuts += [k for k in range(start, last + 1, size) if k > first]
    cuts = sorted(set(cuts))
    return [(a, b - 1) for a, b in zip(cuts, [*cuts[1:], last + 1], strict=True)]


def sweep(
    task: AuditTask,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    notes: list[str] | None = None,
) -> list[Tally]:
    """The tallies of the value and of the gradient at all numbers of the task's ends.

    With `resume` each span is written to that file as it gets done, and those that are
    there already are not done again.
    """
    spans = spans_of(*task.span, task.form)
    journal, key = Journal(resume), key_of(task)
    known = [journal.get(_key(key, span), _tallies) for span in spans]
    found = [row for row in known if row is not None]
    todo = [span for span, row in zip(spans, known, strict=True) if row is None]
    notes = [] if notes is None else notes
    notes += [f"skipped {words}" for words in journal.skipped]
    total = sum(b + 1 - a for a, b in spans)
    done = total - sum(b + 1 - a for a, b in todo)
    tell: Any = progress or (lambda done, total: None)
    tell(done, total)
    for span, tallies in map_unordered(
        Sweep(task), todo, executor=executor, jobs=jobs, notes=notes
    ):
        parts = [tally.as_dict() for tally in tallies]
        journal.add({"key": _key(key, span), "tallies": parts})
        found.append([*tallies])
        done += span[1] + 1 - span[0]
        tell(done, total)
    if journal.trouble:
        notes.append(f"could not write {journal.trouble}")
    return [merged([pair[k] for pair in found]) for k in (0, 1)]


def _tallies(row: dict[str, Any]) -> list[Tally]:
    value, gradient = map(Tally.from_dict, row["tallies"])
    return [value, gradient]


def _key(key: str, span: tuple[int, int]) -> str:
    return f"{key} {span[0]}..{span[1]}"


def key_of(task: AuditTask) -> str:
    """Changes if the operation, the true function, the format or the domain does."""
    parts = (
        __version__, np.__version__, task.runner.framework, source_of(task.runner.call),
        repr(sorted(task.runner.keywords.items())), source_of(task.reference),
        task.format, task.ends,
    )  # fmt: skip
    return sha256(repr(parts).encode()).hexdigest()[:24]


def source_of(fn: Callable[..., Any]) -> str:
    """What a function is: its code if there is any, else its name."""
    inner = getattr(fn, "fn", None)  # of an operation of ours
    rules = [getattr(fn, name, None) for name in ("vjp_rule", "jvp_rule")]
    if callable(inner):
        return "".join(source_of(part) for part in (inner, *rules) if callable(part))
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        code = getattr(fn, "__code__", None)
        if code is not None:
            return repr((code.co_code.hex(), code.co_consts, code.co_names))
        return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__name__', repr(fn))}"
