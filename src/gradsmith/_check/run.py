"""The order in which an operation is looked at."""

from __future__ import annotations

from .first import Ground
from .flat import flat
from .model import Finding, Verdict
from .session import Session


def run(session: Session, *, thorough: bool) -> None:
    """Look at everything, on the inputs given and on others like them."""
    problem = session.problem.in_dtype("float64")
    ground = Ground(flat(problem), session.random("given"))
    tests = list(ground.tests())
    for test in tests:
        if test.is_wrong:
            session.found(
                Finding(
                    "first order",
                    "the gradient is not the derivative",
                    argument=test.part.name,
                    scenario="given",
                    error=test.gap / test.scale,
                    noise=test.resolution,
                )
            )
    if not session.findings:
        seen = max(test.resolution for test in tests)
        session.looked("first order", "given", Verdict.RIGHT, seen)
