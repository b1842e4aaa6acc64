"""Is this gradient right, and if not, what is wrong with it?"""

from __future__ import annotations

import inspect
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count, islice
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, NUMPY
from ...core.errors import GradientError, annotate
from ...core.hooks import unrecorded
from ...core.progress import without_warnings
from ...operations.info import of_operation, positional
from ...report.result import Result
from .budget import UNLIMITED, Budget, OutOfTimeError
from .first_order import FIRST_ORDER
from .inputs import CheckInputs, inputs_for
from .model import (
    CheckReport,
    CheckRun,
    Finding,
    RuleSource,
    Verdict,
    merged,
    with_samples,
)
from .options import CheckOptions, constants_among, refuse_options
from .problem import Problem, problem_for
from .reproducer import reproducer
from .run import run
from .session import GIVEN, Session

__all__ = [
    "CheckOptions",
    "CheckReport",
    "CheckRun",
    "Finding",
    "GradientError",
    "Verdict",
    "assert_gradients",
    "check",
]


class Check:
    """Checks gradients; `gs.check` is one with the usual options."""

    def __init__(self, options: CheckOptions | None = None) -> None:
        self._options = options or CheckOptions()
        self.__name__ = "check"
        self.__doc__ = type(self).__call__.__doc__

    @unrecorded()
    def __call__(self, op: Any, *inputs: Any, **keywords: Any) -> CheckReport:
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

        Keywords are passed to the operation. Options of the check are set beforehand:

        >>> gs.check.options(seed=3)(cube, np.array([1.0, -2.0])).ok
        True

        Without inputs the operation is checked on each of its examples
        (`@cube.example`, or `gs.example` for a framework's own). Exceptions of the
        operation pass through.

        Raises
        ------
        GradsmithError
            If there are no inputs, none of them can be differentiated, the
            operation takes no such keyword, or the framework is not known or not
            installed.
        """
        refuse_options(op, keywords)
        if not inputs and not keywords and self._options.inputs is not None:
            chosen = [*_more_inputs(op, self._options)][:1]
        else:
            chosen = inputs_for(op, inputs, keywords, seed=self._options.seed)
        tell, names = _TELL.get(), [each.name for each in chosen]
        reports: list[CheckReport] = []

        def tell_all(report: CheckReport) -> None:
            if tell is not None:
                tell(merged([*reports, report], names[: len(reports) + 1]))

        for each in chosen:
            report = _check_one(op, each, self._options, tell and tell_all)
            reports.append(report)
        return merged(reports, names)

    def options(self, **options: Any) -> Check:
        """The same check with other options: see `CheckOptions`."""
        return type(self)(self._options.changed(**options))


class AssertGradients(Check):
    """`check`, which raises `GradientError` unless the check succeeds."""

    def __call__(self, op: Any, *inputs: Any, **keywords: Any) -> CheckReport:
        """Check a gradient like `check`, and raise `GradientError` unless it is right.

        >>> import numpy as np
        >>> import gradsmith as gs
        >>> @gs.custom_gradient
        ... def square(x):
        ...     return x * x, lambda dy: -2 * x * dy
        >>> gs.assert_gradients(square, np.array([1.0, -2.0]))
        Traceback (most recent call last):
        ...
        gradsmith.core.errors.GradientError: ✗ square in NumPy ...

        Options are given as to `check`: `gs.assert_gradients.options(strict=True)`.

        Raises
        ------
        GradientError
            If the gradient is wrong, or the check could not tell; its `report` is
            that of `check`.
        """
        report = super().__call__(op, *inputs, **keywords)
        if not report.ok:
            raise GradientError(report)
        return report


MORE = 8  # inputs that `inputs=` gives

check = Check()
assert_gradients = AssertGradients()


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
    op: Any,
    given: CheckInputs,
    options: CheckOptions,
    tell: Callable[[CheckReport], None] | None,
) -> CheckReport:
    start = time.perf_counter()
    problem = problem_for(op, given, options.framework)
    is_compiled = problem.framework.name != NUMPY
    spent = time.perf_counter() - start
    budget = Budget(options.seconds, compiled=is_compiled, spent=spent)
    problem = replace(problem, budget=budget)
    names = positional(problem.info, given.args)[: len(given.args)]
    problem = problem.freezing(constants_among(options, problem.names, names))
    if options.surrogate is not None:
        info = replace(problem.info, surrogate=options.surrogate)
        problem = replace(problem, info=info)
    session = Session(problem, options.seed)
    session.more = lambda: (
        problem_for(op, each, options.framework) for each in _more_inputs(op, options)
    )
    if tell is not None:
        session.recorded = lambda: tell(_report(session, options, start))
    with ExitStack() as stack:
        if given.name:
            stack.enter_context(annotate(f"checked on {given.name}"))
        if problem.framework.name == NUMPY and of_operation(op) is None:
            stack.enter_context(_in_numpy())
        run(session, thorough=options.thorough)
    _prove(session)
    return _report(session, options, start)


def _prove(session: Session) -> None:
    """A script for what is wrong, if no finding has one."""
    if session.verdict is not Verdict.WRONG or any(
        finding.reproducer for finding in session.findings
    ):
        return
    first = session.findings[0]
    if first.what == FIRST_ORDER and first.scenario in (None, GIVEN):
        return  # tried there
    problem, misfit = session.problem, first.what in ("contract", "shape")
    arguments = [first.argument] if first.argument else problem.perturbed
    script = None
    with suppress(OutOfTimeError), without_warnings(), np.errstate(all="ignore"):
        tried = (reproducer(problem, each, misfit=misfit) for each in arguments)
        script = problem.budget.run_aside(lambda: next(filter(None, tried), None))
    session.findings[0] = replace(first, reproducer=script)


def _more_inputs(op: Any, options: CheckOptions) -> Iterator[CheckInputs]:
    """Those that the caller's function or iterable gives, a few of them."""
    source: Any = options.inputs
    if callable(source):
        random = np.random.default_rng([options.seed, 1])
        source = (options.inputs(random) for _ in count())  # type: ignore[operator]
    for made in islice(source or (), MORE):
        if isinstance(made, dict):
            args, keywords = (), made
        else:
            args, keywords = made if type(made) is tuple else (made,), {}
        yield from inputs_for(op, args, keywords, seed=options.seed)


def _report(session: Session, options: CheckOptions, start: float) -> CheckReport:
    framework = session.problem.framework
    shown = session.wrong_at or session.problem
    report = CheckReport(
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
        tuple(session.limits),
        options.strict,
        _source_of(session.problem.info.rule),
    )
    shown = replace(shown, budget=UNLIMITED)
    return with_samples(report, partial(_samples, shown, session.seed))


def _samples(problem: Problem, seed: int) -> Result:
    from .samples import samples  # for plots alone

    return samples(problem, seed)


@lru_cache(64)  # for reports of what was found until now
def _source_of(rule: Any) -> RuleSource | None:
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(rule))
        file = inspect.getsourcefile(inspect.unwrap(rule)) or ""
    except (TypeError, OSError):
        return None
    return RuleSource(file, first, textwrap.dedent("".join(lines)).rstrip())


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
