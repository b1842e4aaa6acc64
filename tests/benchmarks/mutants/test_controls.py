"""The corpus' right gradients are right: both orders, and at the edges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.mutants.differing import upstream
from benchmarks.mutants.inputs import SQUARE
from benchmarks.mutants.operations import OPERATIONS

ALL = list(OPERATIONS.values())
each = pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)


def outputs(y):
    return y if isinstance(y, tuple) else (y,)


def product(dy, y):
    return sum(np.sum(d * v) for d, v in zip(outputs(dy), outputs(y), strict=True))


def moved(op, xs, us, h):
    """The inputs a step along a direction; labels stay."""
    return tuple(x + h * us[i] if i in op.floats else x for i, x in enumerate(xs))


def directions(xs, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(x.shape) for x in xs]


def along(us, dxs, op):
    return sum(np.sum(us[i] * dxs[i]) for i in op.floats)


def value_along(op, dy, xs, us, h):
    return product(dy, op.forward(*moved(op, xs, us, h)))


def difference(f, h=1e-4):
    """f'(0) with an error of h⁶; so small a step that no kink lies between."""
    near, far, farther = (f(k * h) - f(-k * h) for k in (1, 2, 3))
    return (45 * near - 9 * far + farther) / (60 * h)


@each
@pytest.mark.parametrize("sizes", [{}, SQUARE], ids=["3x4", "square"])
def test_first_order(op, sizes):
    for seed in range(3):
        xs = op.sample(seed, **sizes)
        y, us = op.forward(*xs), directions(xs, seed)
        dy = upstream(y, seed)
        dxs = op.rule(dy, y, *xs)
        assert all(np.shape(dxs[i]) == xs[i].shape for i in op.floats)
        want = difference(partial(value_along, op, dy, xs, us))
        assert along(us, dxs, op) == pytest.approx(want, rel=1e-7, abs=1e-8)


@each
def test_second_order(op):
    xs = op.sample(0)
    dy, us, ws = upstream(op.forward(*xs), 0), directions(xs, 1), directions(xs, 2)

    def rule_along(*floats):
        full = list(xs)
        for i, x in zip(op.floats, floats, strict=True):
            full[i] = x
        return along(ws, op.rule(dy, op.forward(*full), *full), op)

    places = tuple(range(len(op.floats)))
    floats = [xs[i] for i in op.floats]
    found = gs.grad(rule_along, argnums=places)(*floats)
    got = sum(np.sum(us[i] * dx) for i, dx in zip(op.floats, found, strict=True))
    want = difference(
        lambda h: rule_along(*[moved(op, xs, us, h)[i] for i in op.floats])
    )
    assert float(got) == pytest.approx(want, rel=1e-6, abs=1e-7)


EDGES = {
    "zeros": np.zeros_like,
    "some zeros": lambda x: x * (np.arange(x.size).reshape(x.shape) % 3 > 0),
    "ties": lambda x: np.sign(np.round(x)),
    "negative": lambda x: -np.abs(x),
    "tiny": lambda x: x * 1e-12,
    "large": lambda x: x * 1e4,
}


def at_edge(op, change, seed):
    """Inputs at an edge, or None where that is outside the domain."""
    xs = list(op.sample(seed))
    for i in op.floats:
        arg = op.args[i]
        if arg.structured:
            return None
        xs[i] = change(xs[i])
        if xs[i].min() < arg.low or xs[i].max() > arg.high:
            return None
    return tuple(xs)


@each
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_nan_at_the_edges(op, edge, dtype):
    xs = at_edge(op, EDGES[edge], 0)
    if xs is None:
        return  # no point of the domain
    xs = tuple(x.astype(dtype) if x.dtype.kind == "f" else x for x in xs)
    with np.errstate(all="ignore"):
        y = op.forward(*xs)
        dxs = op.rule(upstream(y, 0), y, *xs)
        if all(np.isfinite(v).all() for v in outputs(y)):
            assert not any(np.isnan(dxs[i]).any() for i in op.floats)
    assert all(dxs[i].dtype == dtype for i in op.floats)


def one_hot(y, place):
    """An upstream gradient for one element of the outputs."""
    flat = [np.zeros(np.shape(v)) for v in outputs(y)]
    chosen = flat[place % len(flat)]
    chosen.flat[place % chosen.size] = 1
    return tuple(flat) if isinstance(y, tuple) else flat[0]


@each
@pytest.mark.parametrize("edge", ["zeros", "some zeros", "ties"])
def test_a_subgradient_at_kinks(op, edge):
    """Of one output the gradient lies between the one-sided derivatives."""
    if op.name in ("sort", "arctan2"):
        return  # a median of equal ones is neither convex nor concave; a jump
    h = 1e-8
    for seed in range(4):
        xs = at_edge(op, EDGES[edge], seed)
        if xs is None:
            return
        us = directions(xs, seed)
        with np.errstate(all="ignore"):
            y = op.forward(*xs)
            dy = one_hot(y, seed)
            before, here, after = (
                value_along(op, dy, xs, us, k * h) for k in (-1, 0, 1)
            )
            got = along(us, op.rule(dy, y, *xs), op)
        if not np.isfinite([before, here, after, got]).all():
            continue  # an edge of the domain
        low, high = sorted(((here - before) / h, (after - here) / h))
        margin = 1e-4 * (1 + abs(low) + abs(high))
        assert low - margin <= got <= high + margin


def test_sort_shares_no_gradient_among_equal_ones():
    op = OPERATIONS["sort"]
    (x,) = op.sample(0)
    x = np.sign(np.round(x))
    apart = x + 1e-9 * np.arange(x.shape[1])  # what a stable order makes of ties
    dy = upstream(x, 0)
    (dx,), (near,) = op.rule(dy, op.forward(x), x), op.rule(dy, None, apart)
    np.testing.assert_array_equal(dx, near)
