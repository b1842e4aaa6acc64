"""The right gradient times a number: its negative, a factor, a mean, nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .answer import Answer, mended, number, value, verified
from .arrangement import swapped
from .case import Case
from .evidence import Evidence


def zero(case: Case) -> Answer | None:
    """The rule gives zero, whatever it is given."""
    answer = Answer(
        "zero gradient",
        "the rule gives no gradient, or zero, and the derivative is not zero",
        "give the gradient of this argument too",
    )
    return answer if _always_zero(case) else None


def pretended(case: Case) -> Answer | None:
    """The derivative is zero everywhere, as of rounding; the rule's is not."""
    for each in case.points:
        if np.any(np.abs(each.truth) > each.margin):
            return None
    return Answer(
        "not zero",
        "the derivative is zero, since the outputs don't change with this argument or "
        "only in jumps, and the rule gives something else",
        "return zero; if it is on purpose, as of a straight-through estimator, declare "
        'it: gs.operation(surrogate="straight-through")',
    )


def _always_zero(case: Case) -> bool:
    return all(
        not np.any(each.rule(each.upstream(case.random))) for each in case.points
    )


def sign(case: Case) -> Answer | None:
    answer = Answer(
        "sign",
        "the gradient has the wrong sign",
        "multiply the gradient by -1",
        mended(lambda g: -g),
    )
    if not verified(answer, case):
        return None
    other = swapped(case)  # of a - b, both are the same
    return answer if other is None else _either(answer, other)


def _either(a: Answer, b: Answer) -> Answer:
    return Answer(
        f"{a.name} or {b.name}",
        f"{a.message}; or {b.message}, which is the same here",
        f"{a.repair}; or {b.repair}",
    )


def factor(case: Case) -> Answer | None:
    """A constant, the same at both points, is the factor."""
    c = ratio(case.evidence, case.random)
    if c is None or abs(c) < 1e-12:
        return None
    named = number(c)
    c = value(named)
    if c == 1:
        return None  # the error is somewhere in the digits
    answer = _mean(case, c) or Answer(
        "factor",
        f"the gradient is {named} times the derivative",
        f"divide the gradient by {named}"
        if abs(c) > 1
        else f"multiply the gradient by {number(1 / c)}",
        mended(lambda g: g / c),
    )
    return answer if verified(answer, case) else None


def ratio(found: Evidence, random: np.random.Generator) -> float | None:
    """By which number the true gradient is multiplied, at best."""
    u = found.upstream(random)
    t, g = found.right(u), found.rule(u)
    size = float(t @ t)
    return float(t @ g) / size if size > 0 and np.all(np.isfinite(g)) else None


def _mean(case: Case, c: float) -> Answer | None:
    """Divided by how often each element was used in a broadcast."""
    times = broadcast_count(case)
    if times < 2 or abs(c * times - 1) > 1e-6 or _shared(case, c):
        return None
    name = case.part.name
    return Answer(
        "mean for sum",
        f"{name} was broadcast, {times} outputs to each of its elements; its gradient "
        f"is the mean over them instead of the sum, 1/{times} of the derivative",
        f"sum over the axes along which {name} was broadcast: "
        f"gs.unbroadcast(d{name}, {name}.shape)",
        mended(lambda g: g * times),
    )


def broadcast_count(case: Case) -> int:
    """How many outputs each element was broadcast to; 1 if it was not broadcast."""
    outputs = case.ground.point.outputs.parts
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
    others = [p for p in case.ground.flat.arguments.parts if p != case.part and p.size]
    if not others:
        return False
    for part in others:
        other = replace(case, part=part)
        few = np.arange(part.start, part.start + part.size)[:4]
        if broadcast_count(other) == broadcast_count(case):
            return False
        found = ratio(other.look(case.ground, few), case.random)
        if found is None or abs(found / c - 1) > 1e-5:
            return False
    return True
