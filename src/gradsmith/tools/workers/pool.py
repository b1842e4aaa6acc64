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

from .channel import GarbledError
from .worker import UNHEARD, Work, Worker
from .zygote import IS_POSSIBLE, Zygote

POLL = 0.05  # seconds between looks at time and memory
GARBLED = (
    "could not tell: something was written to the channel by which the worker answers, "
    "perhaps by the operation, to a descriptor that is not its own"
)


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

    `limit` is in seconds for each item, `memory` in bytes for each worker. If items are
    `isolated`, each has a process of its own and sends plain data, which JSON knows;
    `preload` gives the modules that an item is likely to need.
    """

    def __init__(
        self, work: Work, *, jobs: int, method: str = "spawn",
        limit: float | None = None, memory: int | None = None, isolated: bool = False,
        preload: Callable[[Any], tuple[str, ...]] = lambda item: (),
    ) -> None:  # fmt: skip
        self.work, self.jobs, self.method = work, jobs, method
        self.limit, self.memory = limit, memory
        self.isolated, self.preload = isolated, preload
        self.items: deque[Any] = deque()
        self.workers: list[Worker] = []
        self._zygotes: dict[tuple[str, ...], Zygote] = {}
        self._refused: set[tuple[str, ...]] = set()  # which crashed when preloaded
        self._again: set[int] = set()  # items that were lost through no fault of theirs

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in list(self.workers):
            self._drop(worker)
        for zygote in self._zygotes.values():
            zygote.close()

    def add(self, items: Iterable[Any]) -> None:
        self.items.extend(items)

    @property
    def doing(self) -> list[Any]:
        """The items that are worked on."""
        return [worker.item for worker in self.workers if worker.is_busy]

    @property
    def partials(self) -> list[tuple[Any, Any]]:
        """The items that are worked on, with what was told of their results."""
        return [(w.item, w.partial) for w in self.workers if w.is_busy]

    def answers(self) -> Iterator[Answer | None]:
        """What came of each item, as it comes; None now and then while waiting."""
        while self.items or self.doing:
            self._hand_out()
            busy: dict[Any, Worker] = {
                worker.channel.socket: worker
                for worker in self.workers
                if worker.is_busy
            }
            for end in wait(list(busy), POLL):
                yield from self._received(busy[end])
            for worker in list(self.workers):
                yield from self._looked_after(worker)
            yield None

    def _hand_out(self) -> None:
        for worker in [w for w in self.workers if not w.is_busy][: len(self.items)]:
            worker.give(self.items.popleft())
        while self.items and len(self.workers) < self.jobs:
            item = self.items.popleft()
            worker = self._started(item)
            self.workers.append(worker)
            worker.give(item)

    def _started(self, item: Any) -> Worker:
        if not (self.isolated and IS_POSSIBLE):
            return Worker.started(
                self.work, self.method, self.limit, plain=self.isolated
            )
        wanted = self._preload(item)
        if wanted not in self._zygotes:
            self._zygotes[wanted] = Zygote(self.work, wanted)
        return self._zygotes[wanted].fork(self.limit)

    def _preload(self, item: Any) -> tuple[str, ...]:
        wanted = self.preload(item)
        return () if wanted in self._refused else wanted

    def _received(self, worker: Worker) -> Iterator[Answer]:
        try:
            for kind, value in worker.receive():
                yield self._answered(worker, kind, value)
                return
        except GarbledError as error:
            self._drop(worker, clean=False)
            sent = error.args[0].decode("ascii", "backslashreplace")
            yield self._lost(worker, f"{GARBLED}: {sent!r}")
        except EOFError:
            status = self._drop(worker, clean=False, now=False)
            if not self._is_tried_again(worker):
                yield self._lost(worker, _ending(status))

    def _answered(self, worker: Worker, kind: str, value: Any) -> Answer:
        if kind == "done":
            answer = _answer(worker, result=value)
        else:
            error = RuntimeError(value) if isinstance(value, str) else value
            answer = _answer(worker, error=error)
        # What it keeps is not the next one's fault
        if self.isolated or (self.memory and worker.memory() > self.memory / 2):
            self._drop(worker)
        return answer

    def _is_tried_again(self, worker: Worker) -> bool:
        """Whether it was lost with its zygote, and the item is given out once more.

        Without what could not be preloaded, so that the item tells what is wrong.
        """
        wanted = self._preload(worker.item)
        zygote = self._zygotes.get(wanted)
        is_own = worker.is_there and zygote is not None and zygote.is_alive
        if zygote is None or is_own or id(worker.item) in self._again:
            return False
        if not worker.is_there:
            self._refused |= {wanted} - {()}
        zygote.close()
        del self._zygotes[wanted]
        self._again.add(id(worker.item))
        self.items.appendleft(worker.item)
        worker.clean()
        return True

    def _looked_after(self, worker: Worker) -> Iterator[Answer]:
        if not worker.is_busy:
            return
        worker.drop_output()
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

    def _drop(
        self, worker: Worker, *, clean: bool = True, now: bool = True
    ) -> int | None:
        self.workers.remove(worker)
        status = worker.end(now=now)
        if clean:
            worker.clean()
        return status


def _answer(worker: Worker, **parts: Any) -> Answer:
    seconds = time.monotonic() - worker.began
    return Answer(worker.item, output=worker.output.strip(), seconds=seconds, **parts)


def _ending(status: int | None) -> str:
    if status is None or status == UNHEARD:
        return "closed the channel by which it answers"
    if status >= 0:
        return f"ended the process with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = ": perhaps the machine ran out of memory" if name == "SIGKILL" else ""
    return f"crashed ({name}){hint}"


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
