"""Edges of differences, grids, interpolation and polynomials; what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from tests.rules.test_reductions import gradient

RNG = np.random.default_rng(9)

# Differences and grids


def test_differences_of_too_few_elements():
    for n in (1, 2, 3):
        dx = gradient(lambda x, n=n: np.diff(x, n=n), np.array([2.0]))
        np.testing.assert_array_equal(dx, [0])
    assert gradient(np.diff, np.zeros((3, 0))).shape == (3, 0)


def test_the_edges_of_differences_have_gradients():
    da, before = gradient(lambda a, b: np.diff(a, prepend=b), np.ones(3), np.ones(1))
    np.testing.assert_array_equal(da, [0, 0, 1])
    np.testing.assert_array_equal(before, [-1])
    da, end = gradient(lambda a, b: np.ediff1d(a, to_end=b), np.ones(3), np.ones(2))
    np.testing.assert_array_equal(da, [-1, 0, 1])
    np.testing.assert_array_equal(end, [1, 1])


def test_negative_order_of_differences():
    with pytest.raises(ValueError, match="non-negative"):
        np.diff(gs.Tensor([1.0, 2.0]), n=-1)


def test_coordinates_at_equal_distances_move_on_their_own():
    """NumPy takes a formula there in which only the first distance counts."""
    f, x = np.array([0.0, 1.0, 4.0, 9.0]), np.arange(4.0)
    _, pull = gs.vjp(np.gradient, f, x)
    dx = pull(np.array([0.0, 0.0, 1.0, 0.0]))[1]
    np.testing.assert_array_equal(dx != 0, [False, True, True, True])


def test_gradient_of_an_image_returns_a_tuple():
    y = np.gradient(gs.Tensor(RNG.standard_normal((3, 4))))
    assert isinstance(y, tuple)
    assert [part.shape for part in y] == [(3, 4), (3, 4)]


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        ((1.0, 2.0, 3.0), {}, TypeError, "one spacing or 2"),
        ((np.arange(5.0),), {"axis": 0}, ValueError, "3 coordinates"),
        ((), {"edge_order": 3}, ValueError, "edge_order"),
        ((), {"edge_order": 2, "axis": 1}, ValueError, "edge_order is 2"),
    ],
)
def test_gradient_says_what_it_wants(args, options, error, message):
    with pytest.raises(error, match=message):
        np.gradient(gs.Tensor(np.ones((3, 2))), *args, **options)


def test_trapezoid_with_coordinates_by_keyword():
    dy, dx = gradient(lambda y, x: np.trapezoid(y, x=x), np.ones(3), np.arange(3.0))
    np.testing.assert_array_equal(dy, [0.5, 1, 0.5])
    np.testing.assert_array_equal(dx, [-1, 0, 1])


# Convolutions


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_convolutions_keep_their_dtype(dtype):
    da, dv = gradient(np.convolve, np.ones(4, dtype), np.ones(2, dtype))
    assert da.dtype == dv.dtype == dtype
    np.testing.assert_array_equal(dv, [4, 4])


def test_an_empty_convolution_is_numpys_error():
    with pytest.raises(ValueError, match="empty"):
        np.convolve(gs.Tensor([1.0]), gs.Tensor([]))


# Interpolation

XP, FP = np.array([0.0, 1.0, 3.0]), np.array([2.0, 4.0, 3.0])


def test_slopes_at_the_knots_and_beyond():
    x = np.array([-1.0, 0.0, 1.0, 3.0, 4.0, np.nan])
    dx, dxp, dfp = gradient(np.interp, x, XP, FP)
    np.testing.assert_allclose(dx, [0, 2, -0.5, -0.5, 0, 0])
    np.testing.assert_allclose(dfp, [2, 1, 2])
    assert dxp.shape == (3,)


def test_constants_beyond_the_knots_take_the_gradient():
    x = np.array([-1.0, 4.0])
    dfp = gradient(lambda fp: np.interp(x, gs.Tensor(XP), fp, left=0, right=0), FP)
    np.testing.assert_array_equal(dfp, [0, 0, 0])


def test_knots_that_coincide():
    dxs = gradient(
        np.interp, np.array([0.5, 1.0, 2.0]), np.array([0.0, 1, 1, 3]), FP[[0, 1, 2, 2]]
    )
    assert len(dxs) == 3


def test_interp_by_keywords():
    dx = gs.grad(lambda x: np.interp(x=x, xp=XP, fp=FP))(0.5)
    assert dx == 2


def test_a_followed_constant_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="options"):
        gs.grad(lambda c: np.interp(gs.Tensor(-1.0), XP, FP, left=c))(1.0)


# Polynomials


def test_a_double_root_stays_finite():
    assert gradient(np.roots, np.array([1.0, -2.0, 1.0])).shape == (3,)


def test_roots_at_zero_and_leading_zeros():
    p = np.array([0.0, 1.0, -3.0, 2.0, 0.0])  # x (x - 1) (x - 2)
    y, pull = gs.vjp(np.roots, p)
    np.testing.assert_allclose(y, [2, 1, 0], atol=1e-14)
    np.testing.assert_allclose(pull(np.array([0.0, 0.0, 1.0]))[0], [0, 0, 0, 0, -0.5])
    np.testing.assert_allclose(pull(np.array([0.0, 1.0, 0.0]))[0], [1, 1, 1, 1, 1])
    assert gradient(np.roots, np.array([3.0])).shape == (1,)


def test_polymul_leaves_leading_zeros_out():
    a, b = gradient(np.polymul, np.array([0.0, 2.0, 3.0]), np.array([0.0, 0.0]))
    np.testing.assert_array_equal(a, [0, 0, 0])
    np.testing.assert_array_equal(b, [0, 5])


def test_poly_of_conjugate_roots_is_real():
    zeros = np.array([1 + 2j, 1 - 2j])
    y, pull = gs.vjp(np.poly, zeros)
    assert y.dtype == np.float64
    np.testing.assert_allclose(pull(np.array([0.0, 1.0, 0.0]))[0], [-1, -1])
    assert np.poly(gs.Tensor([])) == 1.0


def test_a_polynomial_of_a_polynomial_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="poly1d"):
        np.polyval(gs.Tensor([1.0, 2.0]), np.poly1d([1, 2]))


def test_errors_of_polynomials():
    p = gs.Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="polyint"):
        np.polyder(p, -1)
    with pytest.raises(ValueError, match="polyder"):
        np.polyint(p, -1)
    with pytest.raises(ValueError, match="one constant or 3"):
        np.polyint(p, 3, [1.0, 2.0])
    with pytest.raises(TypeError, match="first as long"):
        np.polyfit(p, np.ones(3), 1)
    with pytest.raises(ValueError, match="unscaled"):
        np.polyfit(p, p, 1, cov=True)
    with pytest.raises(ValueError, match="square"):
        np.poly(gs.Tensor(np.ones((2, 3))))


def test_a_fit_through_too_few_points_warns():
    with pytest.warns(np.exceptions.RankWarning):
        np.polyfit(gs.Tensor([1.0, 1.0]), gs.Tensor([1.0, 2.0]), 1)


def test_a_full_fit_returns_what_numpy_returns():
    x, y = np.linspace(0, 1, 6), RNG.standard_normal(6)
    ours = np.polyfit(gs.Tensor(x), y, 2, full=True)
    for got, expected in zip(ours, np.polyfit(x, y, 2, full=True), strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected)
