"""Is this gradient right, and if not, what is wrong with it?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from numbers import Integral
from typing import Any

from ...core.arrays import FRAMEWORKS, NUMPY
from ...core.errors import GradientError, GradsmithError, annotate
from ...core.hooks import unrecorded
from ...operations.info import of_operation
from .inputs import CheckInputs, inputs_for
from .model import CheckReport, CheckRun, Finding, Verdict, merged
from .problem import problem_for
from .run import run
from .session import Session

__all__ = [
    "CheckReport",
    "CheckRun",
    "Finding",
    "GradientError",
    "Verdict",
    "assert_gradients",
    "check",
]


@unrecorded()
def check(
    op: Any,
    *inputs: Any,
    framework: str | None = None,
    seed: int = 0,
    thorough: bool = False,
    **keywords: Any,
) -> CheckReport:
    """Check the gradient of an operation: is it right, and if not, what is wrong?

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def cube(x):
    ...     return x**3, lambda dy: 3 * x**2 * dy
    >>> gs.check(cube, np.array([1.0, -2.0])).verdict
    <Verdict.RIGHT: 'right'>

    Inputs are arrays, or specs from which they are generated:

    >>> gs.check(cube, gs.spec("batch 3", low=0)).ok
    True

    Without inputs the operation is checked on each of its examples (`@cube.example`, or
    `gs.example` for a framework's own). Exceptions of the operation pass through.
    """
    if not isinstance(seed, Integral) or seed < 0:
        raise GradsmithError(f"seed={seed!r}: expected an integer, 0 or larger")
    chosen = inputs_for(op, inputs, keywords, seed=seed)
    tell, names = _TELL.get(), [each.name for each in chosen]
    reports: list[CheckReport] = []

    def tell_all(report: CheckReport) -> None:
        if tell is not None:
            tell(merged([*reports, report], names[: len(reports) + 1]))

    for each in chosen:
        options: Any = {"framework": framework, "seed": seed, "thorough": thorough}
        reports.append(_check_one(op, each, tell and tell_all, **options))
    return merged(reports, names)


_TELL: ContextVar[Callable[[CheckReport], None] | None] = ContextVar(
    "tell", default=None
)


@contextmanager
def partial_reports(tell: Callable[[CheckReport], None]) -> Iterator[None]:
    """Let checks tell what they have found whenever a part of them is done."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


def _check_one(
    op: Any, given: CheckInputs, tell: Callable[[CheckReport], None] | None, *,
    framework: str | None, seed: int, thorough: bool,
) -> CheckReport:  # fmt: skip
    start = time.perf_counter()
    problem = problem_for(op, given, framework)
    session = Session(problem, seed)
    if tell is not None:
        session.recorded = lambda: tell(_report(session, start))
    with ExitStack() as stack:
        if given.name:
            stack.enter_context(annotate(f"checked on {given.name}"))
        if problem.framework.name == NUMPY and of_operation(op) is None:
            stack.enter_context(_in_numpy())
        run(session, thorough=thorough)
    return _report(session, start)


def _report(session: Session, start: float) -> CheckReport:
    framework = session.problem.framework
    return CheckReport(
        session.problem.info.name,
        framework.title,
        framework.arrays.version,
        session.verdict,
        tuple(session.findings),
        tuple(session.checks),
        tuple(session.notes),
        session.seed,
        session.resolution,
        time.perf_counter() - start,
    )


def _in_numpy() -> Any:
    """A plain function may be meant for another framework: an error says so."""
    others = [name for name in FRAMEWORKS if name != NUMPY]
    loaded = [name for name in others if FRAMEWORKS[name].is_imported]
    if not loaded:
        return nullcontext()
    said = " or ".join(f"framework={each!r}" for each in loaded)
    return annotate(
        "it was called with NumPy arrays, and so in NumPy; if it is for another "
        f"framework, pass arrays of that, or {said}"
    )


def assert_gradients(op: Any, *inputs: Any, **options: Any) -> CheckReport:
    """`check`, which raises `GradientError` unless the gradient is right."""
    report = check(op, *inputs, **options)
    if not report.ok:
        raise GradientError(report)
    return report
