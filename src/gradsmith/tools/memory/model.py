"""What was found to be kept alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ...core.places import Place
from . import words


class Kept(NamedTuple):
    """An array that an operation keeps for its gradient."""

    operation: str
    place: Place | None
    nbytes: int


@dataclass(frozen=True)
class Row:
    """The arrays that one operation on one line keeps, all calls together."""

    operation: str
    place: Place | None
    arrays: int
    nbytes: int


@dataclass(frozen=True)
class MemoryReport:
    """What a gradient keeps alive; `checkpointed` is what gs.checkpoint(fn) would."""

    function: str
    framework: str
    rows: tuple[Row, ...]
    checkpointed: int
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(row.nbytes for row in self.rows)

    @property
    def saved(self) -> int:
        """By how much checkpointing the function as a whole would lower it."""
        return self.total - self.checkpointed

    def by_function(self) -> dict[str, int]:
        """What the lines of each function keep: candidates for gs.checkpoint."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found[(row.place and row.place.function) or "?"] += row.nbytes
        return dict(found.most_common())

    def __str__(self) -> str:
        return words.text(self)

    def show(self) -> None:
        """Print the table; with colours, if rich is installed."""
        words.show(self)

    def svg(self) -> str:
        """A plot of the lines that keep most, as the text of an SVG file."""
        return words.svg(self)

    def _repr_html_(self) -> str:
        return words.html(self)


def gathered(kept: Iterable[Kept]) -> tuple[Row, ...]:
    """One row for each operation and line, the largest first."""
    sizes: Counter[tuple[str, Place | None]] = Counter()
    arrays: Counter[tuple[str, Place | None]] = Counter()
    for each in kept:
        sizes[each.operation, each.place] += each.nbytes
        arrays[each.operation, each.place] += 1
    return tuple(
        Row(operation, place, arrays[operation, place], size)
        for (operation, place), size in sizes.most_common()
    )
