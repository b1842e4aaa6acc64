"""Cotangents in the shape of the value they belong to."""

import numpy as np
import pytest

from gradsmith.core.cotangent import (
    Scattered,
    are_short_rows,
    stack_of_rows,
    unbroadcast,
)
from gradsmith.core.infinite import Infinite

SUMMED = {  # the shape of a cotangent, that of the value, and whether rows are added
    "columns": ((300, 5), (5,), True),
    "a stack": ((5, 100, 2), (5, 1, 2), True),
    "two axes": ((20, 30, 4), (4,), True),
    "rows": ((300, 5), (300, 1), False),
    "all": ((300, 5), (), False),
    "axes apart": ((30, 40, 5), (1, 40, 1), False),
    "few": ((10, 5), (5,), False),
    "wide": ((300, 200), (200,), False),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SUMMED)
def test_sums_over_what_was_repeated(name, dtype):
    shape, target, by_product = SUMMED[name]
    dy = np.random.default_rng(0).normal(size=shape).astype(dtype)
    axes = tuple(
        i
        for i, n in enumerate(shape)
        if i < len(shape) - len(target) or target[i - len(shape)] != n
    )
    assert (stack_of_rows(dy, axes) is not None) == by_product
    expected = dy.astype(float).sum(axes).reshape(target)
    for array in (dy, np.asfortranarray(dy)):
        found = unbroadcast(array, target)
        assert found.dtype == dtype
        assert found.shape == target
        atol = 200 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=atol)


def test_infinite_and_nan_stay_in_their_column():
    dy = np.ones((300, 4))
    dy[3, 1], dy[5, 2] = np.inf, np.nan
    np.testing.assert_array_equal(unbroadcast(dy, (4,)), [300, np.inf, np.nan, 300])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(300, 3), (10, 30, 4), (300, 129), (20, 3)])
def test_sums_of_rows(shape, dtype):
    dy = np.random.default_rng(0).normal(size=shape).astype(dtype)
    fits = dtype in (np.float32, np.float64) and 1 < shape[-1] <= 128
    assert are_short_rows(dy) == (fits and dy.size >= 200)
    dy[0, ..., 0], dy[1, ..., 0] = np.inf, np.nan
    for each in (dy, dy[::-1], np.asfortranarray(dy)):
        found = unbroadcast(each, (*shape[:-1], 1))
        assert found.dtype == dtype
        rtol = 20 * np.finfo(dtype).eps
        expected = np.sum(each, axis=-1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=shape[-1] * rtol)


SOME = {  # keys of a matrix of 2000 rows and 11 columns
    "columns": (slice(None), slice(3, 6)),
    "every other": (slice(None, None, 2), slice(9, 1, -2)),
    "many": (slice(None), slice(1, 9)),
    "one": (slice(None), 4),
    "rows": slice(10, 20),
    "rest": (..., slice(3, 6)),
    "chosen": (np.array([3, 5]), np.array([0, 1])),
}


@pytest.mark.parametrize("name", SOME)
def test_scattered_cotangents_add_up(name):
    rng, key, shape = np.random.default_rng(0), SOME[name], (2000, 11)
    values, total = rng.normal(size=np.empty(shape)[key].shape), rng.normal(size=shape)
    expected = np.zeros(shape)
    expected[key] += values
    scattered = Scattered(key, values, shape, distinct=True)
    np.testing.assert_array_equal(scattered.dense(), expected)
    np.testing.assert_array_equal(scattered.added_to(total.copy()), total + expected)
    one = Scattered(key, np.float64(2), shape, distinct=True)
    np.testing.assert_array_equal(one.dense(), 2 * (expected != 0))
    np.testing.assert_array_equal(
        one.added_to(total.copy()), total + 2 * (expected != 0)
    )


def test_scattered_cotangents_that_overflow_are_marked():
    key, values = (slice(None), slice(0, 2)), np.full((2000, 2), np.inf)
    scattered = Scattered(key, values.view(Infinite), (2000, 3), distinct=True)
    for dx in (scattered.dense(), scattered.added_to(np.ones((2000, 3)))):
        assert isinstance(dx, Infinite)
        with np.errstate(invalid="ignore"):  # as in a walk
            masked = dx * np.zeros((2000, 3))
        np.testing.assert_array_equal(np.asarray(masked), 0)
