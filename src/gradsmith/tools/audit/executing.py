"""Long work in pieces: in processes or anywhere else, written down as it gets done.

A piece of work is a pure function of an item, so that it does not matter where it is
done, and a piece that is lost with its worker is done again.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from ...core.arrays import FRAMEWORKS, NUMPY
from ...core.errors import GradsmithError

TRIES = 3  # times that lost work is given out again
_LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError")  # Dask's

Result = tuple[Any, Any]  # an item, and what came of it


def carried_out(
    work: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    notes: list[str] | None = None,
) -> Iterator[Result]:
    """Each item with work(item), as they come.

    In the executor if there is one; else in `jobs` processes, as many as there are
    cores unless said, or right here if that is one, or processes can't be had.
    """
    notes = [] if notes is None else notes
    jobs = min(cores() if jobs is None else jobs, len(items))
    if executor is not None:
        yield from _in(lambda: _given(executor, work), items, notes)
        return
    method = _method(work, notes) if jobs > 1 else None
    if method is None:
        yield from ((item, work(item)) for item in items)
    else:
        yield from _in(lambda: _processes(work, jobs, method), items, notes, work)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _method(work: Any, notes: list[str]) -> str | None:
    """How processes are started; None if they would not know the work."""
    others = [row for name, row in FRAMEWORKS.items() if name != NUMPY]
    threaded = any(row.is_imported for row in others)  # threads survive no fork
    if sys.platform == "linux" and not threaded:
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


def _is_guarded() -> bool:
    """Whether the main script asks who runs it, as far as its text tells."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None or not os.path.exists(file):
        return True  # none is run again
    with open(file, "rb") as script:
        return b"__name__" in script.read()


# What the processes of a pool work at
_work: Any = None


def _begin(work: Any) -> None:
    global _work
    _work = work
    signal(SIGINT, SIG_IGN)  # Ctrl-C is for the one who started it


def _call(item: Any) -> Any:
    return _work(item)


Submit = Callable[[Any], "Future[Any]"]


@contextmanager
def _processes(work: Any, jobs: int, method: str) -> Iterator[Submit]:
    pool = ProcessPoolExecutor(
        jobs, get_context(method), initializer=_begin, initargs=(work,)
    )

    def submit(item: Any) -> Future[Any]:
        with warnings.catch_warnings():
            # Threads may not survive a fork: none of NumPy's and Arb's is needed
            warnings.simplefilter("ignore", DeprecationWarning)
            return pool.submit(_call, item)

    try:
        yield submit
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _given(executor: Executor, work: Any) -> Iterator[Submit]:
    yield lambda item: executor.submit(work, item)


def _in(
    make: Any, items: Sequence[Any], notes: list[str], here: Any = None
) -> Iterator[Result]:
    """Give out work until all is done; at last, do it `here`."""
    todo = list(items)
    for _ in range(TRIES + 1):
        lost: list[Any] = []
        with make() as submit:
            yield from _round(submit, todo, lost)
        if not lost:
            return
        todo = lost
    if here is None:
        raise GradsmithError(
            f"{len(todo)} of {len(items)} pieces of work were lost {TRIES + 1} times "
            "with the workers that did them\n  what to do: look at the workers' logs; "
            "what is done is kept if there is a file to resume from"
        )
    notes.append(
        "processes ended on their own, so that the rest was done in this one; a script "
        'that starts processes needs `if __name__ == "__main__":`'
    )
    yield from ((item, here(item)) for item in todo)


def _round(submit: Submit, todo: list[Any], lost: list[Any]) -> Iterator[Result]:
    futures: dict[Future[Any], Any] = {}
    try:
        for i, item in enumerate(todo):
            try:
                futures[submit(item)] = item
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
