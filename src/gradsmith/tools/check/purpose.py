"""Is a gradient that is not the derivative meant to be what it is?

Six kinds have no mistake that could be named:

- A sample that was drawn with rejection. Its value jumps where another number is
  accepted, so that the derivative of one draw says little; implicit gradients are right
  on average over the draws.
- A value that is an approximation, such as a series or a quadrature with few nodes,
  with the rule of what it approximates. Both agree where it converges, and the error
  grows smoothly from there.
- What the author says to be another gradient, where the rule is written.
- One that depends on an argument that the value does not depend on.
- That of a step s in s * round(x / s), where rounding counts as the identity: it is
  right where x and s are scaled alike, since nothing is rounded differently then.
- That of a function that stops gradients, and is right once they are let through.
"""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...operations.info import OperationInfo
from .comparison import Comparison
from .diagnosis.case import Case
from .diagnosis.simple import changes_in_jumps
from .flat import Part, flatten
from .numerics import random_signed
from .point import MANY, Point
from .problem import Arrays, Problem

DRAWS, ELEMENTS = 2**16, 8 * 10**5
FEW = 64  # show whether anything is drawn; a solver may take the square of their number
STEP = 1 / 8
LEAST = 256  # draws, that show a pattern if there is one
LOUD = 4.0  # times what the loudest of so many frequencies has by chance
SIGMAS = 4.0
BIAS = 0.02  # of differences with so long a step
TRIALS = 3
SAME = 1e-6  # factors differ by less
LENGTH = 2.0**-10  # of a difference, of the argument
CLOSE, COARSE = 1e-4, 1e-2  # to which two differences agree, in double precision or not

SCALES = 2.0 ** (np.arange(8, -24, -1) / 8)
CLEAR = 16.0  # times what would be seen
DECADES = 4  # in which there are errors
JUMP = 4.5  # decades without any: the error of a region comes and goes at once

_WORDS = re.compile(
    r"straight.?through|(?-i:\bSTE\b)|surrogate|pseudo.?gradient|natural gradient"
    r"|biased gradient|relevance propagation"
    r"|gradient (?:reversal|scaling|clipping|approximation)"
    r"|gradients? (?:to )?(?:flows?|pass(?:es)?) through (?:unchanged|without)"
    r"|(?:approximate|smoothed|reversed?|scaled?) gradient",
    re.IGNORECASE,
)


_STOPS = ("stop_gradient", "detach", "no_grad")


def stated(info: OperationInfo) -> str | None:
    """What the code of an operation calls its gradient, if that is no derivative."""
    for part in (info.rule, _owner(info.call), info.body):
        try:
            text = inspect.getsource(inspect.unwrap(part))  # type: ignore[arg-type]
        except (TypeError, OSError, ValueError):
            continue
        if words := _WORDS.search(text):
            return words.group()
    return None


def stopped(problem: Problem, random: np.random.Generator) -> str | None:
    """How a function stops gradients, if nothing else keeps its gradient from agreeing.

    That is tried: with its gradients let through, it has to be the derivative.
    """
    info, inner = problem.info, problem.call
    how = None if info.rule is not None else _stop_in(info.call)
    if how is None:
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        with problem.calculus.unstopped():
            return inner(*args, **kwargs)

    whole = replace(problem, call=call)
    try:
        agrees = all(_is_derivative(whole, random) for _ in range(TRIALS))
    except Exception:  # it leaves the framework, say
        agrees = False
    return how if agrees else None


def _is_derivative(problem: Problem, random: np.random.Generator) -> bool:
    """Whether the gradient agrees with differences in a direction."""
    wide = problem.in_dtype("float64")
    try:
        xs, found = wide.xs, wide.linearize(wide.xs)
        problem, close = wide, CLOSE
    except Exception:  # it takes the one dtype only
        xs, found, close = problem.xs, problem.linearize(problem.xs), COARSE
    us = [random_signed(random, y.shape) for y in found.ys]
    vs = [np.where(x == 0, 1.0, x) * random_signed(random, x.shape) for x in xs]
    gradients = [
        np.zeros_like(x) if g is None else g
        for x, g in zip(xs, found.pull(us), strict=True)
    ]
    terms = [np.conj(g) * v for g, v in zip(gradients, vs, strict=True)]

    def slope(h: float) -> float:
        up, down = (
            problem.value([x + s * h * v for x, v in zip(xs, vs, strict=True)])
            for s in (1, -1)
        )
        pairs = zip(us, up, down, strict=True)
        return sum(float(np.sum(u * (a - b))) for u, a, b in pairs) / (2 * h)

    by_differences = (4 * slope(LENGTH / 2) - slope(LENGTH)) / 3
    rule = sum(float(np.sum(np.real(each))) for each in terms)
    size = sum(float(np.sum(np.abs(each))) for each in terms)
    return abs(rule - by_differences) <= close * size


