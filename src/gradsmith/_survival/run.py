"""All transformations, in both ways of differentiating; of each the worse outcome."""

from __future__ import annotations

from collections.abc import Sequence

from .probe import Probe
from .quiet import Progress, quiet
from .result import Outcome, Verdict
from .row import Row
from .scalar import Scalar
from .subject import Subject

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
    subject: Subject, scalar: Scalar, rows: Sequence[Row], plain: Row
) -> tuple[Outcome, ...]:
    """Run the rows; `plain` is the one that gives the eager gradient."""
    progress = Progress(subject.name, len(rows))
    itself = scalar.differentiated_itself()
    found = []
    try:
        with quiet():
            ways = [Probe(subject, way, plain) for way in (scalar, itself) if way]
            for row in rows:
                progress(row.name)
                each = [way.outcome(row) for way in ways if way.can_run(row)]
                found.append(worse(*each) if len(each) == 2 else each[0])
    finally:
        progress.close()
    return tuple(found)
