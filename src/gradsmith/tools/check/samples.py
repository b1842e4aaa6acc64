"""The gradient by the rule beside differences, at points that a plot can show.

An elementwise operation of one argument gives a curve over the inputs that were
checked; of any other, the gradient of a random sum of the outputs is compared at some
of the elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from ...core.progress import without_warnings
from ...report.result import Document, Figure, Line, Result
from .differences import Slope
from .flat import flatten, symmetrized
from .point import MANY, Point
from .preparation import evaluate_first, prepare
from .problem import Problem
from .session import Session
from .sizes import truncated

CURVE = 72  # points of a curve beside the inputs themselves
OWN = 48  # inputs that are shown at most
ELEMENTS = 48
SIGMAS = 8.0  # how many of its errors a difference may be off


@dataclass(frozen=True)
class Samples(Result):
    """Gradient and differences: `analytic` is to be between `low` and `high`.

    `gap` is how far it is outside, and `error` what the differences can't tell; both
    are relative. A curve has an `x` for each, of which some were `given`; other
    operations have elements, each with its `argument` and `place`.
    """

    kind: str  # "curve" or "elements"
    argument: str | list[str]
    analytic: list[Any]
    low: list[Any]
    high: list[Any]
    gap: list[Any]
    error: list[Any]
    beyond: int
    x: list[Any] = field(default_factory=list)
    given: list[bool] = field(default_factory=list)
    place: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether they agree everywhere."""
        return not self.beyond

    def document(self) -> Document:
        n, many = self.beyond, len(self.gap)
        words = f"off at {n} of {many}" if n else f"they agree at all {many}"
        words = f"{words} points" + (f"; {self.note}" if self.note else "")
        return Document(
            words,
            self._figures() if self.gap else (Line("there is nothing to compare"),),
            title="Gradient against differences",
            remark=words,
            limit="" if self.ok or self.note else words,
        )

    def _figures(self) -> tuple[Figure, ...]:
        data = self.as_dict()
        names = ", ".join(dict.fromkeys(self.argument))
        caption = (
            "The gradient by the rule (line) and by differences (dots); ticks at the "
            "bottom mark the inputs that were checked"
            if self.kind == "curve"
            else "The gradient of a random sum of the outputs, by elements of "
            f"{names}: right ones lie on the diagonal"
        )
        return (
            Figure("gradient", data, caption),
            Figure(
                "deviation",
                data,
                "Their deviation, over what the differences can't tell (shaded); what "
                "is exact lies at the bottom",
            ),
        )


def samples(given: Problem, seed: int) -> Samples:
    """The gradient beside differences, at points that a plot can show."""
    session = Session(given, seed)
    with without_warnings(), np.errstate(all="ignore"):
        problem = prepare(session, evaluate_first(session))
        if problem is None:
            raise GradsmithError(_nothing(session))
        if sum(x.size for x in problem.xs) >= MANY:
            problem = truncated(problem) or problem
        random = session.random("samples")
        found = _curve if is_elementwise(problem) else _elements
        return Samples(**found(problem, random), note=_note(problem))


def _nothing(session: Session) -> str:
    """Why there is nothing to plot."""
    why = [*session.notes, *(f"{f.title}: {f.message}" for f in session.findings)]
    return f"there is no gradient to plot: {'; '.join(why) or 'print the report'}"


def _note(problem: Problem) -> str:
    if problem.info.surrogate is not None:
        return "a declared surrogate: the two are not meant to agree"
    if not problem.info.linear:
        return "not linear in dy, so it is not a derivative"
    return ""


