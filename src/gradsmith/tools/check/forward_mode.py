"""Forward mode against reverse: <u, jvp(v)> = <pull(u), v>, with no differences.

Two directions for each argument: one as large as the argument, and one in which each
element counts the same. The rounding is measured on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...operations.info import of_operation
from .flat import FlatProblem, Part, flatten, symmetrized
from .grade import digits, is_minor
from .model import Finding, Verdict
from .native import reason
from .numerics import jittered, norm, power_of_two, random_signed
from .problem import Problem
from .session import Session

FORWARD_MODE = "forward mode"
ROUNDINGS = 64.0
LOST = 4096.0  # units that one mode loses: 1000 in a logcumsumexp


def check_forward_mode(session: Session, problem: Problem, scenario: str) -> None:
    """Do the two modes agree? A mode that is refused is noted."""
    if not problem.info.linear:
        return
    modes = ModeComparison(flatten(problem), session.random(f"forward {scenario}"))
    if not (modes.x.size and modes.y.size and np.all(np.isfinite(modes.g))):
        return
    seen = 0.0
    for part in modes.flat.arguments.parts:
        for v in modes.directions(part):
            try:
                error, noise = modes.compare(v)
                wrong = error > noise and modes.is_wrong_again(v)
            except Exception as refused:
                words = f"refused: {reason(refused)}"
                session.limit(Finding(FORWARD_MODE, words, refused=True))
                return
            if wrong and not _has_rule(problem) and not np.any(modes.dy):
                words = "there is none, and the tangents are silently dropped"
                session.limit(Finding(FORWARD_MODE, words, refused=True))
                return
            if wrong and not np.isfinite(error) and not problem.info.own_forward:
                words = "the tangents are not finite, and the gradient is"
                session.limit(Finding(FORWARD_MODE, words, argument=part.name))
                return
            if wrong and not _is_by_rule(problem):
                words = "not by the rule: it follows what is inside, and differs"
                session.limit(
                    Finding(FORWARD_MODE, words, argument=part.name, error=error)
                )
                return
            if wrong and is_minor(
                error, session.problem.dtypes, session.solved_to(0.0)
            ):
                words = f"agrees with reverse mode to {digits(error)}"
                session.limit(
                    Finding(FORWARD_MODE, words, argument=part.name, error=error)
                )
                continue
            if wrong:
                session.found(_finding(part.name, error, noise, scenario))
                return
            seen = max(seen, noise)
    session.record(FORWARD_MODE, scenario, Verdict.RIGHT, seen)


def _has_rule(problem: Problem) -> bool:
    """Whether the operation has a rule for forward mode, or refuses it.

    Without either a framework may silently give no tangent.
    """
    info = problem.info
    return info.own_forward or not info.reverse


def _is_by_rule(problem: Problem) -> bool:
    """Whether it is somebody's rule that gives the tangents, not the framework."""
    framework = problem.framework
    if problem.info.own_forward or of_operation(problem.call) is not None:
        return True
    return not framework.has("natives") or framework.natives.forward_rules


class ModeComparison:
    """Both modes at a point; the gradient g is that for the upstream gradient u."""

    def __init__(self, f: FlatProblem, random: np.random.Generator) -> None:
        self.flat, self.random, self.x = f, random, f.x
        self.linearization = f.linearize(f.x)
        self.y = self.linearization.y
        self.u = random_signed(random, self.y.shape)
        self.g = self.linearization.pull(self.u)
        self.dy = np.zeros(self.y.size)  # the tangent along the last direction

    def directions(self, part: Part) -> Iterator[np.ndarray]:
        v = np.zeros(self.x.size)
        v[part.slice] = random_signed(self.random, (part.size,))
        if not part.size:
            return
        v = symmetrized(v, self.flat)
        yield v
        # A sum that happens to be small hides a factor.
        yield symmetrized(np.where(self.random.random(v.size) < 0.5, -v, v), self.flat)
        size = np.where(v != 0, np.abs(self.g), 0.0)
        some = size > 0
        if np.any(some) and np.min(size[some]) < 1e-2 * np.max(size):
            v = np.where(some, v / power_of_two(np.where(some, size, 1.0)), 0.0)
            yield symmetrized(v, self.flat)

    def compare(self, v: np.ndarray) -> tuple[float, float]:
        """By how much the two sides differ, and by how much they may; relative."""
        dy = self.dy = self.flat.jvp(self.x, v)
        one, two = self.u * dy, self.g * v
        size = norm(one) + norm(two) or 1.0
        gap = abs(float(np.sum(one) - np.sum(two)))
        rounding = LOST * self.flat.eps * size
        if gap > rounding:  # or not a number
            rounding = max(rounding, ROUNDINGS * self._noise(v, dy))
        if not np.isfinite(gap):
            return np.inf, 0.0
        return gap / size, rounding / size

    def _noise(self, v: np.ndarray, dy: np.ndarray) -> float:
        """How much the two sides change if the last digits of the arguments change.

        And the rule's side if the upstream gradient is a multiple, which is divided
        out: that shows what rounding loses on the way.
        """
        xs = jittered(self.random, self.flat.arguments.arrays(self.x), self.flat.eps)
        x = self.flat.arguments.vector(xs)
        with np.errstate(all="ignore"):
            moved = np.abs(self.u * (self.flat.jvp(x, v) - dy))
            other = np.abs((self.flat.linearize(x).pull(self.u) - self.g) * v)
            for k in (1.1, 1.3):
                lost = np.abs((self.linearization.pull(k * self.u) / k - self.g) * v)
                other = np.fmax(other, lost)
        return float(np.nansum(moved) + np.nansum(other))

    def is_wrong_again(self, v: np.ndarray) -> bool:
        """Whether it is wrong with a fresh upstream gradient and direction as well."""
        fresh = ModeComparison(self.flat, self.random)
        signs = self.random.choice([-1.0, 1.0], v.shape)
        error, noise = fresh.compare(v * signs)
        return error > noise


def _finding(name: str, error: float, noise: float, scenario: str) -> Finding:
    return Finding(
        FORWARD_MODE,
        "forward mode and reverse mode disagree: the tangent that the one gives is "
        "not what the gradient of the other says",
        argument=name,
        scenario=scenario,
        error=error,
        noise=noise,
        repair="compare the two rules; one of them may be another function's",
    )
