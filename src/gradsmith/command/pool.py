"""Tasks, given to worker processes of which each may crash, hang or eat memory.

`concurrent.futures.ProcessPoolExecutor` can't end a worker that hangs, and one that
crashes breaks the whole pool. Here it is replaced, and its task is reported.

A worker is used again for files of the same root: importing TensorFlow for each
operation would take 3 s. Another root gets another worker, since `import utils` means
another file there.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from .results import Result
from .tasks import Listing, Task
from .traces import places_in
from .worker import Worker

POLL = 0.05  # seconds between looks at time and memory
KEPT = 8000  # characters of a user's output

Answer = tuple[Task, Listing | Result]


class Pool:
    """Up to `jobs` workers. Tasks can be added while answers come."""

    def __init__(self, *, jobs: int, limit: float, memory: int | None) -> None:
        self.jobs = jobs
        self.limit = limit
        self.memory = memory
        self.tasks: deque[Task] = deque()
        self.workers: list[Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self.workers:
            worker.kill()
            worker.clean()
        self.workers = []

    def add(self, tasks: Iterable[Task]) -> None:
        self.tasks.extend(tasks)

    @property
    def doing(self) -> list[str]:
        """What the workers are at."""
        return [worker.task.doing for worker in self.workers if worker.task]

    def answers(self) -> Iterator[Answer | None]:
        """Each task with its answer, as they come; None now and then while waiting."""
        while self.tasks or self.doing:
            self._hand_out()
            busy: dict[Any, Worker] = {
                worker.connection: worker for worker in self.workers if worker.task
            }
            for connection in wait(list(busy), POLL):
                yield from self._received(busy[connection])
            for worker in list(self.workers):
                yield from self._looked_after(worker)
            yield None

    def _hand_out(self) -> None:
        for worker in [w for w in self.workers if not w.task]:
            task = self._next_for(worker)
            if task is None and self.tasks:
                self._drop(worker)
            elif task is not None:
                worker.give(task)
        while self.tasks and len(self.workers) < self.jobs:
            worker = Worker(self.tasks[0].source.root, self.limit)
            self.workers.append(worker)
            worker.give(self.tasks.popleft())

    def _next_for(self, worker: Worker) -> Task | None:
        """A task of a file that the worker has loaded, else of the same root."""
        near = [task for task in self.tasks if task.source.root == worker.root]
        same = [task for task in near if task.source.file == worker.loaded]
        for task in (*same, *near):
            self.tasks.remove(task)
            return task
        return None

    def _received(self, worker: Worker) -> Iterator[Answer]:
        task = worker.task
        assert task is not None
        try:
            answer = worker.receive()
        except EOFError:
            status = self._drop(worker, clean=False)
            yield task, self._lost(worker, task, _ending(status))
            return
        if answer is None:
            return
        if isinstance(answer, Result):
            answer = _with(answer, worker)
        yield task, answer
        if self.memory and worker.memory() > self.memory / 2:
            self._drop(worker)  # what it keeps is not the next one's fault

    def _looked_after(self, worker: Worker) -> Iterator[Answer]:
        task = worker.task
        if task is None:
            return
        if worker.is_late:
            words = f"took longer than {self.limit:g} s"
        elif self.memory and worker.memory() > self.memory:
            words = f"used more than {gigabytes(self.memory)} of memory"
        else:
            return
        self._drop(worker, clean=False)
        yield task, self._lost(worker, task, words)

    def _lost(self, worker: Worker, task: Task, words: str) -> Result:
        details = places_in(worker.trace, task.source.root)
        if worker.phase == "imported":
            words += ", while the file was imported"
        result = task.failed(words, details=details)
        if worker.sofar is not None:
            lost = f"{worker.phase} {words}".strip()
            result = replace(worker.sofar, more={**worker.sofar.more, "lost": lost})
        result = _with(result, worker)
        worker.clean()
        return result

    def _drop(self, worker: Worker, *, clean: bool = True) -> int | None:
        self.workers.remove(worker)
        status = worker.kill()
        if clean:
            worker.clean()
        return status


def _with(result: Result, worker: Worker) -> Result:
    seconds = time.monotonic() - worker.began
    return replace(result, output=worker.output[-KEPT:].strip(), seconds=seconds)


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended the process with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = ": perhaps the machine ran out of memory" if name == "SIGKILL" else ""
    return f"crashed ({name}){hint}"


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