def is_elementwise(problem: Problem) -> bool:
    """Whether each output is about one element of the only argument."""
    if len(problem.xs) != 1:
        return False
    (x,), ys = problem.xs, problem.value(problem.xs)
    if len(ys) != 1 or ys[0].shape != x.shape or np.iscomplexobj(x) or not x.size:
        return False
    for place in {0, x.size // 2, x.size - 1}:
        other = x.copy()
        other.flat[place] = 1.0625 * other.flat[place] + 0.0625
        changed = np.ravel(problem.value([other])[0] != ys[0])
        changed[place] = False
        if np.any(changed & ~np.isnan(np.ravel(ys[0]))):
            return False
    return True


# --- elementwise


def _curve(problem: Problem, random: np.random.Generator) -> dict[str, Any]:
    (x,) = problem.xs
    own = np.unique(x[np.isfinite(x)])
    own = own[np.unique(np.linspace(0, own.size - 1, OWN).round().astype(int))]
    low, high = float(own[0]), float(own[-1])
    if low == high:  # of one number there is no range: its surroundings
        low, high = low - max(1, abs(low)) / 2, high + max(1, abs(high)) / 2
    points = np.unique(np.concatenate([own, np.linspace(low, high, CURVE)]))
    rows = [_at(problem, part, random) for part in _filled(points, x)]
    columns = np.concatenate(rows, axis=1)[:, : points.size]
    known = np.isfinite(columns[2])
    return {
        "kind": "curve",
        "argument": problem.perturbed[0],
        "x": _short(points[known]),
        "given": np.isin(points, own)[known].tolist(),
        **_compared(*columns[:, known]),
    }


def _filled(points: np.ndarray, like: np.ndarray) -> list[np.ndarray]:
    """The points in arrays of the shape that the operation was given."""
    n = -(-points.size // like.size) * like.size
    padded = np.pad(points, (0, n - points.size), mode="edge")
    return list(padded.reshape(-1, *like.shape))


def _at(problem: Problem, x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    try:
        point = Point(flatten(problem, [x]), random)
        v = point.scale
        found = point.slope(v)
        g = point.linearization.pull(np.ones(x.size))
    except Exception:  # outside of the operation's domain
        return np.full((4, x.size), np.nan)
    error = np.where(found.error < np.inf, found.error, np.nan)
    return np.array([g, found.low / v, found.high / v, SIGMAS * error / np.abs(v)])


# --- anything else


def _elements(problem: Problem, random: np.random.Generator) -> dict[str, Any]:
    point = Point(flatten(problem), random)
    u = point.upstream()
    rows, names, places = [], [], []
    for i in _chosen(problem, point, random):
        part = point.flat.arguments.part_of(i)
        row = _along(point, i, u)
        if row is not None:
            rows.append(row)
            names.append(part.name)
            places.append(f"{part.name}{list(part.index(i)) or ''}")
    columns = np.array(rows).reshape(-1, 4).T
    found = {"argument": names, "place": places, **_compared(*columns)}
    return {"kind": "elements", **found}


def _chosen(problem: Problem, point: Point, random: np.random.Generator) -> list[int]:
    """Some elements of each argument."""
    parts = [part for part in point.flat.arguments.parts if part.size]
    each = max(1, ELEMENTS // max(1, len(parts)))
    chosen = [
        part.start + random.permutation(part.size)[:each] for part in parts[:ELEMENTS]
    ]
    return [int(i) for some in chosen for i in np.sort(some)]


def _along(point: Point, i: int, u: np.ndarray) -> tuple[float, ...] | None:
    """The derivative by one element, of the outputs whose differences settle."""
    v = np.zeros(point.x.size)
    v[i] = size = point.scale[i]
    v = symmetrized(v, point.flat)
    found: Slope = point.slope(v)
    # What does not move has no error; a settled one that does has a small one.
    u = np.where(point.settled(found) | (found.size == 0), u, 0.0)
    if not np.any(u) or not np.any(v):
        return None
    low, high = u * np.nan_to_num(found.low), u * np.nan_to_num(found.high)
    error = np.sqrt(np.sum(np.where(u == 0, 0, u * found.error) ** 2))
    g = np.sum(np.where(v == 0, 0.0, point.linearization.pull(u) * v))
    lows, highs = np.sum(np.minimum(low, high)), np.sum(np.maximum(low, high))
    return g / size, lows / size, highs / size, SIGMAS * float(error) / size


# --- both


def _compared(
    analytic: np.ndarray, low: np.ndarray, high: np.ndarray, error: np.ndarray
) -> dict[str, Any]:
    sizes = np.maximum(np.abs(low), np.abs(high))
    finite = sizes[np.isfinite(sizes) & (sizes > 0)]
    scale = np.fmax(sizes, float(np.median(finite)) if finite.size else 1.0)
    gap = np.maximum(0.0, np.maximum(low - analytic, analytic - high))
    # Rounding of the rule itself, as the check allows for it
    error = error + 64 * 2.0**-52 * np.abs(analytic)
    return {
        "analytic": _short(analytic),
        "low": _short(low),
        "high": _short(high),
        "gap": _short(gap / scale),
        "error": _short(error / scale),
        "beyond": int(np.sum(~(gap <= error))),
    }


def _short(x: np.ndarray) -> list[Any]:
    """Digits enough for a plot; NaN and inf as JSON has to say them."""
    return [
        float(f"{value:.6g}") if np.isfinite(value) else str(float(value))
        for value in x.tolist()
    ]
