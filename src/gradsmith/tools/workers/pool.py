"""Items, given to worker processes of which each may crash, hang or eat memory.

`concurrent.futures.ProcessPoolExecutor` can't end a worker that hangs, and one that
crashes breaks the whole pool. Here it is replaced, and what it did is reported.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from .worker import Work, Worker, _Done

POLL = 0.05  # seconds between looks at time and memory
KEPT = 8000  # characters of a user's output


@dataclass(frozen=True)
class Answer:
    """What came of an item: a result, or what was raised, or why its worker is lost.

    `phase` is what a lost worker was doing, `partial` what it had told of the result,
    and `trace` where it was.
    """

    item: Any
    result: Any = None
    error: BaseException | None = None
    lost: str = ""
    phase: str = ""
    partial: Any = None
    trace: str = ""
    output: str = ""
    seconds: float = 0.0


class Pool:
    """Up to `jobs` workers. Items can be added while answers come.

    `limit` is in seconds for each item, `memory` in bytes for each worker. With `near`,
    which gives a group and a place of an item, a worker is used for one group alone,
    and goes on with items of the same place first.
    """

    def __init__(
        self, work: Work, *, jobs: int, method: str = "spawn",
        limit: float | None = None, memory: int | None = None,
        near: Callable[[Any], tuple[str, str]] = lambda item: ("", ""),
    ) -> None:  # fmt: skip
        self.work, self.jobs, self.method = work, jobs, method
        self.limit, self.memory, self.near = limit, memory, near
        self.items: deque[Any] = deque()
        self.workers: list[Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in list(self.workers):
            self._drop(worker)

    def add(self, items: Iterable[Any]) -> None:
        self.items.extend(items)

    @property
    def doing(self) -> list[Any]:
        """The items that are worked on."""
        return [worker.item for worker in self.workers if worker.is_busy]

    def answers(self) -> Iterator[Answer | None]:
        """What came of each item, as it comes; None now and then while waiting."""
        while self.items or self.doing:
            self._hand_out()
            busy: dict[Any, Worker] = {
                worker.connection: worker for worker in self.workers if worker.is_busy
            }
            for connection in wait(list(busy), POLL):
                yield from self._received(busy[connection])
            for worker in list(self.workers):
                yield from self._looked_after(worker)
            yield None

    def _hand_out(self) -> None:
        for worker in [w for w in self.workers if not w.is_busy]:
            if not self.items:
                return
            item = self._next_for(worker)
            if item is None:
                self._drop(worker)  # a place among the others' group is free
            else:
                worker.give(item)
        while self.items and len(self.workers) < self.jobs:
            worker = Worker(self.work, self.method, self.limit)
            self.workers.append(worker)
            worker.give(self.items.popleft())

    def _next_for(self, worker: Worker) -> Any:
        """An item of the place that the worker has been at, else of the same group."""
        group, place = self.near(worker.item)
        places = [self.near(item) for item in self.items]
        for wanted in ((group, place), (group, None)):
            for i, (its_group, its_place) in enumerate(places):
                if its_group == wanted[0] and wanted[1] in (None, its_place):
                    item = self.items[i]
                    del self.items[i]
                    return item
        return None

    def _received(self, worker: Worker) -> Iterator[Answer]:
        try:
            message = worker.receive()
        except EOFError:
            status = self._drop(worker, clean=False)
            yield self._lost(worker, _ending(status))
            return
        if message is None:
            return
        if isinstance(message, _Done):
            yield _answer(worker, result=message.result)
        else:
            yield _answer(worker, error=message.error)
        if self.memory and worker.memory() > self.memory / 2:
            self._drop(worker)  # what it keeps is not the next one's fault

    def _looked_after(self, worker: Worker) -> Iterator[Answer]:
        if not worker.is_busy:
            return
        if worker.is_late:
            words = f"took longer than {self.limit:g} s"
        elif self.memory and worker.memory() > self.memory:
            words = f"used more than {gigabytes(self.memory)} of memory"
        else:
            return
        self._drop(worker, clean=False)
        yield self._lost(worker, words)

    def _lost(self, worker: Worker, words: str) -> Answer:
        answer = _answer(
            worker, lost=words, phase=worker.phase, partial=worker.partial,
            trace=worker.trace,
        )  # fmt: skip
        worker.clean()
        return answer

    def _drop(self, worker: Worker, *, clean: bool = True) -> int | None:
        self.workers.remove(worker)
        status = worker.kill()
        if clean:
            worker.clean()
        return status


def _answer(worker: Worker, **parts: Any) -> Answer:
    output, seconds = worker.output[-KEPT:].strip(), time.monotonic() - worker.began
    return Answer(worker.item, output=output, seconds=seconds, **parts)


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
