"""Running the transformations: each isolated, with the rule as it is and silenced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from ...operations.info import OperationInfo, names_of
from .judge import Judge, Reference
from .marking import marked
from .result import Outcome, Verdict
from .row import BATCH, GRADIENT, KINDS, SECOND, TANGENT, Noted, Row
from .scalar import DIRECTION, POINTS, Scalar

STEP = 1 / 64
ROUGH = 0.02  # for results that are compared with differences
FULL = 2**16  # elements of a matrix that is computed as a whole


class Probe:
    """One operation on its way through the transformations of a framework."""

    def __init__(self, subject: OperationInfo, scalar: Scalar, plain: Row) -> None:
        self.subject = subject
        self.scalar = scalar
        self.plain = plain  # the eager gradient: what the others should give
        self.references = self._references()

    def outcome(self, row: Row, reference: Reference | None = None) -> Outcome:
        """What becomes of the rule under one transformation."""
        reference = reference or self.references[row.kind]
        scalar = self.scalar
        if row.keyword:
            scalar = scalar.by_keyword(names_of(self.subject, scalar.args))
        try:
            given, note = _result(row, scalar)
        except Exception as error:
            return Outcome(row.name, Verdict.REFUSED, first_line(error))
        if self.subject.altered is None:
            verdict, detail = self._judge(rough=True).unmarked(given, reference)
            return Outcome(row.name, verdict, joined(detail, note))
        try:
            with marked(self.subject, 0.0) as op:
                silenced, _ = _result(row, scalar.with_op(op))
        except Exception as error:
            why = f"its marked copy failed: {first_line(error)}"
            return Outcome(row.name, Verdict.UNCLEAR, why)
        verdict, detail = self._judge(rough=row.kind == SECOND).marked(
            given,
            silenced,
            reference,
            own_forward=self.subject.own_forward and row.forward,
        )
        return Outcome(row.name, verdict, joined(detail, note))

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
        if self.subject.altered is not None and plain.verdict is not Verdict.HONOURED:
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
                f"the gradient of {self.subject.name} is not finite at these inputs, "
                "so that nothing can be told: choose others"
            )

    def _gradient(self, t: np.ndarray) -> np.ndarray:
        result, _ = _result(self.plain, self.scalar.at_point(t))
        return np.zeros(2) if result is None else result

    def _phi(self, t: np.ndarray) -> np.ndarray:
        moved = self.scalar.at_point(t)
        return moved.kit.numpy(moved.phi(moved.t))

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


def joined(*details: str) -> str:
    return "; ".join(filter(None, details))


def first_line(error: BaseException) -> str:
    """An exception's type and the first line of what it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0] == "in user code:":  # TensorFlow's, before a traceback
        lines = lines[-1:]
    name = type(error).__name__
    return f"{name}: {lines[0].removeprefix(f'{name}: ')}" if lines else name
