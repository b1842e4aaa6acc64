"""What was seen of each operation: inputs by signature, and the tests it was in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from ...core import trees
from ...core.arrays import packages
from .place import Place, captured_by
from .seen import Case, Decorated, Read, note_asked, seen_of, signature_of

# How operations are run: what runs is recorded itself.
_MACHINERY = ("gradsmith.", "torch._")
_BOUND = "uses what is traced around it: it can't be called alone"
MOST_CASES = 3  # of one operation
MOST_ELEMENTS = 1_000_000  # of the arrays of one case


@dataclass
class Recorded:
    """One operation, in one framework."""

    framework: str
    place: Place
    cases: dict[Any, Case] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)  # in order
    asked: dict[str, bool] = field(default_factory=dict)  # arguments, by path
    notes: dict[str, None] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)  # signatures beyond the first ones
    too_large: set[int] = field(default_factory=set)


class Recorder:
    """Is told by the hooks of every call of an operation."""

    def __init__(self) -> None:
        self.operations: dict[Any, Recorded] = {}
        self.of_frameworks: set[str] = set()  # exercised, and not ours to judge
        self.problems: dict[str, None] = {}  # what went wrong in here
        self.test = "collection"
        self.active = True
        self._local = threading.local()
        self._origins: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def record(
        self,
        framework: str,
        op: Any,
        place: Callable[[], Place],
        inputs: Any,
        read: Read,
        *definitions: Any,
    ) -> None:
        """Remember a call; that may fail, and the call goes on.

        Nothing can be checked without `op`, if it can't be called after the test, and
        without `inputs`, if only a compiler knows them.
        """
        if not self.active or getattr(self._local, "paused", False):
            return
        with self.paused(), self.guarded("recording"):
            where, captured = self._origin(op, place, definitions)
            if where.module.startswith(_MACHINERY):
                return
            if where.root in packages():
                self.of_frameworks.add(f"{where.module}.{where.name}")
                return
            self._record(framework, op, where, captured, inputs, read)

    def _origin(
        self, op: Any, place: Callable[[], Place], definitions: tuple[Any, ...]
    ) -> tuple[Place, tuple[str, ...]]:
        """Where an operation is from, and with which numbers; found out once."""
        anchor = op.body if isinstance(op, Decorated) else op
        with suppress(KeyError, TypeError):
            return self._origins[anchor]
        found = place(), captured_by(*definitions)
        with suppress(TypeError):  # nobody can refer to it weakly
            self._origins[anchor] = found
        return found

    def _record(
        self,
        framework: str,
        op: Any,
        place: Place,
        captured: tuple[str, ...],
        inputs: Any,
        read: Read,
    ) -> None:
        entry = self.operations.get((framework, place))
        if entry is None:
            entry = self.operations[framework, place] = Recorded(framework, place)
        entry.tests[self.test] = None
        if op is None or inputs is None:
            entry.notes[_BOUND] = None
            return
        seen = trees.map(lambda x: seen_of(x, read), inputs)
        note_asked(entry.asked, seen)
        key = (captured, *signature_of(seen))
        known, case = entry.cases.get(key), Case(seen, op)
        if known is not None and (known.has_values or not case.has_values):
            return
        if known is None and len(entry.cases) >= MOST_CASES:
            entry.dropped.add(hash(key))
        elif sum(x.size for x in case.arrays) > MOST_ELEMENTS:
            entry.too_large.add(hash(key))
        else:
            for x in case.arrays:
                x.keep()
            entry.cases[key] = case

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing that this thread does is recorded."""
        before = getattr(self._local, "paused", False)
        self._local.paused = True
        try:
            yield
        finally:
            self._local.paused = before

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """A mistake in here becomes a line of the summary, not a failing test."""
        try:
            yield
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            self.problems[f"{doing} failed: {type(error).__name__}: {words}"] = None
