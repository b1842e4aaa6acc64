"""Which followed values from outside a block is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tape import Node, Tape, Traced, leave_mark

_INSIDE = Node(None, (), None)  # the mark of all that depends on something followed


class Spotter(Tape):
    """Stands in for the recorders while a block runs, and saves nothing of it.

    `found` are the values from outside that one of them follows, by their ids: the
    arguments of the block, and what it captures.
    """

    def __init__(self, outer: Sequence[Any]) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.records_one = False
        self.outer = outer
        self.found: dict[int, Traced] = {}

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        marks = x.marks
        if (marks is not None and self.key in marks) or id(x) in self.found:
            return _INSIDE
        # Each of them is asked: a tape follows a variable from its first reading on.
        marks_outside = [recorder.mark_of(x) for recorder in self.outer]
        if any(mark is not None for mark in marks_outside):
            self.found[id(x)] = x
            return _INSIDE
        return None

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> None:
        followed = [isinstance(x, Traced) and self.mark_of(x) for x in inputs]
        if any(followed):
            for output in (y,) if isinstance(y, Traced) else y:
                if output.dtype.kind in "fcO":
                    leave_mark(output, self.key, _INSIDE)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        """Tell the recorders as if the values that the block was given were lost."""
        if any(self.mark_of(x) for x in xs):
            for recorder in self.outer:
                recorder.lost(list(self.found.values()), where, why)
