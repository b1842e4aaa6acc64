"""Matrix products made smaller: the same results from less."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import trees


def products(fn, *examples):
    """The shapes of the results of all matrix products of a program."""
    steps = gs.trace(fn, *examples).steps
    return [step.outputs[0].shape for step in steps if step.fn is np.matmul]


def arrays(*shapes, dtype="float64"):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("axis", "product"), [(0, (1, 4)), (1, (6, 1)), (-2, (1, 4)), ((1,), (6, 1))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_of_a_product_is_a_product_of_a_sum(axis, product, dtype):
    fn = lambda a, b: np.sum(a @ b, axis=axis)
    a, b = arrays((6, 5), (5, 4), dtype=dtype)
    assert products(fn, a, b) == [product]
    y = gs.compile(fn)(a, b)
    assert (y.shape, y.dtype) == (fn(a, b).shape, a.dtype)
    np.testing.assert_allclose(y, fn(a, b), rtol=1e-5 if dtype == "float32" else 1e-13)


def test_sum_of_products_in_a_stack_beside_what_is_repeated_along_it():
    def fn(a, b, g):
        return np.sum(a @ b + np.where(g == 0, 0, a * g), axis=1, keepdims=True)

    a, b, g = arrays((3, 7, 5), (3, 5, 5), (3, 1, 5))
    g[0, 0, 0] = 0
    assert products(fn, a, b, g) == [(3, 1, 5)]
    np.testing.assert_allclose(gs.compile(fn)(a, b, g), fn(a, b, g), rtol=1e-12)


def test_gradient_of_a_shift_before_a_product_takes_no_product_of_all_rows():
    def loss(m, x, w):
        return np.sum(np.tanh((x - m) @ w))

    m, x, w = arrays((5,), (50, 5), (5, 4))
    shapes = products(gs.grad(loss), m, x, w)
    assert (50, 5) not in shapes
    np.testing.assert_allclose(
        gs.compile(gs.grad(loss))(m, x, w), gs.grad(loss)(m, x, w), rtol=1e-12
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: (np.sum(a @ b, axis=0), a @ b),  # which is needed anyway
        lambda a, b: np.sum(a @ b),
        lambda a, b: np.sum((a @ b) ** 2, axis=0),
        lambda a, b: np.sum(np.where(a @ b > 0, 0, a @ b), axis=0),
        lambda a, b: np.sum((a @ b) * a[:, :1], axis=0),  # not the same for all rows
        lambda a, b: np.sum(np.where(b[0] == 0, 1, a @ b), axis=0),
    ],
)
def test_other_sums_are_of_the_product(fn):
    a, b = arrays((6, 5), (5, 4))
    assert products(fn, a, b) == [(6, 4)]
    found, expected = gs.compile(fn)(a, b), fn(a, b)
    results = trees.leaves(found), trees.leaves(expected)
    for y, z in zip(*results, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12)


def test_float16_is_summed_after_the_product():
    """The sum of 100 rows would be infinite."""
    fn = lambda a, b: np.sum(a @ b, axis=0)
    a, b = np.full((100, 2), 1000, "float16"), np.full((2, 3), 0.01, "float16")
    assert products(fn, a, b) == [(100, 3)]
    np.testing.assert_array_equal(gs.compile(fn)(a, b), fn(a, b))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_stays_where_it_is(bad):
    fn = lambda a, b: np.sum(a @ b, axis=0)
    a, b = arrays((6, 5), (5, 4))
    a[2, 3], b[3, 1] = bad, 0
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(gs.compile(fn)(a, b), fn(a, b), rtol=1e-12)


@pytest.mark.parametrize("number", [-1, 2, -0.5, 1.0])
def test_signs_and_powers_of_2_come_after_a_product(number):
    fn = lambda a, b: a @ (b * number)
    a, b = arrays((3, 40), (40, 7))
    multiplied = [
        step.outputs[0].shape
        for step in gs.trace(fn, a, b).steps
        if step.fn is np.multiply
    ]
    assert multiplied == ([(3, 7)] if number != 1 else [])
    np.testing.assert_array_equal(gs.compile(fn)(a, b), fn(a, b))


@pytest.mark.parametrize("number", [3, 0.1, 0, 2.0**600, np.inf])
def test_other_numbers_stay_before_it(number):
    fn = lambda a, b: a @ (b * number)
    a, b = arrays((3, 40), (40, 7))
    shapes = {s.outputs[0].shape for s in gs.trace(fn, a, b).steps}
    assert (40, 7) in shapes
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gs.compile(fn)(a, b), fn(a, b))


def test_few_rows_and_many_columns_are_swapped_where_the_sums_are_long():
    fn = lambda a, b: a @ b
    a, b = arrays((3, 2000), (2000, 12))
    assert products(fn, a, b) == [(12, 3)]
    y = gs.compile(fn)(a, b)
    np.testing.assert_allclose(y, a @ b, rtol=1e-10)
    assert products(fn, *arrays((3, 200), (200, 12))) == [(3, 12)]
    assert products(fn, *arrays((1, 2000), (2000, 12))) == [(1, 12)]


def test_a_power_of_two_is_moved_to_where_there_is_less():
    """In a gradient the same factor is in two products."""

    def fn(x, w):
        g = 2 * x
        y = g @ w.T
        return y, g.T @ np.where(y > 0, 1.0, 0.0)

    x, w = arrays((600, 8), (10, 8))
    steps = gs.trace(fn, x, w).steps
    sizes = [s.outputs[0].size for s in steps if s.fn is np.multiply]
    assert sizes == [80, 80]
    for y, expected in zip(gs.compile(fn)(x, w), fn(x, w), strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, w: (g := 2 * x, g @ w.T),  # a result
        lambda x, w: (2 * x) @ w.T + np.sum(2 * x, 1)[:, None],  # needed otherwise
        lambda x, w: (3 * x) @ w.T,  # which rounds
    ],
)
def test_a_factor_that_stays(fn):
    x, w = arrays((600, 8), (10, 8))
    steps = gs.trace(fn, x, w).steps
    assert [s.outputs[0].size for s in steps if s.fn is np.multiply] == [4800]


@pytest.mark.parametrize("n", [4, 200])
def test_half_precision_has_no_room_for_what_was_scaled_down(n):
    fn = lambda x, w: (x * 0.125) @ w
    x, w = np.full((n, 40), 180, "float16"), np.full((40, 4), 60, "float16")
    y = gs.compile(fn)(x, w)
    assert np.isfinite(y).all()
    np.testing.assert_array_equal(y, fn(x, w))
