"""Each pass gives an equal program with less in it."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.program.passes import (
    simplified,
    with_known_values,
    without_broadcasts,
    without_conversions,
    without_copies,
    without_dead,
    without_repetition,
)
from gradsmith.program.trace import traced

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
BIG = np.linspace(0.0, 1.0, 300)


def counts(apply, fn, x=X):
    """The numbers of steps before and after a pass, which changes no result."""
    program = traced(fn, (x,), {})
    smaller = apply(program)
    for y, e in zip(trees(smaller(x)), trees(program(x)), strict=True):
        np.testing.assert_array_equal(y, e)
        assert y.dtype == e.dtype
    return len(program), len(smaller)


def trees(y):
    return [np.asarray(part) for part in gs.core.trees.leaves(y)]


def unused(x):
    y = np.sin(x)
    np.exp(y), np.cos(x)
    return y


def twice(x):
    return np.sin(x) + np.sin(x), np.sum(x, axis=0), np.sum(x, axis=0)


def almost_twice(x):
    return np.sum(x, axis=0), np.sum(x, axis=1), x * 1, x * 1.0, x * 0.0, x * -0.0


@pytest.mark.parametrize(
    ("apply", "fn", "expected"),
    [
        (without_dead, unused, (3, 1)),
        (without_repetition, twice, (5, 3)),
        (without_repetition, almost_twice, (6, 6)),
        (without_copies, lambda x: np.reshape(x, (3, 4)) + 1, (2, 1)),
        (without_copies, lambda x: np.broadcast_to(x, (2, 3, 4)), (1, 1)),
        (with_known_values, lambda x: x * np.ones_like(x), (2, 0)),
        (with_known_values, lambda x: x + np.sum(np.ones_like(x)), (3, 1)),
        (with_known_values, lambda x: x * 1, (1, 0)),
        (with_known_values, lambda x: np.where(np.zeros((3, 4), bool), 0, x), (1, 0)),
        (with_known_values, lambda x: np.where(np.ones((3, 4), bool), x, 0), (1, 0)),
        (with_known_values, lambda x: np.where(np.ones((3, 4), bool), x, 1j), (1, 1)),
        (with_known_values, lambda x: (x > 0) * 1.0, (2, 2)),
        (with_known_values, lambda x: x[0] * np.ones((3, 4)), (2, 2)),
        (with_known_values, lambda x: x + np.zeros_like(x), (2, 1)),  # -0.0 + 0.0
    ],
)
def test_a_pass(apply, fn, expected):
    assert counts(apply, fn) == expected


def test_conversions():
    narrow = X.astype("float32")
    twice = lambda x: x.astype("float64").astype("float32")
    assert counts(lambda p: simplified(p), twice, narrow) == (2, 0)
    lossy = lambda x: x.astype("float32").astype("float64")
    assert counts(lambda p: without_dead(without_conversions(p)), lossy) == (2, 2)
    long = np.array([2**53 + 1, 3])  # float64 has no such number
    rounded = lambda n: n.astype(float).astype(int)
    np.testing.assert_array_equal(gs.compile(rounded)(long), rounded(long))


def test_elementwise_functions_repeat_by_themselves():
    fn = lambda x: np.broadcast_to(x[0], (3, 4)) * x
    apply = lambda p: without_dead(without_broadcasts(p))
    assert counts(apply, fn) == (3, 2)
    alone = lambda x: np.broadcast_to(x[0], (3, 4)) * 2.0
    assert counts(apply, alone) == (3, 3)


def test_large_arrays_of_one_number_take_no_memory():
    program = gs.trace(gs.grad(lambda x: np.sum(3 * x)), np.ones((1000, 1000)))
    (constant,) = program.constants.values()
    assert constant.strides == (0, 0)
    assert "np.full((1000, 1000), np.float64(3.0))" in str(program)
    first = program(np.ones((1000, 1000)))
    first[:] = 0.0
    assert program(np.ones((1000, 1000)))[0, 0] == 3.0


def test_captured_arrays_stay():
    assert len(gs.trace(lambda x: x + np.sin(BIG), BIG)) == 1


def test_options_that_change_nothing_are_left_out():
    fn = lambda x: np.sum(x, axis=0, dtype=None, where=True)
    (step,) = gs.trace(fn, np.ones((3, 4))).steps
    assert step.kwargs == {"axis": 0}
    (step,) = gs.trace(lambda x: np.sum(x, dtype="float64"), np.ones(3, "f")).steps[-1:]
    assert step.kwargs == {"dtype": "float64"}
