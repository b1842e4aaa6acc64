"""Pure work on many items, in whichever place.

It does not matter where a pure function of an item is computed, and what is lost with
its worker is computed again.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    as_completed,
)
from dataclasses import dataclass
from typing import Any

from ...core.arrays import FRAMEWORKS, NUMPY
from ...core.errors import GradsmithError
from .limits import cores
from .pool import Pool

TRIES = 3  # times that lost work is given out again
_LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError")  # Dask's

Result = tuple[Any, Any]  # an item, and what came of it


def map_unordered(
    work: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    notes: list[str] | None = None,
) -> Iterator[Result]:
    """Each item with work(item), as they come.

    In the executor if there is one; else in `jobs` processes, by default one for each
    core, or in this process if that is one, or no others can be started.
    """
    notes = [] if notes is None else notes
    jobs = min(cores() if jobs is None else jobs, len(items))
    if executor is not None:
        yield from _in_executor(executor, work, items)
        return
    method = _method(work, notes) if jobs > 1 else None
    if method is None:
        yield from ((item, work(item)) for item in items)
    else:
        yield from _in_processes(work, items, jobs, method, notes)


def _method(work: Any, notes: list[str]) -> str | None:
    """How processes are started; None if they would not know the work."""
    if sys.platform == "linux" and not _has_threads():
        return "fork"  # they know all that is known here, lambdas too
    alone = "ran in this process alone: "
    try:
        pickle.dumps(work)
    except Exception:
        notes.append(
            f"{alone}what is audited can't be pickled; define it at the top of a "
            "module to use more cores"
        )
        return None
    if not _is_guarded():
        notes.append(
            f"{alone}other processes would run this script again; put what starts "
            'them under `if __name__ == "__main__":` to use more cores'
        )
        return None
    return "spawn"


def _has_threads() -> bool:
    """Whether a framework is imported, whose threads survive no fork."""
    others = [row for name, row in FRAMEWORKS.items() if name != NUMPY]
    return any(row.is_imported for row in others)


def _is_guarded() -> bool:
    """Whether the main script asks who runs it, as far as its text tells."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None or not os.path.exists(file):
        return True  # none is run again
    with open(file, "rb") as script:
        return b"__name__" in script.read()


@dataclass(frozen=True)
class _Numbered:
    """Work on items that have numbers; it tells nothing meanwhile."""

    work: Callable[[Any], Any]

    def __call__(self, numbered: tuple[int, Any], tell: Any) -> Any:
        return self.work(numbered[1])


def _in_processes(
    work: Callable[[Any], Any], items: Sequence[Any], jobs: int, method: str,
    notes: list[str],
) -> Iterator[Result]:  # fmt: skip
    """In a pool; what is lost too often, in this process."""
    here: list[int] = []
    losses: Counter[int] = Counter()

    with Pool(_Numbered(work), jobs=jobs, method=method) as pool:
        pool.add(enumerate(items))
        for answer in pool.answers():
            if answer is None:
                continue
            i, item = answer.item
            if answer.error is not None:
                raise answer.error
            if not answer.lost:
                yield item, answer.result
                continue
            losses[i] += 1
            if losses[i] > TRIES:
                here.append(i)
            else:
                pool.add([answer.item])
    if here:
        notes.append(
            "processes ended on their own, so that the rest was done in this one; a "
            'script that starts processes needs `if __name__ == "__main__":`'
        )
    yield from ((items[i], work(items[i])) for i in here)


def _in_executor(
    executor: Executor, work: Callable[[Any], Any], items: Sequence[Any]
) -> Iterator[Result]:
    todo = list(items)
    for _ in range(TRIES + 1):
        lost: list[Any] = []
        yield from _round(executor, work, todo, lost)
        if not lost:
            return
        todo = lost
    raise GradsmithError(
        f"{len(todo)} of {len(items)} pieces of work were lost {TRIES + 1} times "
        "with the workers that did them\n  what to do: read the workers' logs; with "
        "resume=FILE what is done is kept"
    )


def _round(
    executor: Executor, work: Any, todo: list[Any], lost: list[Any]
) -> Iterator[Result]:
    futures: dict[Future[Any], Any] = {}
    try:
        for i, item in enumerate(todo):
            try:
                futures[executor.submit(work, item)] = item
            except BrokenExecutor:
                lost += todo[i:]
                break
        for future in as_completed(futures):
            try:
                result = future.result()
            except BaseException as error:
                if not _is_loss(error):
                    raise
                lost.append(futures[future])
            else:
                yield futures[future], result
    finally:
        for future in futures:
            future.cancel()


def _is_loss(error: BaseException) -> bool:
    """Whether a worker was lost, not the work wrong."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return isinstance(error, (BrokenExecutor, CancelledError)) or bool(
        names.intersection(_LOST)
    )
