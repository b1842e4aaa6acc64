"""The graph of a computation as a drawing: boxes, folded where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path

from .figures import plural
from .html import notebook
from .plots import svg_file
from .result import Document, Figure

INPUT, RESULT, CUSTOM, STOP, FOLDED = "input", "result", "custom", "stop", "folded"
MOST = 30
PERIOD = 16  # operations that are looked for in repetition
NAMED = 3  # of those in a box


@dataclass(frozen=True)
class Box:
    """A value or an operation, computed from `parents`: places of boxes before it.

    To those of them that are `silent` no gradient goes.
    """

    name: str
    detail: str = ""  # shape and dtype
    kind: str = ""
    parents: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    note: str = ""  # shown when it is pointed at


class Drawing:
    """The graph of a computation; a notebook shows it, `save` writes an SVG file."""

    def __init__(self, title: str, boxes: Sequence[Box], *, most: int = MOST) -> None:
        self.title = title
        self.words = _counted(boxes)
        self.boxes, left_out = folded(boxes, most)
        self.words += left_out + _legend(self.boxes)

    @property
    def figure(self) -> Figure:
        boxes = [asdict(box) for box in self.boxes]
        data = {"title": self.title, "spoken": self.words, "boxes": boxes}
        return Figure("graph", data, self.words)

    @property
    def svg(self) -> str:
        """The text of an SVG file."""
        return svg_file(self.figure)

    def save(self, path: str | Path) -> Path:
        """Write an SVG file."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def __str__(self) -> str:
        return f"{self.title}: {self.words}"

    def __repr__(self) -> str:
        return f"<drawing: {self}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return notebook(Document(self.title, (self.figure,)))


def _counted(boxes: Sequence[Box]) -> str:
    kinds = [box.kind for box in boxes]
    n = len(boxes) - kinds.count(INPUT) - kinds.count(STOP)
    return f"{plural(n, 'operation')}, {plural(kinds.count(INPUT), 'input')}"


def _legend(boxes: Sequence[Box]) -> str:
    kinds = {box.kind for box in boxes}
    said = ["; operations with a gradient of their own are violet"] * (CUSTOM in kinds)
    if STOP in kinds or any(box.silent for box in boxes):
        said.append("; where the gradient stops is red")
    return "".join(said)


# --- too many boxes


def folded(boxes: Sequence[Box], most: int) -> tuple[Sequence[Box], str]:
    """Not many more boxes than `most`, and what was done in words.

    First what repeats becomes one box, then the earliest operations, then inputs that
    go to one box alone.
    """
    if len(boxes) <= most:
        return boxes, ""
    parts, times, said = _runs(boxes)
    working = [p for p in parts if boxes[p[0]].kind not in (INPUT, STOP)]
    if len(working) > most:
        early = [i for part in working[: len(working) - most + 1] for i in part]
        rest = [part for part in parts if part[0] not in early]
        parts, times = [early, *rest], times | {early[0]: 1}
        said += f"; the first {len(early):,} are one box"
    return _contracted(boxes, _inputs_together(boxes, parts), times), said


def _runs(boxes: Sequence[Box]) -> tuple[list[list[int]], dict[int, int], str]:
    """Places in groups, those of what repeats in one; by the first, how often it does.

    Less than three times is no repetition.
    """
    parts: list[list[int]] = []
    repeats: dict[int, int] = {}
    i = 0
    while i < len(boxes):
        period, times = _repetition(boxes, i)
        parts.append([*range(i, i + period * times)])
        if times > 1:
            repeats[i] = times
        i += period * times
    many = f"; {len(repeats)} sequences that repeat are one box each"
    one = "; a sequence that repeats is one box"
    return parts, repeats, "" if not repeats else one if len(repeats) == 1 else many


def _repetition(boxes: Sequence[Box], i: int) -> tuple[int, int]:
    """The period, and how often it comes, of what repeats from a place on."""
    best = (1, 1)
    for period in range(1, PERIOD + 1):
        j = i + period
        while j < len(boxes) and _alike(boxes, j - period, j):
            j += 1
        times = (j - i) // period
        if times >= 3 and period * times > best[0] * best[1]:
            best = (period, times)
    return best


def _alike(boxes: Sequence[Box], i: int, j: int) -> bool:
    """Whether two boxes do the same to what is the same, or as far before them."""
    one, other = boxes[i], boxes[j]
    if (one.name, one.detail, one.kind) != (other.name, other.detail, other.kind):
        return False
    if one.kind == INPUT or len(one.parents) != len(other.parents):
        return False
    return all(
        p == q or q - p == j - i or boxes[p].kind == boxes[q].kind == INPUT
        for p, q in zip(one.parents, other.parents, strict=True)
    )


def _inputs_together(boxes: Sequence[Box], parts: list[list[int]]) -> list[list[int]]:
    """Many inputs that go to the same part are one."""
    part_of = {i: k for k, part in enumerate(parts) for i in part}
    users: dict[int, set[int]] = {}
    for i, box in enumerate(boxes):
        for parent in box.parents:
            users.setdefault(part_of[parent], set()).add(part_of[i])
    alike: dict[frozenset[int], list[int]] = {}
    for k, part in enumerate(parts):
        if all(boxes[i].kind == INPUT for i in part):
            alike.setdefault(frozenset(users.get(k, ())), []).append(k)
    together = [each for each in alike.values() if len(each) > 3]
    gone = {k for each in together for k in each}
    kept = [part for k, part in enumerate(parts) if k not in gone]
    return kept + [[i for k in each for i in parts[k]] for each in together]


def _contracted(
    boxes: Sequence[Box], parts: list[list[int]], times: dict[int, int]
) -> list[Box]:
    """A box for each part, in an order in which parents come first."""
    part_of = {i: k for k, part in enumerate(parts) for i in part}

    def outside(k: int, which: Callable[[Box], Iterable[int]]) -> list[int]:
        found = (part_of[p] for i in parts[k] for p in which(boxes[i]))
        return [p for p in dict.fromkeys(found) if p != k]

    above = {k: outside(k, lambda box: box.parents) for k in range(len(parts))}
    order = [*TopologicalSorter(above).static_order()]
    place = {k: i for i, k in enumerate(order)}
    return [
        replace(
            _together([boxes[i] for i in parts[k]], times.get(parts[k][0], 1)),
            parents=tuple(place[p] for p in above[k]),
            silent=tuple(place[p] for p in outside(k, lambda box: box.silent)),
        )
        for k in order
    ]


def _together(part: list[Box], times: int) -> Box:
    if len(part) == 1:
        return part[0]
    working = [box.name for box in part if box.kind != INPUT]
    if not working:
        return Box(f"{len(part):,} inputs", kind=INPUT)
    names = [*dict.fromkeys(working)]
    more = ", ..." if len(names) > NAMED else ""
    once = plural(len(working) // times, "operation")
    detail = f"{times} times {once}" if times > 1 else once
    return Box(", ".join(names[:NAMED]) + more, detail, FOLDED, note=", ".join(names))
