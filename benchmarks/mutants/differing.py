"""Is a mutant wrong at all? Decided by computing, not by hand.

A transposed gradient of a symmetric expression is right. What a mutation leaves right
is no mutant, so the rule is compared with the right one on the inputs that are to show
the difference.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import gradsmith as gs

from .inputs import cast
from .kind import Kind, each
from .kinds import KINDS
from .operation import Operation, Rule
from .operations import OPERATIONS

SEEDS = range(20)
LEAST = 1e-9  # relative to the largest element: far above float64's rounding


@cache
def differs(operation: str, kind: str) -> bool:
    """Whether this kind makes a wrong gradient of this operation's."""
    op, how = OPERATIONS[operation], KINDS[kind]
    wrong = how.make(op)
    if wrong is None:
        return False
    with np.errstate(all="ignore"):
        for seed in SEEDS:
            for xs in how.showing(op, seed):
                if _differs(op, how, wrong, cast(xs, how.dtypes[0]), seed):
                    return True
    return False


def _differs(op: Operation, how: Kind, wrong: Rule, xs: Any, seed: int) -> bool:
    y = op.forward(*xs)
    dy = each(lambda v: np.array(v, order=how.layout), upstream(y, seed))  # type: ignore
    if how.second_order:
        return _depends_on_inputs(op, dy, xs)
    before = [x.copy() for x in (*xs, *_tuple(dy))]
    right = [how.scale * dx if dx is not None else None for dx in op.rule(dy, y, *xs)]
    got = wrong(dy, each(lambda v: how.scale * v, y), *xs)
    if any(_unequal(a, b) for a, b in zip(before, (*xs, *_tuple(dy)), strict=True)):
        return True
    return any(_unequal(a, b) for a, b in zip(right, got, strict=True))


def _unequal(right: Any, got: Any) -> bool:
    """Different in shape, in dtype, or in value where the right one is finite."""
    if right is None:
        return False
    right = np.asarray(right)
    if got is None:
        return bool(np.any(right != 0))
    got = np.asarray(got)
    if got.shape != right.shape or got.dtype != right.dtype:
        return True
    finite = np.isfinite(right)
    if not finite.any():
        return False
    error, size = np.abs(got - right)[finite], np.abs(right[finite]).max()
    least = LEAST if right.dtype == np.float64 else 1e-3
    return not bool((error <= least * size).all())


def _depends_on_inputs(op: Operation, dy: Any, xs: Any) -> bool:
    """Whether a second derivative is not zero: the rule's derivative in its inputs."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(x.shape) for x in xs]

    def product(*floats: Any) -> Any:
        full = list(xs)
        for i, x in zip(op.floats, floats, strict=True):
            full[i] = x
        dxs = op.rule(dy, op.forward(*full), *full)
        return sum(np.sum(weights[i] * dxs[i]) for i in op.floats)

    places = tuple(range(len(op.floats)))
    found = gs.grad(product, argnums=places)(*[xs[i] for i in op.floats])
    return any(np.abs(np.asarray(dx)).max() > 1e-6 for dx in found if dx is not None)


def upstream(y: Any, seed: int) -> Any:
    """A random upstream gradient of both signs, some of it beyond 1."""
    rng = np.random.default_rng([seed, 1])

    def draw(v: Any) -> np.ndarray:
        return np.asarray(2 * rng.standard_normal(np.shape(v)), np.asarray(v).dtype)

    return tuple(map(draw, y)) if isinstance(y, tuple) else draw(y)


def _tuple(y: Any) -> tuple[Any, ...]:
    return y if isinstance(y, tuple) else (y,)
