"""Is the rule linear in the upstream gradient? No differences are needed for that.

    pull(2^k u) = 2^k pull(u),   pull(-u) = -pull(u),   pull(0) = 0    to the last digit
    pull(u + w) = pull(u) + pull(w)                                    to rounding

The rounding is measured: how much pull(u) changes if the last digits of u change.

A usual mistake (clipping, ignoring dy, ...) is named, after it was verified with fresh
upstream gradients: the rule gives for u what it gives for clip(u), say, and the bound
of the clipping is the smallest for which that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...operations.info import OperationInfo
from .diagnosis.model import Diagnosis
from .flat import EPS, FlatLinearization, FlatProblem, flatten
from .grade import CLIPPED, NORMALIZED, RECTIFIED, SOLVED, declaration, digits
from .model import Finding, Verdict
from .normalized import is_derivative_but_for_length
from .numerics import largest, precision_of, random_signed
from .point import Point
from .problem import Problem
from .session import Session

LINEARITY = "linearity"
SCALE = 2.0**10
ROUNDINGS = 32.0
SHRUNK = 1e-6  # a small upstream may lose digits where products of it underflow
GROWN = 2.0**-33  # and a large one another way to compute (matrix_exp: 1e-12)
LARGE, SMALL = 2.0**20, 2.0**-20
ALIKE = 0.01


def check_linearity(session: Session, problem: Problem, scenario: str) -> None:
    """Whether the rule is linear in dy, unless it is declared not to be."""
    if not problem.info.linear:
        session.note("the rule is declared not to be linear in the upstream gradient")
        return
    if session.has_found("purity", "determinism"):
        return  # it would follow from that
    rule = RuleAtPoint(flatten(problem), session.random(f"upstream {scenario}"))
    if not (rule.y.size and rule.g.size):
        return
    broken = rule.broken()
    if broken is not None and (again := rule.fresh().broken()) is not None:
        cause = _compared(rule, _recognized(rule))
        finding = _finding(again, cause, scenario, problem.info)
        if again.error < max(SOLVED, session.solved_to(_resolution(rule))):
            words = f"linear in dy to {digits(again.error)}: enough for a solver"
            session.limit(replace(finding, message=words, diagnosis=None, repair=None))
            session.solves = True
        else:
            session.found(finding)
            session.unclipped = cause and cause.unclipped
        return
    session.record(LINEARITY, scenario, Verdict.RIGHT, ROUNDINGS * rule.flat.eps)


@dataclass(frozen=True)
class Broken:
    """How linearity fails, in words, and by how much."""

    words: str
    error: float
    noise: float


class RuleAtPoint:
    """The rule at a point, with an upstream gradient u and the gradient g for it."""

    def __init__(
        self,
        f: FlatProblem,
        random: np.random.Generator,
        linearization: FlatLinearization | None = None,
    ) -> None:
        self.flat, self.random = f, random
        self.linearization = linearization or f.linearize(f.x)
        self.y = self.linearization.y
        self.u = self.upstream()
        self.g = self.pull(self.u)
        self.noise = self._noise()

    def fresh(self) -> RuleAtPoint:
        return RuleAtPoint(self.flat, self.random, self.linearization)

    def upstream(self) -> np.ndarray:
        return random_signed(self.random, self.y.shape)

    def pull(self, u: np.ndarray) -> np.ndarray:
        return self.linearization.pull(u)

    def _noise(self) -> float:
        eps = self.flat.eps
        moved = self.pull(self.u * (1 + 2 * eps * np.sign(self.upstream())))
        # At another scale, terms that cancel in a rule are rounded differently. So near
        # to 1 a rule that is not linear changes little.
        k = 1 + eps**0.5
        scaled = self.pull(k * self.u) / k
        errors = (largest(each - self.g) for each in (moved, scaled))
        return max(*errors, eps * largest(self.g))

    def same(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether two gradients are the same but for rounding."""
        size = max(largest(a), largest(b), largest(self.g))
        return largest(a - b) <= ROUNDINGS * max(self.noise, self.flat.eps * size)

    def alike(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether two gradients are about the same."""
        return largest(a - b) <= ALIKE * largest(b)

    def near(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Which elements of two gradients are the same but for rounding."""
        return np.abs(a - b) <= ROUNDINGS * self.flat.eps * np.abs(b)

    def broken(self) -> Broken | None:
        """The first law that doesn't hold, where the gradient is finite."""
        g, size = self.g, largest(self.g)
        zero = self.pull(np.zeros(self.y.size))
        with np.errstate(all="ignore"):
            if np.any(np.isnan(zero) & np.isfinite(g)):
                return Broken("an upstream gradient of zero gives NaN", np.inf, 0.0)
            law = "an upstream gradient of zero gives a gradient that is not zero"
            if largest(zero) > ROUNDINGS * self.noise:
                return Broken(law, largest(zero) / (size or 1.0), self._relative(size))
            for k, words in ((-SCALE, "-1024 times"), (1 / SCALE, "1/1024 of")):
                error = largest(self.pull(k * self.u) / k - g)
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
        error = largest(self.pull(self.u + w) - (self.g + g))
        rounding = 2 * ROUNDINGS * max(self.noise, self.flat.eps * largest(g))
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


def _resolution(rule: RuleAtPoint) -> float:
    """What differences of the value resolve."""
    found = Point(rule.flat, rule.random).comparisons()
    return max((each.resolution for each in found if each.says_something), default=0.0)


def _finding(
    broken: Broken, cause: Diagnosis | None, scenario: str, info: OperationInfo
) -> Finding:
    message = f"the rule is not linear in the upstream gradient: {broken.words}"
    repair = (
        "a gradient is linear in dy; if this is on purpose, declare it: "
        f"{declaration(info, linear=False)}"
    )
    if cause is not None:
        message = f"{message}\n{cause.message}"
        repair = cause.repair
    return Finding(
        LINEARITY,
        message,
        scenario=scenario,
        error=broken.error,
        noise=broken.noise,
        diagnosis=cause.name if cause else None,
        repair=repair,
    )


def _compared(rule: RuleAtPoint, cause: Diagnosis | None) -> Diagnosis | None:
    """The same, if the rest of a rule that bounds its gradients can be judged later.

    Otherwise it is now, by all but the length; a wrong one is no surrogate.
    """
    if cause is None or cause.name not in (CLIPPED, NORMALIZED) or cause.unclipped:
        return cause
    if is_derivative_but_for_length(rule.flat, rule.random):
        return cause
    words = "; what is left of it is not the derivative, whatever its length"
    return replace(cause, name="not the derivative", message=cause.message + words)


# --- recognized mistakes


def _recognized(rule: RuleAtPoint) -> Diagnosis | None:
    """What the rule does to the upstream gradient, if it is a usual mistake."""
    mistakes = (
        _ignored,
        _absolute,
        _clipped,
        _rectified_result,
        _clipped_by_norm,
        _masked,
    )
    return next(filter(None, (mistake(rule) for mistake in mistakes)), None)


def _holds(rule: RuleAtPoint, change: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether the rule gives the same for u and change(u), for several u.

    One of them has rows of very different lengths.
    """
    lengths = LARGE ** np.linspace(-1, 1, rule.y.size)
    us = [factor * rule.upstream() for factor in (1.0, LARGE, lengths)]
    return all(rule.same(rule.pull(u), rule.pull(change(u))) for u in us)


def _ignored(rule: RuleAtPoint) -> Diagnosis | None:
    others = (lambda u: rule.upstream(), lambda u: -0.375 * u)
    if not (np.any(rule.g) and all(_holds(rule, other) for other in others)):
        return None
    return Diagnosis(
        "upstream ignored",
        "the gradient is the same whatever the upstream gradient is",
        "multiply by dy",
    )


def _absolute(rule: RuleAtPoint) -> Diagnosis | None:
    if not _holds(rule, np.negative):
        return None
    return Diagnosis(
        "absolute upstream",
        "the sign of the upstream gradient is not used: abs(dy) gives the same",
        "use dy, with its sign",
    )


def _clipped(rule: RuleAtPoint) -> Diagnosis | None:
    """Each element is clipped between two bounds, or at one."""
    up = np.abs(rule.upstream())
    high, low = _bound(rule, up), _bound(rule, -up)
    if high is None and low is None:
        return None
    bottom = -np.inf if low is None else 0.0 - low
    top = np.inf if high is None else high
    if not _holds(rule, lambda u: np.clip(u, bottom, top)):
        return None
    if max(-bottom, top) < SMALL:
        words = "only the signs of the upstream gradient are used, not its magnitudes"
        return Diagnosis("upstream's sign only", words, "use dy as it is")
    one_sided = not bottom < 0 < top
    if not one_sided and _rectified_result(rule):
        return None
    # Where it is what comes out that is clipped, less comes in for some elements
    most = _linear_below(rule, one_sided=one_sided)
    unclipped = None if most is None else partial(_below, most, one_sided)
    words = _range(rule, bottom, top)
    if not one_sided:
        words = f"the upstream gradient is {words}"
        return Diagnosis(CLIPPED, words, _DECLARE, unclipped=unclipped)
    which = "negative" if bottom == 0 else "positive"
    more = "" if np.isinf(max(-bottom, top)) else f", and the others {words}"
    words = f"{which} elements of the upstream gradient are treated as zero{more}"
    return Diagnosis(RECTIFIED, words, _EITHER_SIGN, unclipped=unclipped)


_EITHER_SIGN = "use dy as it is, of either sign; if that is on purpose, declare it"


def _rectified_result(rule: RuleAtPoint) -> Diagnosis | None:
    """It is what comes out that has one sign, whichever upstream gradient it needs."""
    some = SMALL * rule.u
    both = np.array([rule.pull(some), rule.pull(-some)])
    side = np.sign(np.sum(both))
    most = _linear_below(rule, one_sided=True)
    if most is None or np.any(side * both < 0) or np.any(np.all(both != 0, axis=0)):
        return None
    which = "negative" if side > 0 else "positive"
    words = f"{which} elements of the gradient are treated as zero"
    if rule.same(rule.pull(LARGE * rule.u), rule.pull(2 * LARGE * rule.u)):
        words += ", and the others are clipped"
    return Diagnosis(
        RECTIFIED, words, _EITHER_SIGN, unclipped=partial(_below, most, True)
    )


def _range(rule: RuleAtPoint, bottom: float, top: float) -> str:
    """What happens to the elements, in words: the bounds are those of the widest."""
    ends = [end for end in (bottom, top) if 0 < abs(end) < np.inf]
    for end in ends:
        u = np.full(rule.y.size, end * (1 - 1e-6))
        if not rule.same(rule.pull(u), 2 * rule.pull(u / 2)):
            most = _digits(max(map(abs, ends)))
            return f"clipped, each element at bounds of its own: {most} at most"
    if len(ends) == 1:
        return f"cut {'above' if ends == [top] else 'below'} at {_digits(ends[0])}"
    return f"clipped to {_digits(bottom)} ... {_digits(top)}"


def _below(
    most: float, one_sided: bool, u: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """u by so small ones that none is clipped; of one side what -u gives is the rest.

    max(u, 0) - max(-u, 0) = u, and so for what comes out.
    """
    scale = min(1.0, most / (largest(u) or 1.0))
    pieces = [(1 / scale, scale * u)]
    return [*pieces, (-1 / scale, -scale * u)] if one_sided else pieces


_DECLARE = "use dy as it is; to clip gradients on purpose, declare it"


def _bound(rule: RuleAtPoint, u: np.ndarray) -> float | None:
    """The magnitude beyond which the elements of u make no difference."""
    v = LARGE * u
    g = rule.pull(v)
    return _least(rule, g, lambda c: np.clip(v, -c, c), largest(v))


def _clipped_by_norm(rule: RuleAtPoint) -> Diagnosis | None:
    """All of it, or each row, is scaled, or bounded in a way without plainer words."""
    v = LARGE * rule.random.choice([-1.0, 1.0], rule.y.size)  # of all norms the same
    if not rule.same(rule.pull(v), rule.pull(v / 2)):
        return None
    size = _linear_below(rule)
    if size is None:
        like = all(rule.alike(rule.pull(k * rule.u), rule.g) for k in (1 / 16, 16.0))
        words = "the gradient is normalized: all" if like else "it is bounded: large"
        words += " multiples of an upstream gradient give the same gradient"
        return Diagnosis(NORMALIZED, words, _DECLARE)
    words = next(filter(None, (_scaled(rule, v, rows) for rows in _rows(rule))), None)
    words = f"the upstream gradient is {words or 'clipped'}"
    return Diagnosis(CLIPPED, words, _DECLARE, unclipped=partial(_below, size, False))


Rows = Callable[[np.ndarray], np.ndarray]


def _rows(rule: RuleAtPoint) -> Iterator[tuple[str, Rows]]:
    """What may have a norm: all of dy, or its rows, and their words."""
    yield "", lambda u: u[None]
    first, *others = rule.linearization.outputs.parts
    shape = first.shape
    if others or len(shape) < 2 or first.is_complex:
        return
    for axis in (-1, 0):
        rows = lambda u, axis=axis: np.moveaxis(u.reshape(shape), axis, -1)
        yield f", along axis {axis % len(shape)}", rows


def _scaled(rule: RuleAtPoint, v: np.ndarray, rows: tuple[str, Rows]) -> str | None:
    """Words for what is scaled to a norm, if it is that."""
    where, rows_of = rows
    norms = lambda u: np.sqrt(np.sum(rows_of(u) ** 2, axis=-1, keepdims=True))
    norm = float(np.max(norms(v)))
    bound = _least(rule, rule.pull(v), lambda c: v * (c / norm), norm)
    if not bound:
        return None

    def shortened(u: np.ndarray) -> np.ndarray:
        u = u.copy()
        most = bound * (1 + 1e-6)  # which the rule itself shortens to the bound
        with np.errstate(all="ignore"):
            rows_of(u)[...] *= np.fmin(1.0, most / norms(u))
        return u

    words = f"scaled to a norm of at most {_digits(bound)}{where}"
    return words if _holds(rule, shortened) else None


def _linear_below(rule: RuleAtPoint, *, one_sided: bool = False) -> float | None:
    """The size of upstream gradients that a rule treats alike, and all smaller ones.

    Of one that takes one sign only, with what it gives for the opposite ones.
    """
    u = rule.upstream()

    def pull(k: float) -> np.ndarray:
        opposite = rule.pull(-k * u) if one_sided else 0.0
        return (rule.pull(k * u) - opposite) / k

    for scale in 16.0 ** -np.arange(1, 9):
        if rule.same(pull(scale), pull(scale / 16)):
            return float(scale)
    return None


def _masked(rule: RuleAtPoint) -> Diagnosis | None:
    """Each element is the upstream gradient's or zero, which depends on its sign."""
    parts = rule.flat.arguments.parts
    passed = [part for part in parts if np.any(rule.g[part.slice])]
    if [part.size for part in passed] != [rule.y.size]:
        return None  # beside others that have no gradient, such as bounds
    x, y = rule.flat.x[passed[0].slice], rule.y
    if not np.array_equal(y, np.clip(x, np.min(y), np.max(y))):
        return None  # of another value dy is not the derivative
    for u in (rule.u, -rule.u, rule.upstream(), LARGE * rule.upstream()):
        g = rule.pull(u)[passed[0].slice]
        if not np.all((g == 0) | rule.near(g, u)):
            return None
    return Diagnosis(
        "masked upstream",
        "the upstream gradient is passed through, or zero, by its sign",
        _DECLARE,
    )


def _least(
    rule: RuleAtPoint,
    g: np.ndarray,
    cut: Callable[[float], np.ndarray],
    top: float,
) -> float | None:
    """The least c for which cut(c) still gives g; None if nothing is cut."""
    if not rule.same(rule.pull(cut(top / 2)), g):
        return None
    if rule.same(rule.pull(cut(0.0)), g):
        return 0.0
    low, high = SMALL * SMALL, top / 2
    while high > low * (1 + 1e-9):
        middle = float(np.sqrt(low * high))
        if rule.same(rule.pull(cut(middle)), g):
            high = middle
        else:
            low = middle
    return high


def _digits(x: float) -> str:
    return f"{x:.4g}"
