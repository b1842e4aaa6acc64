"""The walk back: the form that is fast computes what the form that is plain does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core import pool
from gradsmith.core.tape import plain_walk_back, walk_back

SMALL, LARGE = 6, pool.SMALLEST // 8


def unstacked(x, y):
    """An operation with several outputs, of which one is not used."""
    first, _, third = np.split(x, 3)
    return np.concatenate([first * y[0], third, first])


STEPS = {
    "sin": lambda x, y: np.sin(x),
    "square": lambda x, y: x * x,
    "number": lambda x, y: 0.5 * x,
    "product": lambda x, y: x * y,
    "sum": lambda x, y: x + y,
    "element": lambda x, y: x + y[1],
    "elements": lambda x, y: np.concatenate([x[2:], y[:2]]),
    "repeated": lambda x, y: x[np.r_[0, 0, 2 : len(x)]],
    "largest": lambda x, y: x - np.max(y),
    "outputs": unstacked,
    "constant": lambda x, y: x + np.floor(y),
}


def recorded(n, steps, lifts):
    """Two leaves and a result of all steps, each of which takes two values so far."""
    leaves = [gs.Tensor(np.linspace(0.1, 0.9, n)), gs.Tensor(np.linspace(1, 0.2, n))]
    tape = gs.GradientTape(persistent=True)
    tape.lifts, tape.records_one = lifts, not lifts
    with tape:
        tape.watch(leaves)
        values = list(leaves)
        for name, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(STEPS[name](x, y))
        total = sum(np.sum(value) for value in values[-3:])
    return tape, total, [*leaves, values[len(values) // 2]]


def both_walks(n, steps, lifts, prune):
    tape, total, sources = recorded(n, steps, lifts)
    nodes = [tape.mark_of(x) for x in sources]
    start = tape.mark_of(total)
    plain = plain_walk_back({start: np.float64(1)}, nodes)
    for keep in (True, True, False):  # what is kept is as it was
        fast = walk_back({start: np.float64(1)}, nodes, keep=keep, prune=prune)
        for node in nodes:
            assert (fast[node] is None) == (plain[node] is None)
            if plain[node] is not None:
                np.testing.assert_allclose(
                    np.asarray(gs.stop_gradient(fast[node])),
                    np.asarray(gs.stop_gradient(plain[node])),
                    rtol=1e-13,
                )


step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 99), st.integers(0, 99))


@settings(max_examples=100)
@given(st.lists(step, min_size=1, max_size=12), st.booleans(), st.booleans())
def test_both_walks_agree_on_any_graph(steps, lifts, prune):
    both_walks(SMALL, steps, lifts, prune)


@pytest.mark.parametrize("lifts", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_both_walks_agree_on_large_arrays(name, lifts):
    steps = [("sin", 0, 0), (name, 2, 1), ("square", 3, 0), (name, 4, 3)]
    both_walks(3 * (LARGE // 3 + 1), steps, lifts, prune=False)


def test_a_broadcast_row_gets_the_sum_of_its_cotangents():
    x = np.random.default_rng(3).normal(size=(3, 5000, 4))
    for shape, axes in (((1, 1, 4), (0, 1)), ((3, 1, 4), 1), ((1, 5000, 1), (0, 2))):
        dx = gs.grad(lambda b: np.sum(x * (x + b)))(np.ones(shape))
        expected = np.sum(x, axes, keepdims=True)
        np.testing.assert_allclose(dx, expected, rtol=1e-11, atol=1e-11)
