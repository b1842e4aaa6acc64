"""Does it matter how the arrays lie in memory? It may not.

Where arrays can be transposed, sliced and repeated without copying, a kernel or a
`view` that takes the elements as they lie reads the wrong ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .flat import EPS
from .model import Finding, Verdict
from .native import Native, evaluated, given, jittered, reason, signed
from .problem import Problem
from .session import Session

ROUNDINGS = 256.0  # sums are taken in another order


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Arguments and upstream gradients in other layouts, same values."""
    layouts = problem.arrays.LAYOUTS
    unsteady = session.has_found("purity", "determinism")
    if unsteady or not layouts:
        return
    probe = _Probe(session, problem, scenario)
    if probe.g.size == 0:
        return
    for words, laid_out in layouts.items():
        # Layouts of the arguments first; then of the upstream gradient alone
        probe.compare(f"{words} arguments", laid_out, None)
        probe.compare(f"{words} upstream gradients", None, laid_out)
    probe.compare_repeated(problem.arrays.repeated)
    if probe.clean:
        session.looked("layout", scenario, Verdict.RIGHT)


class _Probe:
    def __init__(self, session: Session, problem: Problem, scenario: str) -> None:
        self.session, self.problem, self.scenario = session, problem, scenario
        self.clean = True
        self.point: Native = evaluated(problem, given(problem))
        random = session.random(f"layouts {scenario}")
        self.dys = [signed(random, shape) for shape in self.point.shapes()]
        self.g = self._gradient(self.point, self.point.upstream(self.dys))
        self.rounding = ROUNDINGS * max(EPS.get(d, 2.0**-52) for d in problem.dtypes)

    def compare(self, words: str, of_arguments: Any, of_upstream: Any) -> None:
        """The gradient in a layout with that of contiguous arrays."""
        try:
            point = self.point
            if of_arguments is not None:
                xs = [of_arguments(x) for x in given(self.problem)]
                point = evaluated(self.problem, xs)
            dys = point.upstream(self.dys)
            if of_upstream is not None:
                dys = [of_upstream(dy) for dy in dys]
            self._judge(words, self._gradient(point, dys), self.g)
        except Exception as error:
            self._note(words, error)

    def compare_repeated(self, repeated: Any) -> None:
        """An upstream gradient of one number everywhere, as the sum's gradient is."""
        words = "broadcast upstream gradients"
        try:
            whole = [np.full(dy.shape, 1.25) for dy in self.dys]
            expected = self._gradient(self.point, self.point.upstream(whole))
            dys = [repeated(dy) for dy in self.point.upstream(whole)]
            self._judge(words, self._gradient(self.point, dys), expected)
        except Exception as error:
            self._note(words, error)

    def _gradient(self, point: Native, dys: list[Any]) -> np.ndarray:
        return point.vector(point.pull(dys))

    def _judge(self, words: str, g: np.ndarray, expected: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            both = np.isfinite(expected)
            size = float(np.max(np.abs(self.g), where=np.isfinite(self.g), initial=0.0))
            gap = float(np.max(np.abs(g - expected), where=both, initial=0.0))
        if gap <= self.rounding * size or gap <= ROUNDINGS * self._noise():
            return
        if self.clean:
            self.session.found(self._finding(words, gap / (size or 1.0)))
        self.clean = False

    def _noise(self) -> float:
        """How far the gradient moves if the arguments move by their last digits."""
        eps = self.rounding / ROUNDINGS
        xs = jittered(np.random.default_rng(0), self.problem.xs, eps)
        found = self.problem.linear(xs).pull(self.dys)
        gap = np.abs(self.point.arguments.vector(found) - self.g)
        return float(np.max(gap, where=np.isfinite(gap), initial=0.0))

    def _finding(self, words: str, error: float) -> Finding:
        return Finding(
            "layout",
            f"for {words}, which are views of other arrays, the gradient is another "
            "one than for contiguous ones of the same values",
            scenario=self.scenario,
            error=error,
            noise=self.rounding,
            repair="make them contiguous first, or go by shape and strides, not by "
            "the order in memory",
        )

    def _note(self, words: str, error: Exception) -> None:
        self.session.note(f"it raises for {words}: {reason(error)}")
