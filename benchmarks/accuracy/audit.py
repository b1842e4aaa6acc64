"""The audit of a row: the same points and the same truth for all contenders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy import points
from benchmarks.accuracy.contenders import Result, of_peer, ours
from benchmarks.accuracy.judge import (
    Figure,
    Truths,
    figure,
    overflows,
    truths,
    worse,
)
from benchmarks.accuracy.points import FLOAT32
from benchmarks.accuracy.rows import Row

POINTS = 20_000  # numbers, or of vectors a tenth of that


@dataclass
class Audited:
    """What was found of a row: value and gradient of each contender."""

    row: Row
    figures: dict[str, tuple[Figure, Figure]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def audited(row: Row, peers: Sequence[str] = (), *, n: int = POINTS) -> Audited:
    """Compare ours, and the peers that have the function, with the truth."""
    xs, dy = inputs(row, n)
    truth = truths(row.reference or row.ours, xs, FLOAT32, dy)
    found = Audited(row)
    found.figures["gradsmith"] = _figures(ours(row.ours, xs, dy), truth)
    for path in row.paths:
        if path.partition(".")[0] in peers:
            _add(found, path, xs, dy, truth)
    return found


def inputs(row: Row, n: int, *, seed: int = 0) -> tuple[list[Any], Any]:
    """The points of a row, and the upstream gradients (None: ones)."""
    n = max(int(n * row.share), 60)
    if row.lines:
        x, dy = points.of_vectors(max(n // 10, 60), row.lines, seed=seed)
        reduces = row.ours(x[:1]).ndim == 1
        return [x], dy[:, 0] if reduces else dy
    if len(row.domains) == 1:
        return [points.of_one(row.domains[0], n, seed=seed)], None
    return points.of_several(list(row.domains), n, seed=seed), None


def _add(found: Audited, path: str, xs: list[Any], dy: Any, truth: Truths) -> None:
    peer = path.partition(".")[0]
    try:
        result = of_peer(path, xs, dy, lines=bool(found.row.lines))
    except Exception as error:  # whatever a peer raises stands in the table
        lines = str(error).splitlines() or [""]
        found.refused[peer] = f"{path}: {type(error).__name__}: {lines[0][:100]}"
        return
    found.figures[peer] = _figures(result, truth)


def _figures(result: Result, truth: Truths) -> tuple[Figure, Figure]:
    """Of value and gradient; of the latter where the value is a finite number."""
    y, dxs = result
    gone = overflows(truth.value, FLOAT32)
    gradients = [
        figure(dx, true, truth.xs, FLOAT32, without=_like(gone, true.hi))
        for dx, true in zip(dxs, truth.gradients, strict=True)
    ]
    return figure(y, truth.value, truth.xs, FLOAT32), worse(gradients)


def _like(mask: Any, x: Any) -> Any:
    """A mask of values for gradients: the value of a line stands for all of it."""
    return mask if mask.ndim == x.ndim else mask[:, None]
