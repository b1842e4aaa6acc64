"""Forward mode against reverse: <u, push(v)> = <pull(u), v>, with no differences.

Two directions for each argument: one as large as the argument, and one in which each
element counts the same. The rounding is measured on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .flat import Flat, Part, flat
from .model import Finding, Verdict
from .native import jittered, reason, signed
from .problem import Problem
from .scales import norm, power_of_two
from .session import Session
from .triangles import mirrored

WHAT = "forward mode"
ROUNDINGS = 64.0
LOST = 4096.0  # units that one mode loses: 1000 in a logcumsumexp


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Do the two modes agree? A mode that is refused is noted."""
    if not problem.info.linear:
        return
    probe = Probe(flat(problem), session.random(f"forward {scenario}"))
    if not (probe.x.size and probe.y.size and np.all(np.isfinite(probe.g))):
        return
    seen = 0.0
    for part in probe.flat.arguments.parts:
        for v in probe.directions(part):
            try:
                error, noise = probe.compare(v)
                wrong = error > noise and probe.is_wrong_again(v)
            except Exception as refused:
                session.note(f"no forward mode: {reason(refused)}")
                return
            if wrong and not _has_rule(problem) and not np.any(probe.dy):
                session.note("no forward mode: the tangents are lost, in silence")
                return
            if wrong:
                session.found(_finding(part.name, error, noise, scenario))
                return
            seen = max(seen, noise)
    session.looked(WHAT, scenario, Verdict.RIGHT, seen)


def _has_rule(problem: Problem) -> bool:
    """Whether the operation has something to say on forward mode itself.

    Without it a framework may give no tangent, in silence.
    """
    info = problem.info
    return info.own_forward or not info.reverse


class Probe:
    """The rule at one point, with an upstream gradient u and what it gives there."""

    def __init__(self, f: Flat, random: np.random.Generator) -> None:
        self.flat, self.random, self.x = f, random, f.x
        self.point = f.linear(f.x)
        self.y = self.point.y
        self.u = signed(random, self.y.shape)
        self.g = self.point.pull(self.u)
        self.dy = np.zeros(self.y.size)  # the tangent along the last direction

    def directions(self, part: Part) -> Iterator[np.ndarray]:
        v = np.zeros(self.x.size)
        v[part.slice] = signed(self.random, (part.size,))
        if not part.size:
            return
        v = mirrored(v, self.flat)
        yield v
        # A sum that happens to be small hides a factor.
        yield mirrored(np.where(self.random.random(v.size) < 0.5, -v, v), self.flat)
        size = np.where(v != 0, np.abs(self.g), 0.0)
        some = size > 0
        if np.any(some) and np.min(size[some]) < 1e-2 * np.max(size):
            v = np.where(some, v / power_of_two(np.where(some, size, 1.0)), 0.0)
            yield mirrored(v, self.flat)

    def compare(self, v: np.ndarray) -> tuple[float, float]:
        """By how much the two sides differ, and by how much they may; relative."""
        dy = self.dy = self.flat.push(self.x, v)
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
        """How much the two sides move if the arguments move by their last digits.

        And the rule's side if the upstream is a multiple, which is divided out: so one
        sees what is lost of it on the way.
        """
        xs = jittered(self.random, self.flat.arguments.arrays(self.x), self.flat.eps)
        x = self.flat.arguments.vector(xs)
        with np.errstate(all="ignore"):
            moved = np.abs(self.u * (self.flat.push(x, v) - dy))
            other = np.abs((self.flat.linear(x).pull(self.u) - self.g) * v)
            for k in (1.1, 1.3):
                lost = np.abs((self.point.pull(k * self.u) / k - self.g) * v)
                other = np.fmax(other, lost)
        return float(np.nansum(moved) + np.nansum(other))

    def is_wrong_again(self, v: np.ndarray) -> bool:
        """Whether it is wrong with a fresh upstream gradient and direction as well."""
        fresh = Probe(self.flat, self.random)
        signs = self.random.choice([-1.0, 1.0], v.shape)
        error, noise = fresh.compare(v * signs)
        return error > noise


def _finding(name: str, error: float, noise: float, scenario: str) -> Finding:
    return Finding(
        WHAT,
        "forward mode and reverse mode are not of one derivative: the tangent that "
        "the one gives is not what the gradient of the other says",
        argument=name,
        scenario=scenario,
        error=error,
        noise=noise,
        repair="compare the two rules; one of them may be another function's",
    )
