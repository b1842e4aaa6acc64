"""Which diagnoses are right of a mutant: its kind's, and those that come to the same.

The gradients of mean((x - t)²) swapped are the right ones with the other sign, and a
sum's along the wrong axis is the transposed one; either name is right.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .differing import upstream
from .kind import Kind
from .kinds import KINDS
from .operation import Operation
from .operations import OPERATIONS

SEEDS = range(3)


@cache
def accepted(operation: str, kind: str) -> frozenset[str]:
    """The words, one of which a right diagnosis of this mutant holds."""
    op, how = OPERATIONS[operation], KINDS[kind]
    words = set(how.diagnosis)
    if not words or how.shows or how.showing_sizes or how.second_order:
        return frozenset(words)
    others = [k for k in KINDS.values() if _could_be(k, how, op)]
    with np.errstate(all="ignore"):
        for other in others:
            if all(_same(op, how, other, seed) for seed in SEEDS):
                words |= set(other.diagnosis)
    return frozenset(words)


def _could_be(other: Kind, how: Kind, op: Operation) -> bool:
    return (
        bool(other.diagnosis)
        and other.name != how.name
        and other.scale == how.scale
        and not (other.shows or other.showing_sizes or other.second_order)
        and other.make(op) is not None
    )


def _same(op: Operation, how: Kind, other: Kind, seed: int) -> bool:
    one, two = (_gradients(op, how, kind, seed) for kind in (how, other))
    return all(_equal(a, b) for a, b in zip(one, two, strict=True))


def _gradients(op: Operation, given: Kind, kind: Kind, seed: int) -> list[Any]:
    """The gradients by the rule of a kind on the inputs of another."""
    xs = given.inputs(op, seed)
    y = op.forward(*xs)
    dy = upstream(y, seed)
    rule: Any = kind.make(op)
    try:
        return list(rule(dy, y, *xs))
    except (ValueError, IndexError):  # shapes that this kind can't take
        return [np.full(1, np.nan)] * len(xs)


def _equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=1e-9, atol=1e-12))
