"""What an override has changed: which calls, where, how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...core.errors import GradsmithError
from ...core.places import Place
from ...frameworks._intercept import Scope, Target
from ...report.result import BAD, GOOD, Code, Document, Result, plain


@dataclass(frozen=True)
class Change:
    """Calls of one target from one line."""

    target: str
    call: str  # what was called there: one target may have several names
    place: Place | None
    times: int

    def __str__(self) -> str:
        where = self.place or "(no line of yours)"
        source = f"  {self.place.source}" if self.place and self.place.source else ""
        called = "" if self.call == self.target else f" as {self.call}"
        return f"{self.target}{called}: {self.times} x at {where}{source}"


class OverrideRecord(Result):
    """The calls that an override has changed; it grows while the override is active.

    `changes` lists them, `count` gives their number (for one target, if it is named),
    and `notes` says what was left alone. Under a compiler, a call counts when it is
    traced.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> with gs.override({np.tanh: lambda dy, y, x: 10 * dy}) as record:
    ...     gs.grad(np.tanh)(0.0)
    np.float64(10.0)
    >>> record.count(), record.changes[0].target
    (1, 'np.tanh')
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, Place | None]] = Counter()
        self._left_alone: dict[tuple[str, str], None] = {}

    def add(self, target: str, call: str, place: Place | None) -> None:
        self._counts[target, call, place] += 1

    def left_alone(self, target: str, inside: str) -> None:
        self._left_alone[target, inside] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left alone, and why."""
        return tuple(
            f"{target} inside {inside} was left alone: {inside} has a rule of its "
            "own, which decides"
            for target, inside in self._left_alone
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(Change(*key, times) for key, times in self._counts.items())

    def count(self, target: str | None = None) -> int:
        return sum(c.times for c in self.changes if target in (None, c.target))

    def __len__(self) -> int:
        return len(self._counts)

    def __bool__(self) -> bool:
        return bool(self._counts)

    @property
    def ok(self) -> bool:
        """Whether any call was changed."""
        return bool(self)

    def document(self) -> Document:
        n = self.count()
        lines = [*map(str, self.changes), *self.notes]
        title = f"{n} call{'s' * (n != 1)} changed"
        tone = GOOD if self.ok else BAD
        blocks = tuple(map(Code, lines))
        return Document(title, blocks, tone, "Override", "override", remark=title)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers."""
        changes = [plain(asdict(change)) for change in self.changes]
        return {"ok": self.ok, "changes": changes, "notes": list(self.notes)}

    def __repr__(self) -> str:
        return str(self)


# --- targets that were not changed, of which a user must know when a scope ends


_NOTHING = "nothing that could be seen (NumPy's functions are, on tensors alone)"


def require_calls(
    scope: Scope, targets: Sequence[Target], where: str, notes: Sequence[str]
) -> None:
    """An error unless each target was called, and where its calls can be changed."""
    for target in targets:
        if target.key in scope.unreachable:
            raise _unreachable(target, scope)
    missed = [target for target in targets if not scope.called[target.key]]
    for target in missed:
        if target.key in scope.without_arrays:
            raise _without_arrays(target, scope)
    if missed:
        raise _never_called(missed, scope, where, notes)


def _unreachable(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was run below Python (in compiled code, or as a part of a "
        f"larger operation) at {scope.unreachable[target.key]}, where its gradient "
        "can't be replaced: what was computed has the plain gradient there\n"
        "  what to do: override the function or layer that is called in this line"
    )


def _without_arrays(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was called with no arrays at "
        f"{scope.without_arrays[target.key]}, so that nothing has a gradient there\n"
        "  expected: arrays, or tuples, lists, dicts or dataclasses of them\n"
        "  what to do: give it some (an array in place of a number, what is inside "
        "of another object), or omit this target"
    )


def _never_called(
    missed: list[Target], scope: Scope, where: str, notes: Sequence[str]
) -> GradsmithError:
    others = [name for name in scope.seen if "__" not in name]
    others[12:] = [f"and {len(others) - 12} more"] if len(others) > 12 else []
    names = ", ".join(target.name for target in missed)
    return GradsmithError(
        f"the target was never called {where}: {names}\n"
        f"  what was called: {', '.join(others) or _NOTHING}\n"
        f"{''.join(f'  {note}{chr(10)}' for note in notes)}"
        "  what to do: choose a target among these, or omit this one"
    )
