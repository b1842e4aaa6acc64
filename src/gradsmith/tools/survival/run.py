"""Running the transformations, each with the rule as it is and with a silenced one.

A rule may well equal the true derivative, so its result doesn't show whether it was
used. If its answers are multiplied by zero, all that comes from the rule vanishes, to
every order; what is left did not come from it.

Each transformation is run in two ways: with the operation inside of a larger function,
and with its own argument differentiated by. Of the two outcomes the worse one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from ...core import trees
from ...core.errors import GradsmithError, NotDifferentiableError, first_line
from ...core.progress import Progress, without_warnings
from ...frameworks._transformations import (
    BATCH,
    GRADIENT,
    KINDS,
    SECOND,
    TANGENT,
    Noted,
    Row,
)
from ...operations.info import OperationInfo, is_floating, names_of, signature_of
from .._inputs import RANDOM
from .judge import Judge, Reference
from .result import Fate, Outcome
from .scalar import DIRECTION, POINTS, Scalar

STEP = 1 / 64
ROUGH = 0.02  # for results that are compared with differences
FULL = 2**16  # elements of a matrix that is computed as a whole

# Of two verdicts on a transformation the one that comes first counts.
_WORST = (
    Fate.DROPPED,
    Fate.WRONG,
    Fate.REFUSED,
    Fate.HONOURED,
    Fate.UNCLEAR,
)


def outcomes(
    info: OperationInfo, scalar: Scalar, rows: Sequence[Row], plain: Row
) -> tuple[Outcome, ...]:
    """Run the rows; `plain` is the one that gives the eager gradient."""
    progress = Progress("survives", info.name, len(rows))
    found = []
    try:
        with without_warnings():
            if _is_random(scalar, plain):
                return tuple(Outcome(row.name, Fate.UNCLEAR, RANDOM) for row in rows)
            ways = [Experiment(info, way, plain) for way in _ways(scalar, plain)]
            for row in rows:
                progress(row.name)
                each = [way.outcome(row) for way in ways if way.can_run(row)]
                found.append(worse(*each) if len(each) == 2 else each[0])
    finally:
        progress.close()
    return tuple(found)


def _is_random(scalar: Scalar, plain: Row) -> bool:
    """Whether two eager gradients differ: then none can be compared with another."""
    try:
        first, second = (
            scalar.contracted(plain.run(scalar), plain.kind) for _ in range(2)
        )
    except Exception:
        return False  # the table will tell
    if first is None or second is None:
        return False
    return not np.allclose(first, second, rtol=1e-3, atol=0, equal_nan=True)


def worse(inside: Outcome, itself: Outcome) -> Outcome:
    """Of two outcomes the worse one; where they differ it says when it comes about."""
    if inside.verdict is itself.verdict:
        return inside if inside.detail else itself
    if _WORST.index(inside.verdict) < _WORST.index(itself.verdict):
        found, when = inside, "inside a larger function"
    else:
        found, when = itself, "where its own argument is differentiated by"
    if found.verdict is Fate.HONOURED:  # the other one showed nothing
        return found
    detail = f"{found.detail}, {when}" if found.detail else when
    return Outcome(found.transformation, found.verdict, detail)


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


class Experiment:
    """One operation, in one of the ways, on its way through the transformations."""

    def __init__(self, info: OperationInfo, scalar: Scalar, plain: Row) -> None:
        self.info = info
        self.scalar = scalar
        self.plain = plain  # the eager gradient: what the others should give
        self.references = self._references()

    def outcome(self, row: Row, reference: Reference | None = None) -> Outcome:
        """What becomes of the rule under one transformation."""
        reference = reference or self.references[row.kind]
        scalar = self.scalar
        if row.keyword:
            scalar = scalar.by_keyword(names_of(self.info, scalar.args))
        try:
            given, note = _result(row, scalar)
        except Exception as error:
            return Outcome(row.name, Fate.REFUSED, first_line(error))
        if self.info.altered is None:
            verdict, detail = self._judge(rough=True).by_values(given, reference)
            return Outcome(row.name, verdict, _joined(detail, note))
        try:
            with self.info.altered(without_answers) as op:
                silenced, _ = _result(row, scalar.with_op(op))
        except Exception as error:
            why = f"its silenced copy failed: {first_line(error)}"
            return Outcome(row.name, Fate.UNCLEAR, why)
        verdict, detail = self._judge(rough=row.kind == SECOND).by_silencing(
            given,
            silenced,
            reference,
            own_forward=self.info.own_forward and row.forward,
        )
        return Outcome(row.name, verdict, _joined(detail, note))

    def _judge(self, *, rough: bool) -> Judge:
        tolerance = self.scalar.tolerance
        return Judge(max(tolerance, ROUGH) if rough else tolerance)

    def can_run(self, row: Row) -> bool:
        """Not if a whole matrix of many elements would be computed."""
        scalar = self.scalar
        n = sum(w.shape[0] for w in scalar.weights)
        elements = max(n, int(np.prod(scalar.t.shape))) * int(np.prod(scalar.t.shape))
        return not row.full or elements <= FULL

    # What the results should be

    def _references(self) -> dict[str, Reference]:
        unknown = {kind: Reference(None) for kind in KINDS}
        try:
            rule = np.array([self._gradient(t) for t in POINTS])
        except Exception:
            return unknown  # the table will say why
        self._require_finite(rule[0])
        plain = self.outcome(self.plain, Reference(None))
        if self.info.altered is not None and plain.verdict is not Fate.HONOURED:
            return unknown
        body = np.array([self._differences(t) for t in POINTS])
        bodies: list[Any] = [None] * 3
        if np.all(np.isfinite(body)):
            bodies = [body[0], body[0] @ DIRECTION, body]
        return {
            GRADIENT: Reference(rule[0], bodies[0]),
            TANGENT: Reference(rule[0] @ DIRECTION, bodies[1]),
            BATCH: Reference(rule, bodies[2]),
            SECOND: Reference(self._second(rule, bodies[2])),
        }

    def _require_finite(self, gradient: np.ndarray) -> None:
        if not np.all(np.isfinite(gradient)):
            raise GradsmithError(
                f"the gradient of {self.info.name} is not finite at these inputs, "
                "so that nothing can be told: choose others"
            )

    def _gradient(self, t: np.ndarray) -> np.ndarray:
        result, _ = _result(self.plain, self.scalar.at_point(t))
        return np.zeros(2) if result is None else result

    def _phi(self, t: np.ndarray) -> np.ndarray:
        moved = self.scalar.at_point(t)
        return moved.numpy(moved.phi(moved.t))

    def _differences(self, t: np.ndarray) -> np.ndarray:
        """The gradient of the body by differences; NaN if they can't be trusted."""
        along = [_derivative(lambda h, e=e: self._phi(t + h * e)) for e in np.eye(2)]
        return np.array([np.nan if each is None else each for each in along])

    def _second(self, rule: np.ndarray, body: np.ndarray | None) -> np.ndarray | None:
        """The second derivative by differences of the first, if that one is right.

        A rule that is not the derivative has a second derivative of its own, in which
        outputs that it uses are differentiated by the rule again.
        """
        if body is None or np.max(np.abs(rule - body)) > ROUGH * np.max(np.abs(rule)):
            return None
        return _derivative(lambda h: self._gradient(h * DIRECTION))


