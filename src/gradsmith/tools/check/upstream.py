"""Is the rule linear in the upstream gradient? No differences are needed for that.

    pull(2^k u) = 2^k pull(u),   pull(-u) = -pull(u),   pull(0) = 0    to the last digit
    pull(u + w) = pull(u) + pull(w)                                    to rounding

The rounding is measured: how much pull(u) moves if u moves by its last digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .flat import EPS, Flat, Point, flat
from .model import Finding, Verdict
from .native import signed
from .nonlinear import Nonlinear, recognised
from .problem import Problem
from .rounding import precision_of
from .session import Session

WHAT = "linearity"
SCALE = 2.0**10
ROUNDINGS = 32.0
SHRUNK = 1e-6  # a small upstream may lose digits where products of it underflow
GROWN = 2.0**-33  # and a large one another way to compute (matrix_exp: 1e-12)


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Linear, unless declared not to be."""
    if not problem.info.linear:
        session.note("the rule is declared not to be linear in the upstream gradient")
        return
    if session.has_found("purity", "determinism"):
        return  # it would follow from that
    probe = Probe(flat(problem), session.random(f"upstream {scenario}"))
    if not (probe.y.size and probe.g.size):
        return
    broken = probe.broken()
    if broken is not None and (again := probe.fresh().broken()) is not None:
        session.found(_finding(again, recognised(probe), scenario))
        return
    session.looked(WHAT, scenario, Verdict.RIGHT, ROUNDINGS * probe.flat.eps)


@dataclass(frozen=True)
class Broken:
    """How linearity fails: in words, and by how much."""

    words: str
    error: float
    noise: float


class Probe:
    """The rule at one point, with an upstream gradient u and what it gives there."""

    def __init__(
        self, f: Flat, random: np.random.Generator, point: Point | None = None
    ) -> None:
        self.flat, self.random = f, random
        self.point = f.linear(f.x) if point is None else point
        self.y = self.point.y
        self.u = self.upstream()
        self.g = self.pull(self.u)
        self.noise = self._noise()

    def fresh(self) -> Probe:
        return Probe(self.flat, self.random, self.point)

    def upstream(self) -> np.ndarray:
        return signed(self.random, self.y.shape)

    def pull(self, u: np.ndarray) -> np.ndarray:
        return self.point.pull(u)

    def _noise(self) -> float:
        eps = self.flat.eps
        moved = self.pull(self.u * (1 + 2 * eps * np.sign(self.upstream())))
        # What a rule adds up and takes away again is rounded in another way at another
        # scale. So near to 1 a rule that is not linear changes little.
        k = 1 + eps**0.5
        scaled = self.pull(k * self.u) / k
        errors = (_largest(each - self.g) for each in (moved, scaled))
        return max(*errors, eps * _largest(self.g))

    def same(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether two gradients are the same but for rounding."""
        size = max(_largest(a), _largest(b), _largest(self.g))
        return _largest(a - b) <= ROUNDINGS * max(self.noise, self.flat.eps * size)

    def broken(self) -> Broken | None:
        """The first law that doesn't hold, where the gradient is finite."""
        g, size = self.g, _largest(self.g)
        zero = self.pull(np.zeros(self.y.size))
        with np.errstate(all="ignore"):
            if np.any(np.isnan(zero) & np.isfinite(g)):
                return Broken("an upstream gradient of zero gives NaN", np.inf, 0.0)
            law = "an upstream gradient of zero gives a gradient that is not zero"
            if _largest(zero) > ROUNDINGS * self.noise:
                return Broken(law, _largest(zero) / (size or 1.0), self._relative(size))
            for k, words in ((-SCALE, "-1024 times"), (1 / SCALE, "1/1024 of")):
                error = _largest(self.pull(k * self.u) / k - g)
                rounding = ROUNDINGS * self.noise + (SHRUNK if k > 0 else GROWN) * size
                if error > rounding and not self._is_coarse(error, size):
                    law = (
                        f"{words} an upstream gradient doesn't give {words} the "
                        "gradient"
                    )
                    return Broken(law, error / (size or 1.0), rounding / (size or 1.0))
            return self._not_additive(size)

    def _not_additive(self, size: float) -> Broken | None:
        w = self.upstream()
        g = self.pull(w)
        error = _largest(self.pull(self.u + w) - (self.g + g))
        rounding = 2 * ROUNDINGS * max(self.noise, self.flat.eps * _largest(g))
        if error <= rounding or self._is_coarse(error, size):
            return None
        law = "the gradient for a sum of upstream gradients is not the sum of theirs"
        return Broken(law, error / (size or 1.0), rounding / (size or 1.0))

    def _is_coarse(self, error: float, size: float) -> bool:
        """Whether the rule computes in a lower precision, which is another matter."""
        dtype = precision_of(self.pull(self.random.uniform(-1, 1, self.y.shape)))
        return dtype is not None and error <= ROUNDINGS * EPS[dtype] * size

    def _relative(self, size: float) -> float:
        return ROUNDINGS * self.noise / (size or 1.0)


def _largest(x: np.ndarray) -> float:
    """The largest of the finite elements: an overflow is another look's matter."""
    x = np.abs(x)
    return float(np.max(x, where=np.isfinite(x), initial=0.0))


def _finding(broken: Broken, cause: Nonlinear | None, scenario: str) -> Finding:
    message = f"the rule is not linear in the upstream gradient: {broken.words}"
    repair = (
        "a gradient is linear in dy; if this is on purpose, declare it: "
        "gs.custom_gradient(linear=False)"
    )
    if cause is not None:
        message = f"{message}\n{cause.words}"
        repair = cause.repair
    return Finding(
        WHAT,
        message,
        scenario=scenario,
        error=broken.error,
        noise=broken.noise,
        diagnosis=cause.name if cause else None,
        repair=repair,
    )
