"""Does the operation leave its inputs unchanged, and give the same result twice?

The arrays are the framework's own: a rule is given the very memory of the upstream
gradient and of what was saved, and what it writes there is wrong for everyone else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core import trees
from .._inputs import RANDOM
from .model import Finding, Verdict
from .native import NativeEvaluation, evaluate, native_inputs, reason
from .numerics import random_signed
from .problem import Arrays, Problem, named_leaves
from .session import Session

SECOND_BACKWARD = "a second backward"
ELSEWHERE = "other users of that array get wrong numbers"


class RandomOperationError(Exception):
    """Another value each time: there is nothing that could be compared."""


def check_purity(session: Session, problem: Problem, scenario: str) -> None:
    """Purity and determinism. Raises `RandomOperationError` for a random operation."""
    random = session.random(f"purity {scenario}")
    xs, (others, held) = native_inputs(problem), _held(problem)
    first = evaluate(held, xs)
    names = (*problem.perturbed, *others)
    detector = ChangeDetector(session, scenario, names)
    xs = [*xs, *others.values()]
    after = first.numpy(xs)
    given = dict(named_leaves(problem.info, *problem.inputs))
    detector.note_changes(after, [given[name] for name in names])
    dys = [random_signed(random, shape) for shape in first.shapes()]
    upstream = first.upstream(dys)
    ys = first.numpy(first.ys)
    g = first.gradient(upstream)
    detector.compare("the rule", first.numpy(xs), after)
    detector.compare_all("the upstream gradient", first.numpy(upstream), dys)
    detector.compare_all("the operation's output", first.numpy(first.ys), ys)
    if detector.unchanged:
        session.record("purity", scenario, Verdict.RIGHT)
        _check_determinism(session, first, ys, dys, g, scenario)


def _held(problem: Problem) -> tuple[dict[str, Any], Problem]:
    """The arrays that are not perturbed, and the problem with these very arrays."""
    named = iter(named_leaves(problem.info, *problem.inputs))
    rows = [*zip(problem.names, problem.dtypes, strict=True)]
    others: dict[str, Any] = {}

    def leaf(x: Any) -> Any:
        name, _ = next(named)
        if not isinstance(x, np.ndarray) or name in problem.perturbed:
            return x
        others[name] = problem.arrays.array(x, dict(rows).get(name, str(x.dtype)))
        return others[name]

    with problem.precision():
        inputs = trees.map(leaf, problem.inputs)
    if any(isinstance(x, np.ndarray) for x in others.values()):
        return {}, problem  # the framework's own are NumPy's, which are read-only
    dtypes = tuple(dtype for name, dtype in rows if name in problem.perturbed)
    return others, replace(
        problem,
        inputs=inputs,
        names=problem.perturbed,
        dtypes=dtypes,
        frozen=frozenset(),
    )


class ChangeDetector:
    """Compares what an operation was given with what is there afterwards."""

    def __init__(self, session: Session, scenario: str, names: Sequence[str]) -> None:
        self.session, self.scenario, self.names = session, scenario, names
        self.unchanged, self.freed = True, dict[str, np.ndarray]()

    def note_changes(self, now: Arrays, before: Arrays) -> None:
        """What the operation itself changes is no matter of its gradient."""
        given = dict(zip(self.names, before, strict=True))
        self.freed = {name: given[name] for name in _changed(self.names, now, before)}
        for name in self.freed:
            words = f"the operation changes {_argument(name)} in place: {ELSEWHERE}"
            finding = Finding("purity", words, argument=name, scenario=self.scenario)
            self.session.limit(finding)

    def compare(self, who: str, now: Arrays, before: Arrays) -> None:
        """The rule may give back what the operation has freed, and nothing else."""
        arrays = dict(zip(self.names, now, strict=True))
        emptied = [n for n, x in zip(self.names, before, strict=True) if _is_gone(x)]
        for name in _changed(self.names, now, before):
            if name in emptied and name in self.freed:
                continue  # what is in new memory is nobody's yet
            given = self.freed.get(name)
            if given is None or not _same(
                arrays[name], given.astype(arrays[name].dtype)
            ):
                self._found(f"{who} changes {_argument(name)} in place", name)

    def compare_all(self, what: str, now: Arrays, before: Arrays) -> None:
        for _ in _changed(range(len(now)), now, before):
            self._found(f"the rule changes {what} in place")

    def _found(self, message: str, argument: str | None = None) -> None:
        if not self.unchanged:
            return  # the rest follows from it
        self.unchanged = False
        self.session.found(
            Finding(
                "purity",
                f"{message}: {ELSEWHERE}",
                argument=argument,
                scenario=self.scenario,
                repair="make a new array, or work on a copy",
            )
        )


def _is_gone(x: np.ndarray) -> bool:
    """Whether it was given back: a framework shows NaN then."""
    return x.size > 0 and x.dtype.kind in "fc" and bool(np.all(np.isnan(x)))


def _argument(name: str) -> str:
    """An argument in words: one without a name is called by its number."""
    return name if name.startswith("argument ") else f"its argument {name}"


def _changed(names: Sequence, now: Arrays, before: Arrays) -> Iterator:
    for name, x, old in zip(names, now, before, strict=True):
        if not np.array_equal(x, old.astype(x.dtype), equal_nan=True):
            yield name


# --- the same result twice


def _check_determinism(
    session: Session,
    first: NativeEvaluation,
    ys: Arrays,
    dys: Arrays,
    g: np.ndarray,
    scenario: str,
) -> None:
    """The same value and gradient for the same arguments."""
    second = evaluate(first.problem, native_inputs(first.problem))
    again = second.numpy(second.ys)
    if not all(map(_same, again, ys)):
        if not first.problem.is_random or _same(first.gradient(first.upstream(dys)), g):
            raise RandomOperationError(RANDOM)
        # The generators are rewound for the operation: it is the rule that draws more.
        session.found(
            Finding(
                "determinism",
                "the rule draws random numbers of its own: it gives another gradient "
                "each time, for the same outputs",
                scenario=scenario,
                repair="save what the operation has drawn, and use that",
            )
        )
        return
    fresh = second.gradient(second.upstream(dys))
    try:
        again = first.gradient(first.upstream(dys))
    except Exception as error:
        words = "the rule raises when it is called again for the same outputs: "
        words += reason(error)
        session.limit(Finding(SECOND_BACKWARD, words, scenario=scenario, refused=True))
        return
    if _same(again, g) and _same(fresh, g):
        session.record("determinism", scenario, Verdict.RIGHT)
        return
    if _same(fresh, g):
        words = (
            "the rule gives another gradient when it is called a second time for the "
        )
        words += "same outputs: it changes what was saved for it"
        session.limit(Finding(SECOND_BACKWARD, words, scenario=scenario))
        return
    session.found(
        Finding(
            "determinism",
            "the rule gives another gradient each time, for the same arguments and the "
            "same upstream gradient",
            scenario=scenario,
            repair="take random numbers from the arguments, or fix the seed",
        )
    )


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two results differ by rounding at most: by less than half the digits.

    A sum may be taken in another order each time, so it need not be the same bits.
    """
    if np.array_equal(a, b, equal_nan=True):
        return True
    if a.shape != b.shape or a.dtype.kind not in "fc":
        return False
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    a, b = np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0)
    digits = np.sqrt(np.finfo(a.dtype).eps)
    return bool(np.max(np.abs(a - b)) <= digits * np.max(np.abs(b)))