def _stop_in(fn: object) -> str | None:
    """What the code of a function calls to stop gradients."""
    try:
        lines = inspect.getsource(inspect.unwrap(fn))  # type: ignore[arg-type]
    except (TypeError, OSError, ValueError):
        return None
    tokens = tokenize.generate_tokens(io.StringIO(lines).readline)
    with suppress(tokenize.TokenError, IndentationError):  # a part of a statement
        for token in tokens:
            if token.type == tokenize.NAME and token.string in _STOPS:
                return token.string
    return None


def given_for_rule(
    problem: Problem, names: list[str], random: np.random.Generator
) -> str | None:
    """An argument that changes the gradients by others, and never the value."""
    for other in problem.names:
        if other in names:
            continue
        moved = problem.with_one(other, lambda x: x * random.uniform(0.5, 1.5, x.shape))
        try:
            here, there = (each.linearize(each.xs) for each in (problem, moved))
            if not all(map(np.array_equal, here.ys, there.ys)):
                continue
            us = [random_signed(random, y.shape) for y in here.ys]
            one, two = here.pull(us), there.pull(us)
        except Exception:
            continue
        one, two = map(np.asarray, one), map(np.asarray, two)  # None of no gradient
        rows = zip(problem.perturbed, one, two, strict=True)
        if any(name in names and not np.array_equal(g, h) for name, g, h in rows):
            return other
    return None


def steps_along(point: Point, part: Part) -> tuple[str, float] | None:
    """An argument in which the value has steps of the size that `part` says.

    And how many times too large the gradient of that size is.
    """
    for other in point.flat.arguments.parts:
        if other == part:
            continue
        chosen = np.zeros(point.x.size, bool)
        chosen[other.slice] = True
        alone = [*point.along(other, chosen)]
        if not any(each.is_wrong and each.low == each.high == 0 for each in alone):
            continue
        if not changes_in_jumps(Case(point, other, point.random)):
            continue  # as along the bounds of a clamp that are not reached
        found = [each for _ in range(TRIALS) for each in point.scaled(part, other)]
        factors = [_factor(each, part, other) for each in found if each.says_something]
        if factors and np.ptp(factors) <= SAME * abs(factors[0]):
            return other.name, factors[0]
    return None


def _factor(compared: Comparison, part: Part, other: Part) -> float:
    """By how much the terms of one argument are too large beside those of another."""
    slope = (compared.low + compared.high) / 2 - np.sum(compared.terms[other.slice])
    with np.errstate(all="ignore"):
        return float(np.sum(compared.terms[part.slice]) / slope)


def _owner(call: object) -> object:
    """The class of a bound method, such as that of `Function.apply`."""
    return getattr(call, "__self__", call)


def is_right_on_average(
    problem: Problem, names: list[str], random: np.random.Generator
) -> bool:
    """Whether the rule agrees with differences on average over many draws.

    The draws are those of a new first axis, along which all arguments are the same.
    """
    try:
        return all(_agrees(problem, names, random) for _ in range(TRIALS))
    except Exception:  # it takes no such axis
        return False


