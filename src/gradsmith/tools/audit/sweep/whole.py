"""All numbers of a domain: which units there are, how long it takes, the tallies."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..executing import carried_out
from ..formats import Format
from ..journal import Journal, key_of
from ..tally import Tally, merged
from ..task import Task
from .unit import swept

Progress = Callable[[int, int], None]  # how many numbers are done, of how many


@dataclass(frozen=True)
class Sweep:
    """The work: `sweep((first, last))` gives the tallies of value and gradient."""

    task: Task

    def __call__(self, codes: tuple[int, int]) -> tuple[Tally, Tally]:
        return swept(self.task, *codes)


def units_of(first: int, last: int, form: Format) -> list[tuple[int, int]]:
    """Binades, and what there is of them at the ends; 0 is with the numbers above it.

    >>> from ..formats import FORMATS
    >>> units_of(-3, 2000, FORMATS["float16"])
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
    task: Task,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    notes: list[str] | None = None,
) -> list[Tally]:
    """The tallies of the value and of the gradient at all numbers of the task's ends.

    With `resume` each unit is written to that file as it gets done, and those that are
    there already are not done again.
    """
    units = units_of(*task.ends, task.form)
    journal = Journal(resume, key_of(task, "all"))
    found = [journal.done[unit] for unit in units if unit in journal.done]
    todo = [unit for unit in units if unit not in journal.done]
    total = sum(b + 1 - a for a, b in units)
    done = total - sum(b + 1 - a for a, b in todo)
    tell: Any = progress or (lambda done, total: None)
    tell(done, total)
    for unit, tallies in carried_out(
        Sweep(task), todo, executor=executor, jobs=jobs, notes=notes
    ):
        journal.add(unit, [*tallies])
        found.append([*tallies])
        done += unit[1] + 1 - unit[0]
        tell(done, total)
    return [merged([pair[k] for pair in found]) for k in (0, 1)]
