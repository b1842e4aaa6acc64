"""From targets to results: find the operations of each file, check each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from .. import __version__
from ..core.arrays import FRAMEWORKS
from ..tools.workers import Journal, Pool
from .config import options_for
from .results import Status, TaskOutcome
from .sources import Source, sources_of
from .tasks import Listing, Task, outcome, perform, preload


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    targets: tuple[str, ...]
    framework: tuple[str, ...] = ()
    seed: int = 0
    thorough: bool = True
    jobs: int = 1
    time_limit: float = 60.0
    memory_limit: int | None = None
    select: tuple[str, ...] = ()
    surrogate: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()  # [OPERATION:]ARGUMENT
    data: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_empty: bool = False
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    closely: bool = False  # with what a page shows beside the check

    def chosen(self, name: str, module: str) -> dict[str, Any]:
        """What is said of one operation; the command line wins."""
        return options_for(
            self.operations, name, module,
            surrogate=self.surrogate, wrt=self.wrt, data=self.data,
        )  # fmt: skip


@dataclass(frozen=True)
class Event:
    """Something happened: operations were found, a result came, or time went by."""

    result: TaskOutcome | None = None
    found: int = 0
    doing: tuple[str, ...] = ()


class Run:
    """One run. `results` are in the order of the targets, however they came."""

    def __init__(self, options: Options, journal: Journal) -> None:
        self.options = options
        self.journal = journal
        self.skipped: list[str] = []  # files that could not be read, and why
        self.sources = _distinct(options, self.skipped)
        self.found: list[tuple[str, str]] = []  # operations, and their modules
        self.is_all_read = not self.skipped  # or a file could not be imported
        self._unlisted = len(self.sources)
        self._places: dict[str, tuple[int, int]] = {}
        self._results: list[TaskOutcome] = []

    def events(self, listed: Callable[[], None] = lambda: None) -> Iterator[Event]:
        """What happens; `listed` is called when all operations are known."""
        options, self._told = self.options, listed
        with Pool(
            perform, jobs=options.jobs, limit=options.time_limit,
            memory=options.memory_limit, isolated=True, preload=preload,
        ) as pool:  # fmt: skip
            for source in self.sources:
                known = self.journal.get(self._key(Task(source)), Listing.from_dict)
                if known is None:
                    pool.add([Task(source, thorough=options.thorough)])
                else:
                    yield from self._listed(pool, source, known.operations)
            for answer in pool.answers():
                if answer is None:
                    yield Event(doing=tuple(task.doing for task in pool.doing))
                else:
                    yield from self._answered(pool, answer.item, outcome(answer))

    def _answered(
        self, pool: Pool, task: Task, answer: Listing | TaskOutcome
    ) -> Iterator[Event]:
        if isinstance(answer, Listing):
            found = answer.operations
            self.journal.add({"key": self._key(task), "operations": found})
            yield from self._listed(pool, task.source, found)
            return
        if not task.name:  # a file that can't be imported
            self._place(task, 0)
            self.is_all_read = False
            yield self._counted(1)
        result = replace(answer, key=self._key(task))
        self.journal.add(result.as_row())
        yield self._kept(result)

    def _listed(
        self, pool: Pool, source: Source, operations: list[list[str]]
    ) -> Iterator[Event]:
        """Ask for what is selected, but what was done before."""
        options = self.options
        shared = options.seed, options.thorough, options.closely
        self.found += [(name, source.module) for name, _ in operations]
        tasks = [
            Task(
                source, name, framework, *shared, **options.chosen(name, source.module)
            )
            for name, native in operations
            if _is_selected(name, options.select)
            for framework in frameworks_for(native, options.framework)
        ]
        yield self._counted(len(tasks))
        for i, task in enumerate(tasks):
            self._place(task, i)
            done = self._done(task)
            if done is None:
                pool.add([task])
            else:
                yield self._kept(done)

    def _counted(self, found: int) -> Event:
        """One more file has told what it defines."""
        self._unlisted -= 1
        if not self._unlisted:
            self._told()
        return Event(found=found)

    def _key(self, task: Task) -> str:
        """Changes if the file or an option does."""
        options = self.options
        parts = (__version__, task.framework, task.source.name, options.seed)
        more = ["closely"] * options.closely + ["surrogate"] * bool(task.surrogate)
        more += [repr((task.wrt, task.data))] * bool(task.wrt or task.data)
        words = repr((*parts, options.thorough, *more)).encode()
        digest = sha256(words).hexdigest()[:16]
        return f"{task.doing} {task.source.digest}-{digest}"

    def _done(self, task: Task) -> TaskOutcome | None:
        """The verdict of an earlier run. What could not run is tried again."""
        done = self.journal.get(self._key(task), TaskOutcome.from_row)
        return None if done is None or done.status is Status.FAILED else done

    def _place(self, task: Task, i: int) -> None:
        self._places[self._key(task)] = (self.sources.index(task.source), i)

    def _kept(self, result: TaskOutcome) -> Event:
        self._results.append(result)
        return Event(result=result)

    @property
    def results(self) -> list[TaskOutcome]:
        return sorted(self._results, key=lambda r: self._places[r.key])


def _distinct(options: Options, skipped: list[str]) -> list[Source]:
    found = [
        source
        for target in options.targets
        for source in sources_of(
            target, skipped, defining=options.allow_empty, exclude=options.exclude
        )
    ]
    skipped[:] = dict.fromkeys(skipped)
    return list(dict.fromkeys(found))


def _is_selected(name: str, select: tuple[str, ...]) -> bool:
    return not select or any(part in name for part in select)


def frameworks_for(native: str, chosen: Sequence[str]) -> list[str]:
    """Where an operation is checked: a framework's own in that framework alone."""
    if native:
        return [native] if not chosen or {"all", native} & {*chosen} else []
    if "all" in chosen:
        return [each.name for each in FRAMEWORKS.values() if each.is_installed]
    return [*dict.fromkeys(chosen)] or [""]
