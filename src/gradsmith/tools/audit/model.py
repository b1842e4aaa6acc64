"""What an audit found: errors of the value and of the gradient, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from ...core.errors import GradsmithError
from ...report.result import Document, Result
from . import words

Domain = tuple[float, float]
Progress = Callable[[int, int], None]  # how many points are done, and of how many
LIMIT = words.LIMIT
KINDS = ("nan", "overflow", "infinite", "underflow", "lost", "wrong")


@dataclass(frozen=True)
class Region:
    """Inputs that fail in one way: `text` says it, `where` is its bound ("x > 88.7").

    `low` and `high` are the least and the greatest such input, `points` how many were
    seen, `share` that of the judged ones, and `bits` the most that are lost. `cause` is
    the operation to blame, with its line, if it is known.
    """

    kind: str  # one of KINDS
    where: str
    text: str
    low: float | None  # none in several arguments, or in vectors
    high: float | None
    points: int
    share: float
    bits: float
    cause: str | None = None


@dataclass(frozen=True)
class Curve:
    """The errors over the inputs in order: of each bin its worst input and errors."""

    x: tuple[float, ...]
    max_ulp: tuple[float, ...]
    mean_ulp: tuple[float, ...]


@dataclass(frozen=True)
class Accuracy:
    """How far results are from the truth.

    `max_ulp` is the largest error in units in the last place; it may be `slack` more,
    which is what is not known of the true values. `beyond` is the share of points that
    are more than 4 ULP off. Points at kinks are judged by the subgradients between
    both sides; those outside of the domain are not judged. `wrong` says that a formula
    is not the derivative, however exactly it is computed.
    """

    max_ulp: float
    slack: float
    mean_ulp: float
    mean_bits: float
    beyond: float
    worst_inputs: tuple[str, ...]
    judged: int
    undecided: int
    kinks: int
    outside: int
    regions: tuple[Region, ...] = ()
    curve: Curve | None = None
    wrong: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is further off than 4 ULP, and something was judged."""
        return not self.wrong and self.max_ulp <= LIMIT


@dataclass(frozen=True)
class Audit(Result):
    """The result of an audit. `gradient` is the worst of `gradients`, by arguments.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.audit(np.tanh, domain=(-1, 1), points=1000)
    >>> report.ok, report.value.max_ulp < 4, report.undecided
    (True, True, 0)
    """

    operation: str
    framework: str
    version: str
    dtype: str
    domain: Domain | dict[str, Domain] | None
    arguments: tuple[str, ...]
    exhaustive: bool
    points: int
    value: Accuracy
    gradient: Accuracy
    gradients: dict[str, Accuracy] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 0.0

    @property
    def undecided(self) -> int:
        """How many points are open after all, of the value or of the gradient."""
        return max(self.value.undecided, self.gradient.undecided)

    @property
    def ok(self) -> bool:
        """Whether value and gradient are at most 4 ULP off wherever they were judged.

        A gradient that was not compared, as a declared surrogate, does not count.
        """
        right = self.gradient.ok or not self.gradient.judged
        return self.value.ok and right and not self.is_open

    @property
    def is_open(self) -> bool:
        """Whether nothing is far off, and nothing is known of some gradient."""
        every = (self.value, *self.gradients.values())
        unknown = [one for one in every if one.undecided and not one.judged]
        return bool(unknown) and all(one.ok for one in every if one.judged)

    def document(self) -> Document:
        return words.document(self)

    def plot(self, *, ax: Any = None, max_ulp: float = LIMIT) -> Any:
        """Draw the errors over the inputs by Matplotlib, and return its Axes.

        The lines are the largest error of neighbouring inputs, of the value and of the
        gradient (dotted the mean), and dashed `max_ulp`, the bound to keep; inputs
        beyond it are shaded. `ax` are the Axes to draw on.
        """
        from ...report.plots.axes import plot

        figures = words.plots(self)
        if not figures:
            raise GradsmithError(
                f"this audit of {self.operation} has no curve to plot: only a function "
                "of one number has\n  what to do: print the report, or audit it in one "
                "argument, with the others fixed"
            )
        title = f"{self.operation} in {self.framework} {self.version}, {self.dtype}"
        remark = words.remark(self).replace("`", "")
        return plot(figures, ax, title=title, remark=remark, max_ulp=max_ulp)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Audit:
        """The way back from `as_dict`; an error if it is no audit."""
        known = {each.name: row[each.name] for each in fields(cls)}
        found = {
            "domain": _domain(row["domain"]),
            "arguments": tuple(row["arguments"]),
            "value": _accuracy(row["value"]),
            "gradient": _accuracy(row["gradient"]),
            "gradients": {k: _accuracy(one) for k, one in row["gradients"].items()},
            "notes": tuple(row["notes"]),
        }
        return cls(**{**known, **found})


def _domain(row: Any) -> Any:
    if isinstance(row, dict):
        return {name: _domain(pair) for name, pair in row.items()}
    return None if row is None else tuple(map(float, row))


def _accuracy(row: dict[str, Any]) -> Accuracy:
    """Infinities and NaN are words in plain data."""
    exact = ("max_ulp", "slack", "mean_ulp", "mean_bits", "beyond")
    curve = row["curve"]
    if curve is not None:
        curve = Curve(**{name: tuple(map(float, x)) for name, x in curve.items()})
    return Accuracy(
        **{**row, **{name: float(row[name]) for name in exact}, "curve": curve,
           "regions": tuple(map(_region, row["regions"])),
           "worst_inputs": tuple(row["worst_inputs"])}
    )  # fmt: skip


def _region(row: dict[str, Any]) -> Region:
    ends = {k: None if row[k] is None else float(row[k]) for k in ("low", "high")}
    return Region(**{**row, **ends, "bits": float(row["bits"])})
