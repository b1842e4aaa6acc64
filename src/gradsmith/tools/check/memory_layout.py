"""Does the gradient depend on how the arrays lie in memory? It must not.

Where arrays can be transposed, sliced and repeated without copying, a kernel or a
`view` that takes the elements in the order of memory reads the wrong ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .flat import EPS
from .model import Finding, Verdict
from .native import evaluate, native_inputs, reason
from .numerics import jittered, largest, random_signed
from .problem import Problem
from .session import Session

ROUNDINGS = 256.0  # sums are taken in another order


def check_memory_layout(session: Session, problem: Problem, scenario: str) -> None:
    """Arguments and upstream gradients in other layouts, same values."""
    layouts = problem.arrays.LAYOUTS
    if session.has_found("purity", "determinism") or not layouts:
        return
    if problem.is_random:
        return  # numbers are drawn in the order of memory
    gradients = LayoutComparison(session, problem, scenario)
    if gradients.g.size == 0:
        return
    for words, laid_out in layouts.items():
        # Layouts of the arguments first; then of the upstream gradient alone
        gradients.compare(f"{words} arguments", laid_out, None)
        gradients.compare(f"{words} upstream gradients", None, laid_out)
    gradients.compare_repeated(problem.arrays.repeated)
    if gradients.clean:
        session.record("layout", scenario, Verdict.RIGHT)


class LayoutComparison:
    """The gradient of contiguous arrays, against which others are gradients."""

    def __init__(self, session: Session, problem: Problem, scenario: str) -> None:
        rows = [np.array(x, order="C") for x in problem.xs]  # whatever was given
        self.problem = problem = problem.with_perturbed(rows)
        self.session, self.scenario = session, scenario
        self.clean = True
        self.base = evaluate(problem, native_inputs(problem))
        random = session.random(f"layouts {scenario}")
        self.dys = [random_signed(random, shape) for shape in self.base.shapes()]
        self.g = self.base.gradient(self.base.upstream(self.dys))
        self.rounding = ROUNDINGS * max(EPS.get(d, 2.0**-52) for d in problem.dtypes)

    def compare(self, words: str, of_arguments: Any, of_upstream: Any) -> None:
        """The gradient in a layout with that of contiguous arrays."""
        try:
            base = self.base
            if of_arguments is not None:
                xs = [of_arguments(x) for x in native_inputs(self.problem)]
                base = evaluate(self.problem, xs)
            dys = base.upstream(self.dys)
            if of_upstream is not None:
                dys = [of_upstream(dy) for dy in dys]
            self._judge(words, base.gradient(dys), self.g)
        except Exception as error:
            self._note(words, error)

    def compare_repeated(self, repeated: Any) -> None:
        """An upstream gradient of one number everywhere, as the sum's gradient is."""
        words = "broadcast upstream gradients"
        try:
            whole = [np.full(dy.shape, 1.25) for dy in self.dys]
            expected = self.base.gradient(self.base.upstream(whole))
            dys = [repeated(dy) for dy in self.base.upstream(whole)]
            self._judge(words, self.base.gradient(dys), expected)
        except Exception as error:
            self._note(words, error)

    def _judge(self, words: str, g: np.ndarray, expected: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            both = np.isfinite(expected)
            size = largest(self.g)
            gap = float(np.max(np.abs(g - expected), where=both, initial=0.0))
        if gap <= self.rounding * size or gap <= ROUNDINGS * self._noise():
            return
        if self.clean:
            self.session.found(self._finding(words, gap / (size or 1.0)))
        self.clean = False

    def _noise(self) -> float:
        """How much the gradient changes if the last digits of the arguments change."""
        eps = self.rounding / ROUNDINGS
        xs = jittered(np.random.default_rng(0), self.problem.xs, eps)
        found = self.problem.linearize(xs).pull(self.dys)
        return largest(self.base.arguments.vector(found) - self.g)

    def _finding(self, words: str, error: float) -> Finding:
        return Finding(
            "layout",
            f"for {words}, which are views of other arrays, the gradient differs from "
            "that for contiguous arrays of the same values",
            scenario=self.scenario,
            error=error,
            noise=self.rounding,
            repair="make them contiguous first, or use shape and strides, not the "
            "order in memory",
        )

    def _note(self, words: str, error: Exception) -> None:
        words = f"raises for {words}: {reason(error)}"
        self.session.limit(Finding("layout", words, refused=True))
