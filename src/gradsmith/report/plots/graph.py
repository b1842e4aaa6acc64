"""Graphs in layers, from the inputs above down to the results.

Each box stands below those that it was computed from. Within a layer, boxes are put in
the order of the means of their neighbours, and then as near to these means as others
let them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from .svg import tag, words

LETTER = 6.7  # the width of a letter of 11px in a monospaced font
HEIGHT, ABOVE, BESIDE, MARGIN = 36, 26, 16, 8
SWEEPS = 8


def graph_plot(data: dict[str, Any]) -> str:
    """Boxes, each with its `parents`: places of boxes before it in the list."""
    boxes = data["boxes"]
    layout = Layout(boxes)
    edges = [
        _edge(layout.points(parent, i), "stopped" if parent in box["silent"] else "")
        for i, box in enumerate(boxes)
        for parent in box["parents"]
    ]
    shown = [_box(box, *layout.place(i)) for i, box in enumerate(boxes)]
    width, height = layout.size
    return tag(
        "svg",
        tag("title", words(data["title"])),
        *edges,
        *shown,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        aria_label=f"{data['title']}. {data['spoken']}",
        class_="plot graph",
    )


def _width(box: dict[str, Any]) -> float:
    return 20 + LETTER * max(len(box["name"]), len(box["detail"]) * 10 / 11)


def _box(box: dict[str, Any], x: float, y: float, width: float) -> str:
    middle, detail = x + width / 2, box["detail"]
    return tag(
        "g",
        tag("title", words(box["note"] or f"{box['name']} {detail}")),
        tag("rect", x=x, y=y, width=width, height=HEIGHT, rx=5),
        _text(box["name"], middle, y + (15 if detail else 22), "name"),
        _text(detail, middle, y + 29, "detail") if detail else "",
        class_=f"box {box['kind']}",
    )


def _text(text: str, x: float, y: float, class_: str) -> str:
    return tag("text", words(text), x=x, y=y, text_anchor="middle", class_=class_)


def _edge(points: Sequence[tuple[float, float]], class_: str) -> str:
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        half = (y + to_y) / 2
        path += f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    head = f"M{x:.1f} {y:.1f}l-3.5 -6h7z"
    name = f"edge {class_}".strip()
    return tag("path", d=path, class_=name) + tag("path", d=head, class_=f"{name} head")


class Layout:
    """Where the boxes of a graph stand; long edges pass through places of their own."""

    def __init__(self, boxes: Sequence[dict[str, Any]]) -> None:
        self.widths = [_width(box) for box in boxes]
        self.layer = _layers([box["parents"] for box in boxes])
        self.above: list[list[int]] = [[] for _ in boxes]
        self.ways: dict[tuple[int, int], list[int]] = {}
        for i, box in enumerate(boxes):
            for parent in dict.fromkeys(box["parents"]):
                self._connect(parent, i)
        self.below: list[list[int]] = [[] for _ in self.above]
        for i, parents in enumerate(self.above):
            for parent in parents:
                self.below[parent].append(i)
        self.rows = self._ordered()
        self.x = self._spread()

    def _connect(self, parent: int, child: int) -> None:
        """An edge, with a place in each layer that it passes."""
        way, last = [], parent
        for layer in range(self.layer[parent] + 1, self.layer[child]):
            way.append(len(self.above))
            self.above.append([last])
            self.layer.append(layer)
            self.widths.append(4.0)
            last = way[-1]
        self.above[child].append(last)
        self.ways[parent, child] = way

    def _ordered(self) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for i, layer in enumerate(self.layer):
            rows[layer].append(i)
        place = {i: float(k) for row in rows for k, i in enumerate(row)}
        for sweep in range(SWEEPS):
            near = self.below if sweep % 2 else self.above
            for row in rows[:: -1 if sweep % 2 else 1]:
                wanted = {i: _mean([place[j] for j in near[i]], place[i]) for i in row}
                row.sort(key=wanted.__getitem__)
                place.update((i, float(k)) for k, i in enumerate(row))
        return rows

    def _spread(self) -> list[float]:
        """The middle of each box."""
        x = [0.0] * len(self.above)
        for sweep in range(SWEEPS + 1):
            near = self.below if sweep % 2 else self.above
            for row in self.rows[:: -1 if sweep % 2 else 1]:
                wanted = [_mean([x[j] for j in near[i]], x[i]) for i in row]
                widths = [self.widths[i] for i in row]
                for i, middle in zip(row, apart(wanted, widths), strict=True):
                    x[i] = middle
        edges = [x[i] - width / 2 for i, width in enumerate(self.widths)]
        return [each - min(edges, default=0.0) + MARGIN for each in x]

    @property
    def size(self) -> tuple[int, int]:
        ends = [x + width / 2 for x, width in zip(self.x, self.widths, strict=True)]
        rows = len(self.rows)
        height = rows * HEIGHT + max(rows - 1, 0) * ABOVE + 2 * MARGIN
        return round(max(ends, default=0.0) + MARGIN), height

    def place(self, i: int) -> tuple[float, float, float]:
        return self.x[i] - self.widths[i] / 2, self._top(i), self.widths[i]

    def points(self, parent: int, child: int) -> list[tuple[float, float]]:
        """Where an edge goes."""
        way = self.ways[parent, child]
        passed = [(self.x[i], self._top(i) + y) for i in way for y in (0, HEIGHT)]
        start = (self.x[parent], self._top(parent) + HEIGHT)
        return [start, *passed, (self.x[child], self._top(child))]

    def _top(self, i: int) -> float:
        return float(MARGIN + self.layer[i] * (HEIGHT + ABOVE))


def _layers(parents: Sequence[Sequence[int]]) -> list[int]:
    """As far down as the longest way to a box; inputs just above their first use.

    >>> _layers([[], [], [0], [2, 1]])
    [0, 1, 1, 2]
    """
    layer: list[int] = []
    for each in parents:
        layer.append(1 + max((layer[parent] for parent in each), default=-1))
    users: dict[int, list[int]] = {}
    for i, each in enumerate(parents):
        for parent in each:
            users.setdefault(parent, []).append(layer[i])
    for i, each in enumerate(parents):
        if not each and i in users:
            layer[i] = min(users[i]) - 1
    return layer


def _mean(values: list[float], otherwise: float) -> float:
    return fmean(values) if values else otherwise


def apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Places in the given order that don't overlap, nearest to those wanted.

    Without the widths, these are the least squares in ascending order: neighbours that
    are out of order share their mean.

    >>> apart([0.0, 0.0], [4.0, 4.0])
    [-10.0, 10.0]
    """
    offsets, end = [], 0.0
    for width in widths:
        offsets.append(end + width / 2)
        end += width + BESIDE
    blocks: list[tuple[float, int]] = []  # the sum of what is wanted, and of how many
    for want, offset in zip(wanted, offsets, strict=True):
        total, n = want - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / n:
            more, many = blocks.pop()
            total, n = total + more, n + many
        blocks.append((total, n))
    means = [total / n for total, n in blocks for _ in range(n)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
