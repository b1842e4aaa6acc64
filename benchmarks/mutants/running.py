"""The checks to be made, and making them: in this process, or spread over several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks._peers import is_installed, load

from .corpus import Subject, controls, corpus
from .outcome import OURS, Outcome, ours
from .peers import CHECKERS, can_check, peers
from .results import Key, Results

SEEDS = 4  # 68 operations, 4 frameworks, 2 dtypes: 2,176 checks of right gradients
PEER_SEEDS = 1


@dataclass(frozen=True)
class Selection:
    """What the command line asks for."""

    half: str = "both"
    framework: str | None = None
    kind: str | None = None
    operation: str | None = None
    seed: int = 0
    jobs: int = 2
    every: bool = False
    quick: bool = False
    ours: bool = True
    peers: tuple[str, ...] = ()
    results: str | None = None  # a file of outcomes, to go on with


@dataclass(frozen=True)
class Task:
    """The checks of one subject by one checker, ours or a peer's place in CHECKERS."""

    subject: Subject
    checker: int | None
    seeds: tuple[int, ...]

    def filed_under(self) -> list[Key]:
        """The keys of its outcomes."""
        s, name, dtypes = self.subject, OURS, self.subject.dtypes
        if self.checker is not None:
            name, dtypes = CHECKERS[self.checker].name, (CHECKERS[self.checker].dtype,)
        where = (s.operation, s.kind, s.framework, name)
        return [(*where, dtype, seed) for dtype in dtypes for seed in self.seeds]

    def run(self) -> list[Outcome]:
        with ready(self.subject.framework):
            if self.checker is not None:
                checker = CHECKERS[self.checker]
                return [peers(checker, self.subject, seed) for seed in self.seeds]
            pairs = [(d, s) for d in self.subject.dtypes for s in self.seeds]
            return [ours(self.subject, dtype, seed) for dtype, seed in pairs]


@contextmanager
def ready(framework: str) -> Iterator[None]:
    """JAX with float64, which it has in this mode alone."""
    if framework != "jax":
        yield
        return
    with load("jax").enable_x64(True):
        yield


def tasks(selection: Selection) -> list[Task]:
    """All checks, ordered by framework, so that few processes import several."""
    s = selection
    where = {"half": s.half, "framework": s.framework, "operation": s.operation}
    mutants = list(corpus(kind=s.kind, every=s.every, **where))
    right = list(controls(**where)) if s.kind is None else []
    seeds = SEEDS
    if s.quick:
        mutants, right, seeds = mutants[::40], right[::21], 1
    found = [
        *_tasks(mutants, s, (s.seed,), (s.seed,)),
        *_tasks(right, s, _seeds(s.seed, seeds), _seeds(s.seed, PEER_SEEDS)),
    ]
    return sorted(found, key=lambda task: task.subject.framework)


def _seeds(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def _tasks(
    subjects: list[Subject], s: Selection, seeds: tuple[int, ...], others: Any
) -> Iterator[Task]:
    for subject in subjects:
        if not is_installed(subject.framework):
            continue
        if s.ours:
            yield Task(subject, None, seeds)
        for place, checker in enumerate(CHECKERS):
            if checker.peer in s.peers and can_check(checker, subject):
                yield Task(subject, place, others)


def run(selection: Selection, progress: Any) -> Iterator[Outcome]:
    """Every outcome, as it comes; first those that a file has already."""
    results, todo = Results(selection.results), []
    for task in tasks(selection):
        found = [results.earlier.get(key) for key in task.filed_under()]
        if None in found:
            todo.append(task)
        else:
            yield from (o for o in found if o is not None)
    with results.open():
        for outcome in _made(todo, selection.jobs, progress):
            results.write(outcome)
            yield outcome


def _made(todo: list[Task], jobs: int, progress: Any) -> Iterator[Outcome]:
    if jobs <= 1 or len(todo) < 8:
        for done, task in enumerate(todo):
            progress(f"{done} of {len(todo)}, {task.subject.name}")
            yield from task.run()
        return
    # TensorFlow and JAX don't survive a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures: dict[Future[Any], Task] = {pool.submit(t.run): t for t in todo}
        for done, future in enumerate(as_completed(futures)):
            progress(f"{done} of {len(todo)}, {futures[future].subject.name}")
            yield from future.result()