def _result(row: Row, scalar: Scalar) -> tuple[np.ndarray | None, str]:
    found = row.run(scalar)
    result, note = (
        (found.result, found.note) if isinstance(found, Noted) else (found, "")
    )
    return scalar.contracted(result, row.kind), note


def _derivative(fn: Callable[[float], np.ndarray]) -> np.ndarray | None:
    """The derivative at 0 by differences of two steps; None if they disagree."""
    wide, narrow = ((fn(h) - fn(-h)) / (2 * h) for h in (STEP, STEP / 2))
    found = (4 * narrow - wide) / 3
    trusted = np.max(np.abs(narrow - wide)) <= ROUGH * np.max(np.abs(found))
    return found if trusted else None


def _joined(*details: str) -> str:
    return "; ".join(filter(None, details))


# --- a rule that is silenced ---------------------------------------------------------


def without_answers(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule whose answers are multiplied by zero."""

    @wraps(rule)
    def silent(*args: Any, **kwargs: Any) -> Any:
        return trees.map(_times_zero, rule(*args, **kwargs))

    signature = signature_of(rule)  # some read it without following __wrapped__
    if signature is not None:
        silent.__signature__ = signature  # type: ignore[attr-defined]
    return silent


def _times_zero(g: Any) -> Any:
    """Of numbers and arrays of such; None and markers stay what they are."""
    if not is_floating(g):
        return g
    if not hasattr(g, "__mul__"):  # some rows of an array, as of an embedding
        return type(g)(g.values * 0.0, g.indices, g.dense_shape)
    return g * 0.0
