"""What was seen of each operation: inputs by signature, and the tests it was in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from ...core import hooks, trees
from ...core.arrays import FRAMEWORKS, NUMPY, framework_of, packages
from ...core.import_hooks import once_imported
from ...frameworks._recording import Decorated, Read, Seen
from .definitions import Definition, captured_by, definition_of, is_plain

_BOUND = "uses what is traced around it: it can't be called alone"
MOST_CASES = 3  # of one operation
MOST_ELEMENTS = 1_000_000  # of the arrays of one case


@dataclass
class Case:
    """Inputs of one signature, with arrays as `Seen`."""

    inputs: Any  # (args, kwargs)
    op: Any  # what was called with them

    @property
    def arrays(self) -> list[Seen]:
        return [x for x in trees.leaves(self.inputs) if isinstance(x, Seen)]

    @property
    def has_values(self) -> bool:
        return all(x.has_values for x in self.arrays)


@dataclass
class Recorded:
    """One operation, in one framework."""

    framework: str
    definition: Definition
    cases: dict[Any, Case] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)  # in order
    # By path, the arguments whose gradient tests want, or don't
    differentiated: dict[str, bool] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)  # signatures beyond the first ones
    too_large: set[int] = field(default_factory=set)

    def note_differentiated(self, seen: Any) -> None:
        """Calls that want no gradient at all say nothing."""
        named = [
            (path, x) for path, x in trees.leaves_with_names(seen) if type(x) is Seen
        ]
        if any(x.differentiated for _, x in named):
            for path, x in named:
                before = self.differentiated.get(path, False)
                self.differentiated[path] = before or x.differentiated is not False


class Recorder:
    """Is told of every call of an operation, from `start` to `stop`."""

    def __init__(self) -> None:
        self.operations: dict[Any, Recorded] = {}
        self.of_frameworks: set[str] = set()  # exercised, and not ours to judge
        self.problems: dict[str, None] = {}  # what went wrong in here
        self.test = "collection"
        self.active = False
        self._hooks = ExitStack()
        self._origins: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

        def see(operation: Any, args: Any, kwargs: Any) -> None:
            self.record_operation(operation, (args, kwargs), _read)

        self.see = see

    # --- where calls are seen

    def start(self) -> None:
        """Be told by each framework, now or once somebody imports it."""
        self.active = True
        self._hooks.enter_context(hooks.CALL.wrapped(_telling(self.see)))
        for framework in FRAMEWORKS.values():
            once_imported(framework.module, partial(self._hook_into, framework))

    def _hook_into(self, framework: Any, module: Any) -> None:
        if self.active:
            with self.guarded(f"hooking into {module.__name__}"):
                self._hooks.enter_context(framework.recording.recorded(self))

    def stop(self) -> None:
        """Leave everything as it was."""
        self.active = False
        self._hooks.close()

    # --- what is remembered

    def record(
        self,
        framework: str,
        op: Any,
        name: str,
        definitions: tuple[Any, ...],
        inputs: Any,
        read: Read,
    ) -> None:
        """Remember a call of a framework's own."""
        where = partial(definition_of, name, *definitions)
        self._guarded_record(framework, op, where, definitions, inputs, read)

    def record_operation(
        self, operation: Any, inputs: Any, read: Read, framework: str = ""
    ) -> None:
        """Remember a call of ours."""
        operation = operation.original or operation
        framework = framework or _framework(inputs)
        where = partial(_definition_of, operation)
        definitions = (operation.fn,)
        self._guarded_record(framework, operation, where, definitions, inputs, read)

    def _guarded_record(
        self,
        framework: str,
        op: Any,
        where: Callable[[], Definition],
        definitions: tuple[Any, ...],
        inputs: Any,
        read: Read,
    ) -> None:
        """Remember a call; a mistake in here does not stop it."""
        if not self.active or not hooks.is_recorded():
            return
        with hooks.unrecorded(), self.guarded("recording"):
            definition, captured = self._origin(op, where, definitions)
            machinery = FRAMEWORKS[framework].recording.MACHINERY
            if definition.module.startswith(("gradsmith.", *machinery)):
                return
            if definition.root in packages():
                self.of_frameworks.add(f"{definition.module}.{definition.name}")
                return
            self._record(framework, op, definition, captured, inputs, read)

    def _origin(
        self, op: Any, where: Callable[[], Definition], definitions: tuple[Any, ...]
    ) -> tuple[Definition, tuple[str, ...]]:
        """Where an operation is from, and with which numbers; found out once."""
        anchor = op.body if isinstance(op, Decorated) else op
        with suppress(KeyError, TypeError):
            return self._origins[anchor]
        found = where(), captured_by(*definitions)
        with suppress(TypeError):  # nobody can refer to it weakly
            self._origins[anchor] = found
        return found

    def _record(
        self,
        framework: str,
        op: Any,
        definition: Definition,
        captured: tuple[str, ...],
        inputs: Any,
        read: Read,
    ) -> None:
        entry = self.operations.get((framework, definition))
        if entry is None:
            entry = self.operations[framework, definition] = Recorded(
                framework, definition
            )
        entry.tests[self.test] = None
        # Nothing can be checked if it can't be called after the test, or if only a
        # compiler knows what it was called with.
        if op is None or inputs is None:
            entry.notes[_BOUND] = None
            return
        seen = trees.map(lambda x: x if (found := read(x)) is None else found, inputs)
        entry.note_differentiated(seen)
        key = (captured, *_signature(seen))
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
    def guarded(self, doing: str) -> Iterator[None]:
        """A mistake in here becomes a line of the summary, not a failing test."""
        try:
            yield
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            self.problems[f"{doing} failed: {type(error).__name__}: {words}"] = None


def _telling(see: Callable[..., None]) -> Callable[..., Any]:
    def telling(proceed: Any, operation: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        see(operation, args, kwargs)
        return proceed(operation, args, kwargs)

    return telling


def _framework(inputs: Any) -> str:
    found = map(framework_of, trees.leaves(inputs))
    return next((name for name in found if name is not None), NUMPY)


def _read(x: Any) -> Seen | None:
    """What is seen of an array, of whichever framework."""
    name = framework_of(x)
    return None if name is None else FRAMEWORKS[name].recording.read(x)


def _definition_of(operation: Any) -> Definition:
    """Where one of ours is defined; somebody else's function, where its rule is."""
    rules = () if operation.closure else (operation.vjp_rule, operation.jvp_rule)
    written = [rule for rule in rules if rule is not None]
    name = getattr(operation, "__qualname__", operation.name)
    rule, body = (
        definition_of(name, *written, operation.fn),
        definition_of(name, operation.fn),
    )
    return body if body.module == rule.module else rule


def _signature(seen: Any) -> Iterator[Any]:
    for name, x in trees.leaves_with_names(seen):
        if isinstance(x, Seen):
            yield name, str(x)
        else:
            yield name, repr(x) if is_plain(x) else type(x).__qualname__
