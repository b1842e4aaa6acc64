"""The simplest mistakes: not finite, not deterministic, or off by a constant factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..numerics import change_within, largest
from .arrangement import swapped
from .case import Case
from .evidence import Evidence
from .locate import describe_elements
from .model import DECLARE, Diagnosis, format_factor, parse_factor, right_once, verified

NEARER = 4  # tries
FAR = 16.0  # times the scale of an argument
FURTHER = 1e3  # times that scale: a spike by chance may hardly depend on the argument


def not_finite(case: Case) -> Diagnosis | None:
    """The derivative is a number and the gradient is not."""
    with np.errstate(all="ignore"):
        g = case.point.linearization.pull(case.point.upstream())[case.part.slice]
    bad = ~np.isfinite(g)
    if not np.any(bad):
        return None
    values = case.point.x[case.part.slice][bad]
    name = case.part.name
    where = describe_elements(case.part, bad) or name
    if np.all(values == values[0]):
        where = f"at {name} = {values[0]:.6g} ({where})"
    kind = "NaN" if np.any(np.isnan(g[bad])) else "infinite"
    return Diagnosis(
        "not finite",
        f"the gradient is {kind} where the derivative is finite: {where}",
        "mask the argument of the function that overflows or divides, not only its "
        "result: where(ok, f(where(ok, x, 1)), 0)",
    )


def not_deterministic(case: Case) -> Diagnosis | None:
    """The same call gives other values each time."""
    u = case.point.upstream()
    first, again = (case.point.linearization.pull(u)[case.part.slice] for _ in range(2))
    if np.array_equal(first, again, equal_nan=True):
        return None
    return Diagnosis(
        "not deterministic",
        "the gradient differs from call to call with the same upstream gradient",
        "draw no random numbers in the rule, and don't change its arguments in place",
    )


def zero(case: Case) -> Diagnosis | None:
    """The rule always gives zero."""
    diagnosis = Diagnosis(
        "zero gradient",
        "the rule gives no gradient, or zero, and the derivative is not zero",
        "return the gradient of this argument too",
    )
    return diagnosis if _always_zero(case) else None


def not_zero(case: Case) -> Diagnosis | None:
    """The derivative is zero everywhere, as for rounding; the rule's is not."""
    for each in case.points:
        if np.any(np.abs(each.truth) > each.margin):
            return None
    if changes_in_jumps(case):
        return Diagnosis(
            "piecewise constant",
            "the outputs change in jumps only, so that the derivative is zero, and the "
            "rule gives something else",
            f"if that is not on purpose, return zero; else {DECLARE}",
        )
    if how := _passes_on(case):
        return Diagnosis(
            "passed on",
            f"the output is another argument, and the rule {how}",
            f"if that is not on purpose, return zero; else {DECLARE}",
        )
    return Diagnosis(
        "not zero",
        "the derivative is zero, since the outputs don't change with this argument, "
        "and the rule gives something else",
        "return zero",
    )


def changes_in_jumps(case: Case) -> bool:
    """Whether the outputs jump if the argument changes much.

    relu(x - 100) does not, and a bound of a clamp that is not reached does not either.
    """
    here = case.part.slice
    point = case.point
    moves = [case.mixed(point.x) - point.x, case.scaled(point.x) - point.x]
    if case.stays_near:  # half of the argument, some up and some down
        steps = case.random.uniform(-0.5, 0.5, (NEARER, point.x.size))
        moves += [*(steps * point.scale)]
    else:
        moves += [k * point.scale for k in (3.0, FURTHER, -FURTHER)]
        # Where what counts is the difference to another element
        moves += [FAR * point.direction() for _ in range(2)]
    for move in moves:
        step = np.zeros_like(point.x)
        step[here] = move[here]
        y = point.value(point.x + step)
        if np.any(np.isfinite(y) & (y != point.y)):
            at = lambda t, step=step: point.value(point.x + t * step)
            if _breaks(at, point.y, y):
                return True
    return False


