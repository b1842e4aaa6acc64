"""What pytest talks to while `--gradsmith` is given."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from glob import iglob
from pathlib import Path
from typing import Any, Protocol

import pytest

from .recorder import Recorder
from .summary import counts, details, is_failure, merged, table

SHARE = 0.3  # of the time of the tests, for all checks
LEAST = 3.0  # seconds
_KEY = "gradsmith"  # in what a worker of pytest-xdist hands over


class Settings(Protocol):
    """What the configuration of a project says."""

    @property
    def values(self) -> dict[str, Any]: ...

    def chosen(
        self, name: str, module: str, *, wrt: tuple[str, ...], data: tuple[str, ...]
    ) -> dict[str, Any]:
        """What holds for an operation, by options and configuration."""
        ...

    def unknown(self, found: Sequence[tuple[str, str]]) -> list[str]:
        """What it says of operations that there are not."""
        ...

    def unmatched(
        self, patterns: Sequence[str], found: Sequence[tuple[str, str]], folder: Path
    ) -> list[str]:
        """Patterns of names that match nothing, neither found nor in a folder."""
        ...


class Plugin:
    """Records while tests run, checks at the end, and says what it found.

    With pytest-xdist each worker records and checks, and the controller shows.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.recorder = Recorder()
        self.rows: list[dict[str, Any]] = []
        self.of_frameworks: set[str] = set()
        self.problems: list[str] = []
        self.seconds = 0.0
        self.is_partial = False  # some tests of the suite did not run
        self.started = time.monotonic()
        self.recorder.start()

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    # --- while tests run

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.is_partial |= bool(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.recorder.test = item.nodeid
        try:
            return (yield)
        finally:
            self.recorder.test = "between tests"

    # --- at the end

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.recorder.stop()
        interrupted = exitstatus in (
            pytest.ExitCode.INTERRUPTED,
            pytest.ExitCode.INTERNAL_ERROR,
            pytest.ExitCode.USAGE_ERROR,
        )
        if interrupted:
            self.problems.append("the session was interrupted: nothing was checked")
        elif self.recorder.operations:
            with self.recorder.guarded("checking"):
                self._check()
        self.of_frameworks |= self.recorder.of_frameworks
        self.is_partial |= interrupted or bool(session.testsfailed)
        if not self.is_worker:
            self.rows = merged(self.rows)
            with self.recorder.guarded("looking for misspelt names"):
                self._find_misspelt()
        self.problems += self.recorder.problems
        if self.is_worker:
            self._hand_over()
            return
        self._write_json()
        if self._is_failure and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _check(self) -> None:
        from .checking import checked

        option: Any = self.config.getoption
        start = time.monotonic()
        default = max(LEAST, SHARE * (start - self.started))
        wrt, data = (
            tuple(option(f"gradsmith_{each}") or ()) for each in ("wrt", "data")
        )
        self.rows += checked(
            self.recorder,
            seed=self._setting("seed", 0),
            seconds=self._setting("max_seconds", default),
            ignore=self.config.getini("gradsmith_ignore"),
            chosen=lambda *names: self.settings.chosen(*names, wrt=wrt, data=data),
        )
        self.seconds = time.monotonic() - start

    def _find_misspelt(self) -> None:
        """What the configuration says of operations that there are not."""
        found = [(row["operation"], row["module"]) for row in self.rows]
        self.problems += self.settings.unknown(found)
        if self.is_partial or not _runs_all(self.config):
            return  # what a pattern is about may not have been exercised
        patterns = self.config.getini("gradsmith_ignore")
        unmatched = self.settings.unmatched(patterns, found, self.config.rootpath)
        self.problems += [f"gradsmith_ignore: {words}" for words in unmatched]

    def _setting(self, name: str, default: Any) -> Any:
        """An option; else what the project's configuration says."""
        option: Any = self.config.getoption
        given = option(f"gradsmith_{name}")
        return self.settings.values.get(name, default) if given is None else given

    @property
    def _is_failure(self) -> bool:
        option: Any = self.config.getoption
        strict = option("gradsmith_strict") or self.settings.values.get("strict", False)
        fails = any(is_failure(row["verdict"], strict=strict) for row in self.rows)
        return fails and not option("gradsmith_report_only")

    # --- pytest-xdist

    def _hand_over(self) -> None:
        found = {
            "rows": self.rows,
            "of_frameworks": sorted(self.of_frameworks),
            "problems": self.problems,
            "seconds": self.seconds,
            "is_partial": self.is_partial,
        }
        output: Any = self.config
        output.workeroutput[_KEY] = json.dumps(found, default=str)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker is done."""
        text = getattr(node, "workeroutput", {}).get(_KEY)
        if text is None:
            name = node.gateway.id
            self.problems.append(f"worker {name} crashed: what it recorded is lost")
            self.is_partial = True
            return
        found = json.loads(text)
        self.rows += found["rows"]
        self.of_frameworks |= set(found["of_frameworks"])
        self.seconds += found["seconds"]
        self.is_partial |= found["is_partial"]
        self.problems += [p for p in found["problems"] if p not in self.problems]

    # --- what is shown

    def _write_json(self) -> None:
        file = self.config.getoption("gradsmith_json")
        if not file:
            return
        found = {
            "operations": self.rows,
            "of_frameworks": sorted(self.of_frameworks),
            "problems": self.problems,
            "seed": self._setting("seed", 0),
            "seconds": self.seconds,
        }
        try:
            text = json.dumps(found, indent=2, ensure_ascii=False, default=str)
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            self.problems.append(f"--gradsmith-json: {error}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        show = terminalreporter
        show.section("custom gradients")
        root = str(self.config.rootpath)
        if self.rows:
            for line in table(self.rows, root):
                show.line(line, red=line.startswith("✗"), green=line.startswith("✓"))
        for row in self.rows:
            lines = details(row, root)
            if lines:
                show.line("")
            for line in lines:
                show.line(line)
        show.line("")
        for problem in self.problems:
            show.line(f"gradsmith: {problem}", yellow=True)
        if self.of_frameworks:
            n = len(self.of_frameworks)
            show.line(f"not checked, since they are the frameworks' own: {n} more")
        seed = self._setting("seed", 0)
        took = f" (seed {seed}, {self.seconds:.1f} s)" if self.rows else ""
        wrong = any(row["verdict"] == "wrong" for row in self.rows)
        end = ": the session fails (--gradsmith-report-only lets it pass)"
        words = f"{counts(self.rows)}{took}{end * self._is_failure}"
        show.line(words, red=wrong, green=not wrong, bold=True)


# Options that leave out tests before they are collected
_NARROWING = ("lf", "stepwise", "ignore", "ignore_glob")


def _runs_all(config: pytest.Config) -> bool:
    """Whether a session is asked for all tests of its project.

    One of single files may not exercise what the configuration is about.
    """
    if any(config.getoption(name, None) for name in _NARROWING):
        return False
    root, here = config.rootpath, config.invocation_params.dir
    patterns = [str(root / each) for each in config.getini("testpaths") or [""]]
    wanted = [Path(each) for name in patterns for each in iglob(name, recursive=True)]
    asked = [Path(here, arg).resolve() for arg in config.args]  # a::b is no path
    return all(
        any(each in (path, *path.parents) for each in asked)
        for path in (path.resolve() for path in wanted)
    )
