"""Cotangents in the shape of the value they belong to."""

import numpy as np
import pytest

from gradsmith.core.cotangent import stack_of_rows, unbroadcast

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
