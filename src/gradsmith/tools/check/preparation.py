"""Can this operation be checked at all? If not, a note or a finding says why."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...core import trees
from ...core.errors import GradientContractError, NotDifferentiableError, annotate
from ...operations.info import is_floating
from .._inputs import RANDOM
from .contract import check_connected, check_contract
from .declared import declared_operations
from .flat import EPS, half_read
from .model import Finding
from .problem import Arrays, Gradients, Problem
from .session import GIVEN, Session
from .sizes import truncated_if_large

SLOW = 0.02  # seconds
LOOP = 8  # times
NEXT, FURTHER = 1 + 2.0**-36, 1 + 2.0**-12  # in the digits of float64 and float32
FEW = 0.05  # by chance
HURRIED = 0.5  # with compiling


def evaluate_first(session: Session) -> tuple[Arrays, str]:
    """The outputs, in the given dtypes, and the lowest precision among them."""
    start, spent = time.perf_counter(), time.process_time()
    with annotate(_RAISED.format(session.problem.info.name)):
        found = session.problem.computed()
    session.took = took = time.perf_counter() - start
    session.is_costly = session.problem.budget.is_long(time.process_time() - spent)
    session.is_hurried = took > HURRIED or session.problem.budget.is_long(took)
    return found


_RAISED = "raised by {} itself, called with the given inputs"


def prepare(session: Session, outputs: tuple[Arrays, str]) -> Problem | None:
    """The problem in double precision, with non-differentiable arguments frozen.

    None if there is nothing to check: then a note or a finding says why. What the
    operation or its rule raises on the inputs given passes through.
    """
    given, (ys, computed) = session.problem, outputs
    _note_not_finite(session, ys)
    if few := truncated_if_large(given):  # each pass over all of them takes long
        given, (ys, computed) = few, few.computed()
    with annotate(_RAISED.format(given.info.name)):
        start = time.process_time()  # whatever else runs on the machine
        is_random = not _same(ys, given.value(given.xs))
        is_slow = time.process_time() - start > SLOW
        session.solves = is_slow or repetitions(given) >= LOOP
        if is_random:
            given = replace(given, is_random=True)
            ys, computed = given.computed()
    if is_random and not _same(ys, given.linearize(given.xs).ys):
        session.give_up(RANDOM)
    elif not ys:
        session.give_up(_no_output(given))
    elif not any(y.size for y in ys):
        session.give_up("the outputs have no elements: try inputs that have some")
    elif not any(np.any(np.isfinite(y)) for y in ys):
        session.give_up("no output is finite at the given inputs: try others")
    else:
        if is_random:
            words = "each draw is judged with the generators rewound"
            session.limit(Finding("random", words))
        given = _with_declared(session, given)
        problem = _differentiable(
            session, _in_double_precision(session, given, computed)
        )
        if problem is not None:
            problem = problem.with_traits()
            session.solves |= problem.traits.iterates
            problem = _with_symmetry(session, problem)
            return replace(problem, inputs=session.problem.inputs)
    return None


def _no_output(problem: Problem) -> str:
    """Why no output has a gradient."""
    with problem.precision():
        args, kwargs = problem.native_inputs()
        leaves = trees.leaves(problem.call(*args, **kwargs))
    if any(isinstance(y, np.ndarray) and is_floating(y) for y in leaves):
        who = problem.framework.title
        return (
            f"it returns NumPy arrays, through which {who} does not differentiate: "
            f"return arrays of {who}, or make it an operation with gs.python_op"
        )
    return "no output is a floating-point array: no gradient is needed"


def _with_declared(session: Session, problem: Problem) -> Problem:
    """Surrogates that are declared inside of a function are no mistakes of it."""
    operations = declared_operations(problem)
    for operation in operations:
        session.declared = True
        words = (
            f"declared a surrogate ({operation.surrogate}): it counts as the linear "
            "map of its rule"
        )
        if not operation.linear:
            words = "declared not to be linear in dy, and so the whole is not"
        session.note(f"{operation.name} inside is {words}")
    if all(operation.linear for operation in operations):
        return replace(problem, declares=session.declared)
    return replace(problem, info=replace(problem.info, linear=False))


def repetitions(problem: Problem) -> int:
    """How often one call of the operation comes by the same place in its code.

    It is a loop that makes a solver. Loops of a framework, of NumPy and of Python's own
    library don't count.
    """
    theirs = {*problem.framework.packages, *sys.stdlib_module_names, "numpy", _OURS}
    seen: Counter[Any] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        caller = frame.f_back if event == "call" else frame
        if caller is not None and event in ("call", "c_call"):
            name = caller.f_globals.get("__name__", "")
            if name == "__main__" or name.partition(".")[0] not in theirs:
                seen[caller.f_code, caller.f_lasti] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        problem.value(problem.xs)
    finally:
        sys.setprofile(before)
    return max(seen.values(), default=0)


_OURS = __name__.partition(".")[0]


def _with_symmetry(session: Session, problem: Problem) -> Problem:
    names = half_read(problem)
    for name in sorted(names):
        session.note(
            f"{name} is symmetric and one triangle of it is read, or both as one: it "
            "is perturbed in symmetric directions only"
        )
    return replace(problem, symmetric=names)


def _note_not_finite(session: Session, ys: Arrays) -> None:
    bad = sum(int(np.sum(~np.isfinite(y))) for y in ys)
    if bad:
        session.note(
            f"{bad} of {sum(y.size for y in ys)} elements of the outputs are not "
            "finite at the given inputs: there is no gradient to check there"
        )


def _same(ys: Arrays, others: Arrays) -> bool:
    pairs = zip(ys, others, strict=False)
    return len(ys) == len(others) and all(
        np.array_equal(a, b)
        or (a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=0, equal_nan=True))
        for a, b in pairs
    )


def _in_double_precision(session: Session, given: Problem, computed: str) -> Problem:
    double = given.in_dtype("float64")
    try:
        if double.dtypes != given.dtypes:
            _, computed = double.computed()
            if computed == "float64" and _is_coarse(double, session):
                computed = max(given.dtypes, key=EPS.__getitem__)
            _pull(double)
    except NotDifferentiableError:
        pass
    except Exception as error:
        session.note(
            f"it does not take float64 ({type(error).__name__}), so differences are "
            f"taken in {', '.join(sorted(set(given.dtypes)))}"
        )
        return replace(given, fixed_dtypes=True)
    if computed == "float64":
        return double
    session.note(f"it always computes in {computed}: so differences are taken in that")
    return replace(given.in_dtype(computed), fixed_dtypes=True)


def _is_coarse(double: Problem, session: Session) -> bool:
    """Whether fewer digits than those of float64 make a difference.

    A layer may cast to its own dtype inside, and back.
    """
    random = session.random("digits")
    xs = [x * random.uniform(0.99, 1.01, x.shape) for x in double.xs]
    y, little, more = (double.value([x * k for x in xs]) for k in (1, NEXT, FURTHER))
    pairs = list(zip(y, little, more, strict=True))
    moved = [b[a != c] != a[a != c] for a, b, c in pairs]
    every = np.concatenate([np.ravel(each) for each in moved] or [[]])
    return every.size > 0 and bool(np.mean(every) < FEW)


def _differentiable(session: Session, problem: Problem) -> Problem | None:
    """With those arguments frozen whose gradient is declared not to exist."""
    try:
        gradients = _pull(problem)
        misfits = [*_misfits(problem, gradients)]
        if misfits:
            with suppress(Exception):
                check_contract(session, problem, GIVEN)  # it says more
            for misfit in () if session.findings else misfits:
                session.found(misfit)
            return None
        check_connected(session, problem, gradients)
    except NotDifferentiableError:
        refused = dict(_refusals(problem))
        for argument, why in refused.items():
            session.note(f"{argument} is declared to have no gradient: {why}")
        problem = problem.freezing(refused)
        if not problem.perturbed:
            session.give_up("no argument has a gradient: there is nothing to check")
            return None
        return _differentiable(session, problem) if refused else problem
    except GradientContractError as error:
        check_contract(session, problem, GIVEN)  # it says more
        if not session.findings:
            session.found(Finding("contract", str(error), scenario=GIVEN))
        return None
    except Exception:
        with suppress(Exception):  # is it about what the rule returned?
            check_contract(session, problem, GIVEN)
        if session.findings:
            return None
        raise
    return problem


def _pull(problem: Problem) -> Gradients:
    with annotate(f"raised when {problem.info.name} was differentiated"):
        linear = problem.linearize(problem.xs)
        return linear.pull([np.ones_like(y) for y in linear.ys])


def _misfits(problem: Problem, gradients: Gradients) -> Iterator[Finding]:
    """Of a rule inside of a function; some frameworks take any shape."""
    rows = zip(problem.perturbed, problem.xs, gradients, strict=True)
    for name, x, g in rows:
        if g is not None and g.shape != x.shape:
            yield Finding(
                "shape",
                f"the gradient has the shape {g.shape}, and {name} {x.shape}",
                argument=name,
                scenario=GIVEN,
                repair=f"return a gradient with the shape of {name}",
            )


def _refusals(problem: Problem) -> Iterator[tuple[str, str]]:
    for name in problem.perturbed:
        alone = problem.freezing(set(problem.perturbed) - {name})
        try:
            _pull(alone)
        except NotDifferentiableError as error:
            words = str(error).partition("\n")[0]
            yield (
                name,
                re.sub(r"^operation .*?argument '.*?': |\. It was .*$", "", words),
            )
