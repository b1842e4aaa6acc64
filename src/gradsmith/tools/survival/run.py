"""All transformations, in both ways of differentiating; of each the worse outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...core.errors import NotDifferentiableError
from ...operations.info import OperationInfo
from .probe import Probe
from .quiet import Progress, quiet
from .result import Outcome, Verdict
from .row import Row
from .scalar import Scalar

# The verdict on a transformation is the worse one.
_ORDER = (
    Verdict.DROPPED,
    Verdict.WRONG,
    Verdict.REFUSED,
    Verdict.HONOURED,
    Verdict.UNCLEAR,
)


def worse(inside: Outcome, itself: Outcome) -> Outcome:
    """Of two outcomes the worse one; where they differ it says when it comes about."""
    if inside.verdict is itself.verdict:
        return inside if inside.detail else itself
    if _ORDER.index(inside.verdict) < _ORDER.index(itself.verdict):
        found, when = inside, "inside of a larger function"
    else:
        found, when = itself, "where its own argument is differentiated by"
    if found.verdict is Verdict.HONOURED:  # the other one showed nothing
        return found
    detail = f"{found.detail}, {when}" if found.detail else when
    return Outcome(found.transformation, found.verdict, detail)


def outcomes(
    subject: OperationInfo, scalar: Scalar, rows: Sequence[Row], plain: Row
) -> tuple[Outcome, ...]:
    """Run the rows; `plain` is the one that gives the eager gradient."""
    progress = Progress("survives", subject.name, len(rows))
    found = []
    try:
        with quiet():
            ways = [Probe(subject, way, plain) for way in _ways(scalar, plain)]
            for row in rows:
                progress(row.name)
                each = [way.outcome(row) for way in ways if way.can_run(row)]
                found.append(worse(*each) if len(each) == 2 else each[0])
    finally:
        progress.close()
    return tuple(found)


def _ways(scalar: Scalar, plain: Row) -> list[Scalar]:
    """Inside of a larger function, and by the first argument that shows something.

    Arguments that a rule declares not to be differentiable stay as they are.
    """
    slopes = [_slope(scalar.moving_only(i), plain) for i in range(scalar.count)]
    moved = [i for i, slope in enumerate(slopes) if slope is not None]
    if not moved:
        return [scalar]  # the table will say why
    pairs = zip(scalar.directions, slopes, strict=True)
    kept = [None if slope is None else vs for vs, slope in pairs]
    scalar = replace(scalar, directions=kept)
    itself = scalar.differentiated_itself(max(moved, key=lambda i: bool(slopes[i])))
    return [scalar, itself] if itself else [scalar]


def _slope(scalar: Scalar, plain: Row) -> float | None:
    """How large the gradient is; None where the rule says that there is none."""
    try:
        found = scalar.contracted(plain.run(scalar), plain.kind)
    except NotDifferentiableError:
        return None
    except Exception:
        return 0.0  # the table will tell
    return 0.0 if found is None else float(np.max(np.abs(found)))