def _agrees(problem: Problem, names: list[str], random: np.random.Generator) -> bool:
    """Whether the mean of a bounded function of the draws has the rule's gradient.

    The draws themselves may have no mean.
    """
    xs, ys = problem.xs, problem.value(problem.xs)
    few = [np.repeat(x[None], FEW, axis=0) for x in xs]
    drawn = problem.with_perturbed(few).value(few)
    pairs = zip(drawn, ys, strict=True)
    if any(y.shape != (FEW, *one.shape) for y, one in pairs):
        return False
    if all(np.allclose(y, y[:1], rtol=SAME, atol=0) for y in drawn):
        return False  # nothing is drawn: more elements may be rounded differently
    elements = sum(each.size for each in (*xs, *ys))
    if elements >= MANY:
        return False
    n = min(DRAWS, max(LEAST, ELEMENTS // elements))
    bumps = [_Bump(y, random) for y in drawn]
    many = [np.repeat(x[None], n, axis=0) for x in xs]
    found = problem.with_perturbed(many).linearize(many)
    pairs = zip(bumps, found.ys, strict=True)
    gradients = found.pull([each.slope(y) for each, y in pairs])
    # The direction in which it is largest, so that little of it is noise
    vs = [
        np.zeros_like(x)
        if g is None or name not in names
        else np.abs(x) * np.sign(np.mean(g, axis=0))
        for name, x, g in zip(problem.perturbed, xs, gradients, strict=True)
    ]
    pairs = zip(gradients, vs, strict=True)
    rule = _sums([g * v for g, v in pairs if g is not None])

    def total(side: float) -> np.ndarray:
        moved = [x + side * v for x, v in zip(many, vs, strict=True)]
        pairs = zip(bumps, problem.with_perturbed(moved).value(moved), strict=True)
        return _sums([each(y) for each, y in pairs])

    gap = rule - (total(STEP) - total(-STEP)) / (2 * STEP)
    if _has_pattern(gap):
        return False
    off, size = np.mean(np.abs(gap)), np.mean(np.abs(rule))
    # Of a rule with another factor all draws are off by what the mean is.
    rounding = SIGMAS * np.std(gap) / np.sqrt(n) + BIAS * min(off, size)
    return bool(abs(np.mean(gap)) <= rounding <= abs(np.mean(rule)) / 3)


class _Bump:
    """c / (1 + ((y - a) / b)^2) of each output, about one of its draws."""

    def __init__(self, drawn: np.ndarray, random: np.random.Generator) -> None:
        self.a = random.permuted(drawn, axis=0)[0]
        spread = np.subtract(*np.quantile(drawn, (0.9, 0.1), axis=0))
        self.b = np.where(spread > 0, spread, 1.0)
        self.c = random_signed(random, spread.shape)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return self.c / (1 + ((y - self.a) / self.b) ** 2)

    def slope(self, y: np.ndarray) -> np.ndarray:
        t = (y - self.a) / self.b
        return -2 * self.c * t / (self.b * (1 + t * t) ** 2)


def _has_pattern(gap: np.ndarray) -> bool:
    """Whether what differs from draw to draw is one of their places.

    Of independent numbers no frequency has much more than the others.
    """
    power = np.abs(np.fft.rfft(gap - np.mean(gap))[1:]) ** 2
    return bool(np.max(power) > LOUD * np.log(gap.size) * np.mean(power))


def _sums(arrays: Arrays) -> np.ndarray:
    """For each draw the sum of all elements."""
    return np.sum([np.sum(a.reshape(len(a), -1), axis=1) for a in arrays], axis=0)


def grows_smoothly(point: Point, comparison: Comparison, *, again: bool) -> bool:
    """Whether the error vanishes as all arguments shrink, without a jump.

    Less is asked if that was seen before of this value: `again`. Beside a pole the
    differences say so little that the error seems to vanish before it does, and beyond
    one there may be none.
    """
    errors: list[float] = []
    vanished, enough = False, DECADES / 2 if again else DECADES
    problem, chosen = point.flat.problem, comparison.v != 0
    if sum(x.size for x in problem.xs) >= MANY:
        return False  # hundreds of passes over them
    for scale in SCALES:
        smaller = problem.with_perturbed([scale * x for x in problem.xs])
        try:
            near = Point(flatten(smaller), point.random)
            found = [*near.along(comparison.part, chosen)]
        except Exception:
            found = []
        if not found:
            if scale > 1:
                continue  # beyond the domain
            return False
        worst = max(found, key=lambda each: each.gap / each.scale)
        error = max(worst.gap / worst.scale, worst.resolution)
        if scale >= 1 and errors and errors[-1] > 10**JUMP * error:
            errors.clear()  # there another element was far off, and this one is not
        if worst.is_wrong or (scale < 1 and not vanished):
            errors.append(error)
        vanished |= scale < 1 and error <= CLEAR * worst.resolution
        if vanished and _decades(errors) >= enough:
            break
    if not vanished or _decades(errors) < enough:
        return False
    return bool(np.max(np.diff(np.sort(np.log10(errors)))) < JUMP)


def _decades(errors: list[float]) -> int:
    return np.unique(np.round(np.log10(errors))).size