def _breaks(at: Callable[[float], np.ndarray], a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the outputs on the way from a to b jump, by however small a part."""
    left = change_within(at, 0.0, 1.0, a, b, 2 * HALVES)
    return left > largest(b - a) * 2.0**-HALVES


def _passes_on(case: Case) -> str | None:
    """What the rule does, in words, if the output is another argument as it is.

    It passes dy on to this one too, or changes the gradient of the other one as well.
    """
    point = case.point
    for other in point.flat.arguments.parts:
        if other == case.part or not np.array_equal(point.x[other.slice], point.y):
            continue
        u = case.random.uniform(-1, 1, point.y.size)
        g = point.linearization.pull(u)
        if np.array_equal(g[case.part.slice], u):
            return "passes the upstream gradient on to this one too"
        if not np.array_equal(g[other.slice], u):
            return f"changes the gradients of {other.name} and of this one"
    return None


def jumps(case: Case) -> Diagnosis | None:
    """The outputs change in jumps, but not only: those of a quantized product."""
    v = case.point.scale * case.random.uniform(1, 2, case.point.x.size)
    v[: case.part.start] = v[case.part.start + case.part.size :] = 0.0
    at = lambda t: case.point.value(case.point.x + t * v)
    ts = np.linspace(0.0, NEARBY, INTERVALS + 1).tolist()
    ys = [at(t) for t in ts]
    moved = np.array([largest(b - a) for a, b in pairwise(ys)])
    places = np.argsort(-moved)[:JUMPS]
    if not all(_is_jump(at, ts[i], ts[i + 1], ys[i], ys[i + 1]) for i in places):
        return None
    return Diagnosis(
        "jumps",
        "the outputs change in jumps, and the rule is not the derivative between them",
        f"if that is not on purpose, return the derivative; else {DECLARE}",
    )


NEARBY = 2.0**-4  # of the argument, in which a staircase has several steps
INTERVALS, JUMPS, HALVES = 64, 3, 20


def _is_jump(
    at: Callable[[float], np.ndarray],
    low: float,
    high: float,
    a: np.ndarray,
    b: np.ndarray,
) -> bool:
    """Whether what changes between two points does at one point between them."""
    return change_within(at, low, high, a, b, HALVES) > largest(b - a) / 4 > 0


def clamp(case: Case) -> Diagnosis | None:
    """A clamped value, with a gradient where it is clamped too."""
    outputs = case.point.linearization.outputs.parts
    if len(outputs) != 1 or outputs[0].shape != case.part.shape:
        return None
    outside: list[float] = []
    through = True
    for found in case.points:
        x, y = found.point.x[case.part.slice], found.point.y
        if not np.array_equal(y, np.clip(x, np.min(y), np.max(y))):
            return None
        u = found.upstream(case.random)
        slopes = found.rule(u) / u[: len(found.columns)]
        clamped = (x != y)[found.columns - case.part.start]
        inside = ~np.isin(y, y[x != y])[found.columns - case.part.start]
        through &= bool(np.all(slopes == 1))
        if not through and not (np.any(inside) and np.all(slopes[inside] == 1)):
            return None
        outside += [*slopes[clamped]]
    # A slope of its own is less than 1; 1 at one bound and 0 at the other forgets one.
    if not through and not any(0 < slope < 1 for slope in outside):
        return None
    if not all(0 <= slope <= 1 for slope in outside):
        return None
    how = "passed through" if through else "not zero"
    return Diagnosis(
        "clamp",
        f"the value is clamped, and the gradient is {how} where it is",
        f"if that is not on purpose, return zero there; else {DECLARE}",
    )


def _passes_through(case: Case) -> bool:
    """Whether the value is the argument itself."""
    outputs = case.point.linearization.outputs.parts
    if len(outputs) != 1 or outputs[0].shape != case.part.shape:
        return False
    points = [found.point for found in case.points]
    return all(np.array_equal(p.y, p.x[case.part.slice]) for p in points)


def stopped(case: Case) -> Diagnosis | None:
    """The value is the argument itself, and there is no gradient at all."""
    if not _passes_through(case):
        return None
    return Diagnosis(
        "identity",
        "the output is the argument itself, and its gradient is stopped: the rule "
        "gives zero",
        f"if that is not on purpose, return dy; else {DECLARE}",
    )


def identity(case: Case) -> Diagnosis | None:
    """The value is the argument itself, as it is where a gradient is to be changed."""
    if not _passes_through(case):
        return None
    c = ratio(case.evidence, case.random) or 0.0
    how = "reversed" if c == -1 else f"multiplied by {format_factor(c)}"
    repair = f"if that is not on purpose, return dy; else {DECLARE}"
    words = "the output is the argument itself, and its gradient is"
    scaled = Diagnosis(
        "identity", f"{words} {how}", repair, right_once(lambda g: g / c)
    )
    if c and verified(scaled, case):
        return scaled
    return Diagnosis("identity", f"{words} another one", repair)


def _always_zero(case: Case) -> bool:
    return all(
        not np.any(each.rule(each.upstream(case.random))) for each in case.points
    )


def sign(case: Case) -> Diagnosis | None:
    diagnosis = Diagnosis(
        "sign",
        "the gradient has the wrong sign",
        "multiply the gradient by -1",
        right_once(lambda g: -g),
    )
    if not verified(diagnosis, case):
        return None
    other = swapped(case)  # of a - b, both are the same
    return diagnosis if other is None else _either(diagnosis, other)


def _either(a: Diagnosis, b: Diagnosis) -> Diagnosis:
    return Diagnosis(
        f"{a.name} or {b.name}",
        f"{a.message}; or {b.message}, which is the same here",
        f"{a.repair}; or {b.repair}",
    )


def factor(case: Case) -> Diagnosis | None:
    """A constant, the same at both points, is the factor."""
    c = ratio(case.evidence, case.random)
    if c is None or abs(c) < 1e-12:
        return None
    named = format_factor(c)
    c = parse_factor(named)
    if c == 1:
        return None  # the error is somewhere in the digits
    diagnosis = _mean(case, c) or Diagnosis(
        "factor",
        f"the gradient is {named} times the derivative",
        f"divide the gradient by {named}"
        if abs(c) > 1
        else f"multiply the gradient by {format_factor(1 / c)}",
        right_once(lambda g: g / c),
    )
    return diagnosis if verified(diagnosis, case) else None


def ratio(found: Evidence, random: np.random.Generator) -> float | None:
    """By which number the true gradient is multiplied, at best."""
    u = found.upstream(random)
    t, g = found.expected(u), found.rule(u)
    size = float(t @ t)
    return float(t @ g) / size if size > 0 and np.all(np.isfinite(g)) else None


def _mean(case: Case, c: float) -> Diagnosis | None:
    """Divided by how often each element was used in a broadcast."""
    times = broadcast_count(case)
    if times < 2 or abs(c * times - 1) > 1e-6 or _shared(case, c):
        return None
    name = case.part.name
    return Diagnosis(
        "mean for sum",
        f"{name} was broadcast, {times} outputs to each of its elements; its gradient "
        f"is the mean over them instead of the sum, 1/{times} of the derivative",
        f"sum over the axes along which {name} was broadcast: "
        f"gs.unbroadcast(d{name}, {name}.shape)",
        right_once(lambda g: g * times),
    )


def broadcast_count(case: Case) -> int:
    """How many outputs each element was broadcast to; 1 if it was not broadcast."""
    outputs = case.point.linearization.outputs.parts
    if len(outputs) != 1 or not case.part.size:
        return 1
    shape, whole = case.part.shape, outputs[0].shape
    padded = (1,) * (len(whole) - len(shape)) + shape
    if len(padded) != len(whole):
        return 1
    fits = all(a in (1, b) for a, b in zip(padded, whole, strict=True))
    return int(np.prod(whole)) // int(np.prod(shape)) if fits else 1


def _shared(case: Case, c: float) -> bool:
    """Whether all of the other arguments are off by the same factor."""
    others = [p for p in case.point.flat.arguments.parts if p != case.part and p.size]
    if not others:
        return False
    for part in others:
        other = replace(case, part=part)
        few = np.arange(part.start, part.start + part.size)[:4]
        if broadcast_count(other) == broadcast_count(case):
            return False
        found = ratio(other.gather(case.point, few), case.random)
        if found is None or abs(found / c - 1) > 1e-5:
            return False
    return True


# --- the right gradient, computed with fewer digits than its dtype has
#
# The error is of the size of the lower precision, and digits are missing for sure: the
# gradient's own values are numbers of that precision, or it doesn't change at all when
# the upstream gradient or the argument changes by less than that precision.


# Digits after the leading one, in bits.
LOWER = {"float32": 23, "float16": 10, "bfloat16": 7}
LOST, LARGEST = 64.0, 0.02  # units that a formula may lose, and relative to it all
MOST = 0.75  # of the elements have to show it


def lower_precision(case: Case) -> Diagnosis | None:
    for name, bits in LOWER.items():
        eps = 2.0**-bits
        if eps <= 4 * case.point.flat.eps:
            continue
        if all(_as_small(each, eps, case.random) for each in case.points):
            how = _shown(case, eps)
            if how:
                return Diagnosis(
                    "precision lost",
                    f"the gradient is right only to the digits of {name}: {how}",
                    f"compute the gradient in the dtype of the argument, not in {name}",
                )
    return None


def _as_small(found: Evidence, eps: float, random: np.random.Generator) -> bool:
    """Whether the error is what rounding to the lower precision explains."""
    u = found.upstream(random)
    g, t = found.rule(u), found.expected(u)
    size = np.sqrt((u * u) @ (found.truth * found.truth))
    size = np.maximum(size, np.max(size, initial=0.0) / 8)
    return bool(
        np.all(np.abs(g - t) <= min(LOST * eps, LARGEST) * size + found.tolerance(u))
    )


def _shown(case: Case, eps: float) -> str | None:
    """In which way digits are missing."""
    found = case.evidence
    u = found.upstream(case.random) * (1 + 0.3 * eps * _third(case, len(found.rows)))
    g = found.rule(u)
    some = g != 0
    if not np.any(some):
        return None
    if np.mean(_rounded(g[some], eps) == g[some]) >= MOST:
        return "its values have no other digits"
    if np.mean(found.rule(u * (1 + eps / 64))[some] == g[some]) >= MOST:
        return "it doesn't depend on the other digits of the upstream gradient"
    if _still(case, eps, some):
        return "it doesn't depend on the other digits of the arguments"
    return None


def _still(case: Case, eps: float, some: np.ndarray) -> bool:
    """Whether the rule ignores small changes of the arguments, though they matter."""
    found, other = case.evidence, case.fresh
    if other is None or other.truth.shape != found.truth.shape:
        return False
    if found.same(other.truth):
        return False
    x = _rounded(found.point.x, eps)
    full = np.zeros(found.point.y.size)
    full[found.rows] = found.upstream(case.random)
    points = [case.point_at(x * factor) for factor in (1, 1 + eps / 64, 1 - eps / 64)]
    pulled = [p.linearization.pull(full)[found.columns][some] for p in points if p]
    return any(np.mean(g == pulled[0]) >= MOST for g in pulled[1:])


def _third(case: Case, n: int) -> np.ndarray:
    return case.random.uniform(0.5, 1.0, n)


def _rounded(x: np.ndarray, eps: float) -> np.ndarray:
    """To the nearest number of the lower precision, whatever its size."""
    digits, power = np.frexp(x)
    return np.ldexp(np.round(digits * (2 / eps)) * (eps / 2), power)
