"""Ties, bounds and other edges of the functions that choose elements."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from tests.rules.test_reductions import gradient

RNG = np.random.default_rng(5)

# Ties


@pytest.mark.parametrize(
    "fn", [np.max, np.amax, np.nanmax, np.maximum.reduce, np.fmax.reduce]
)
def test_tied_maxima_share_equally(fn):
    x = np.array([[3.0, 1.0, 3.0], [3.0, 2.0, 0.0]])
    np.testing.assert_array_equal(
        gradient(lambda x: fn(x, axis=1), x), [[0.5, 0, 0.5], [1, 0, 0]]
    )
    np.testing.assert_allclose(
        gradient(lambda x: fn(x, axis=None), x), [[1 / 3, 0, 1 / 3], [1 / 3, 0, 0]]
    )
    np.testing.assert_allclose(
        gradient(lambda x: fn(x[None], axis=(0, 2), keepdims=True), x),
        [[0.5, 0, 0.5], [1, 0, 0]],
    )


def test_tied_minima_share_equally():
    for fn in (np.min, np.amin, np.nanmin, np.minimum.reduce, np.fmin.reduce):
        np.testing.assert_array_equal(
            gradient(lambda x, fn=fn: fn(x, axis=0), np.array([1.0, 2.0, 1.0])),
            [0.5, 0, 0.5],
        )


# What is chosen is a constant to an outer tape


def test_the_gradient_of_a_minimum_is_a_constant_to_an_outer_tape():
    x = gs.Tensor(RNG.normal(size=(30, 4)))
    with gs.GradientTape() as tape:
        tape.watch(x)
        dx = gs.grad(lambda x: np.sum(np.min(x, axis=1)))(x)
    assert tape.mark_of(dx) is None  # so nothing is computed for it
    told = tape.explain(dx, x)
    assert "the gradient of a maximum or minimum" in told
    assert "it is constant until another element is chosen" in told
    assert tape.gradient(dx, x) is None


@pytest.mark.parametrize("fn", [np.max, np.min])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_what_reaches_a_chosen_element_is_still_differentiated(fn, axis):
    x, v = RNG.normal(size=(2, 3, 4))
    x[1, 1] = x[1, 2] = x[0, 1] = fn(x)  # ties
    f = lambda x: np.sum(np.sin(fn(x, axis=axis)))
    by_rows = gs.grad(lambda x: np.sum(gs.grad(f)(x) * v))(x)
    np.testing.assert_allclose(by_rows, gs.hvp(f, (x,), (v,)), rtol=1e-12)
    y = fn(x, axis=axis, keepdims=True)
    shares = (x == y) / np.sum(x == y, axis=axis, keepdims=True)
    expected = -np.sin(y) * np.sum(shares * v, axis=axis, keepdims=True) * shares
    np.testing.assert_allclose(by_rows, expected, rtol=1e-12)


# Many short rows are reduced by columns


@pytest.mark.parametrize("fn", [np.max, np.min])
@pytest.mark.parametrize(
    "shape", [(100, 3), (70, 16), (100, 17), (5, 40, 2), (100, 1), (64, 999)]
)
def test_short_rows_have_the_extrema_that_numpy_finds(fn, shape):
    x = RNG.normal(size=shape).astype(np.float32)
    x[0, 0], x[1, -1] = np.nan, -np.inf
    for each in (x, np.asfortranarray(x), x[::-1]):
        for axis in (-1, x.ndim - 1, 0):
            y, expected = fn(gs.Tensor(each), axis=axis), fn(each, axis=axis)
            assert y.shape == expected.shape
            assert y.dtype == expected.dtype
            np.testing.assert_array_equal(y.numpy(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("n", [7, 100, 4000])  # rows; the last ones are large
def test_shares_of_rows_are_those_of_each_row(dtype, ties, nan, n):
    x = RNG.normal(size=(n, 100)).astype(dtype)
    v = RNG.normal(size=n).astype(dtype)
    if ties:
        x[1, 2:5] = x[1].min() - 1
    if nan:  # as many ties as rows if there is a tie of two elsewhere
        x[3, 1] = np.nan
        x[2, 7:9] = x[2].min() - 1
    for each in (x, np.asfortranarray(x), x[::-1]):
        dx = gs.grad(lambda x: np.sum(v * np.min(x, axis=-1)))(each)
        same = each == each.min(axis=1, keepdims=True)
        count = np.maximum(same.sum(axis=1, keepdims=True), 1).astype(dtype)
        np.testing.assert_array_equal(dx, np.where(same, v[:, None] / count, 0))
        assert dx.dtype == dtype


def test_an_infinite_share_reaches_no_other_element():
    x = np.array([[1.0, 2.0], [4.0, 3.0]])
    with np.errstate(over="ignore"):
        dx = gs.grad(lambda x: np.sum(np.exp(710 + np.min(x, axis=1))))(x)
    np.testing.assert_array_equal(dx, [[np.inf, 0], [0, np.inf]])


def test_short_rows_have_gradients():
    x = np.round(RNG.normal(size=(200, 5)), 1)  # with ties
    dx = gradient(lambda x: np.min(x, axis=1), x)
    ties = x == x.min(axis=1, keepdims=True)
    np.testing.assert_array_equal(dx, ties / ties.sum(axis=1, keepdims=True))


def test_an_initial_value_that_ties_takes_its_share():
    x = np.array([[0.0, -1.0, 0.0], [-1.0, -2.0, -3.0], [1.0, 0.0, 0.0]])
    dx = gradient(lambda x: np.max(x, axis=1, initial=0.0), x)
    np.testing.assert_allclose(dx, [[1 / 3, 0, 1 / 3], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(
        gradient(lambda x: np.max(x, initial=0.0), x[0]), [1 / 3, 0, 1 / 3]
    )


def test_ties_outside_the_mask_do_not_count():
    x, where = np.array([2.0, 2.0, 1.0]), np.array([True, False, True])
    dx = gradient(lambda x: np.max(x, initial=0.0, where=where), x)
    np.testing.assert_array_equal(dx, [1, 0, 0])


def test_the_maximum_is_the_last_of_the_sorted():
    x = np.array([1.0, 3.0, 2.0, 3.0, 3.0])
    by_sorting = gradient(lambda x: np.sort(x)[-1], x)
    np.testing.assert_allclose(by_sorting, gradient(np.max, x))
    by_partition = gradient(lambda x: np.partition(x, 4)[4], x)
    np.testing.assert_allclose(by_partition, gradient(np.max, x))
    by_quantile = gradient(lambda x: np.quantile(x, 1.0), x)
    np.testing.assert_allclose(by_quantile, gradient(np.max, x))


def test_sort_takes_the_mean_over_ties_both_ways():
    x, dy = np.array([[2.0, 1.0, 2.0], [0.0, 0.0, 0.0]]), np.array([[1.0, 2, 4]] * 2)
    _, pull = gs.vjp(np.sort, x)
    np.testing.assert_allclose(pull(dy)[0], [[3, 1, 3], [7 / 3] * 3])
    _, tangent = gs.jvp(np.sort, (x,), (dy,))
    np.testing.assert_allclose(tangent, [[2, 2.5, 2.5], [7 / 3] * 3])


def test_tied_medians():
    np.testing.assert_allclose(
        gradient(np.median, np.array([2.0, 3.0, 3.0, 5.0])), [0, 0.5, 0.5, 0]
    )
    np.testing.assert_allclose(
        gradient(np.median, np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5]
    )


def test_running_maxima_share_with_the_earlier():
    x = np.array([1.0, 3.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(gradient(np.maximum.accumulate, x), [1, 2.5, 0, 0.5, 1])
    _, tangent = gs.jvp(np.maximum.accumulate, (x,), (np.arange(5.0),))
    np.testing.assert_allclose(tangent, [0, 1, 1, 2, 4])


def test_chosen_elements_have_no_curvature():
    for fn in (np.max, np.median, np.ptp, lambda x: np.sort(x)[1]):
        h = gs.hessian(lambda x, fn=fn: fn(x))(np.array([1.0, 3.0, 2.0]))
        np.testing.assert_array_equal(h, np.zeros((3, 3)))


def test_second_derivatives_of_extrema_of_rows():
    x = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]])
    for fn in (np.max, np.min):
        places = fn(x, axis=1, keepdims=True) == x
        h = gs.hessian(lambda x, fn=fn: np.sum(fn(x, axis=1) ** 3))(x)
        expected = np.diag((6 * x * places).ravel()).reshape(2, 3, 2, 3)
        np.testing.assert_allclose(h, expected)


# NaN


def test_nan_among_the_elements():
    x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    for fn in (np.nanmax, np.nanmedian, lambda x, axis: np.nanquantile(x, 1.0, axis)):
        with pytest.warns(RuntimeWarning):
            dx = gradient(lambda x, fn=fn: fn(x, axis=1), x)
        assert (dx[0, 1], dx[0].sum()) == (0, 1)
        np.testing.assert_array_equal(dx[1], [0, 0, 0])
    for fn in (np.max, np.median, np.maximum.accumulate, np.sort):
        assert gradient(lambda x, fn=fn: fn(x, axis=1), x).shape == x.shape


# Quantiles


def test_a_followed_fraction_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="options"):
        gs.grad(lambda q: np.quantile(gs.Tensor([1.0, 2.0]), q))(0.5)
    with pytest.raises(gs.UnsupportedOperationError, match="options"):
        gs.grad(lambda q: np.quantile(q, q))(np.array(0.5))


def test_overwrite_input_leaves_a_tensor_as_it_is():
    x = np.array([3.0, 1.0, 2.0, 5.0])
    t = gs.Tensor(x)
    for fn in (np.median, np.nanmedian):
        fn(t, overwrite_input=True)
    np.quantile(t, 0.3, overwrite_input=True)
    np.testing.assert_array_equal(t.numpy(), x)


def test_elements_without_weight_are_not_chosen():
    x, weights = np.array([2.0, 2.0, 1.0]), np.array([1.0, 0.0, 0.5])
    dx = gradient(
        lambda x: np.quantile(x, 0.9, weights=weights, method="inverted_cdf"), x
    )
    np.testing.assert_array_equal(dx, [1, 0, 0])


def test_quantiles_of_many_elements():
    x = RNG.standard_normal(100_001)
    dx = gradient(lambda x: np.quantile(x, [0.1, 0.5]), x)
    assert np.count_nonzero(dx) <= 4
    np.testing.assert_allclose(dx.sum(), 2)


# Clipping


def test_elements_on_a_bound_keep_their_gradient():
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    for clip in (
        lambda x: np.clip(x, 0, 1),
        lambda x: np.clip(x, min=0.0, max=1.0),
        lambda x: x.clip(0, 1),
    ):
        np.testing.assert_array_equal(gradient(clip, x), [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(
        gradient(lambda x: np.clip(x, 0, None), x[:2]), [0, 1]
    )
    np.testing.assert_array_equal(
        gradient(lambda x: np.clip(x, None, 0), x[:3]), [1, 1, 0]
    )


def test_the_shares_of_x_and_its_bounds_sum_to_one():
    x, low, high = np.meshgrid(*[np.array([-1.0, 0.0, 1.0])] * 3)
    shares = gradient(np.clip, x, low, high)
    np.testing.assert_array_equal(sum(shares), np.ones((3, 3, 3)))


def test_clip_refuses_what_it_does_not_know():
    x = gs.Tensor([1.0, 2.0])
    with pytest.raises(gs.UnsupportedOperationError, match="dtype"):
        np.clip(x, 0, 1, dtype=np.float32)
    with pytest.raises(gs.UnsupportedOperationError, match="existing array"):
        np.clip(x, 0, 1, np.zeros(2))
    with pytest.raises(ValueError, match="not both"):
        np.clip(x, 0, 1, max=2)


def test_clip_keeps_float16():
    x = np.ones(3, np.float16)
    assert gradient(lambda x: np.clip(x, 0.0, 2.0), x).dtype == np.float16


# Pointwise functions


def test_replaced_numbers_get_no_gradient():
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    np.testing.assert_array_equal(gradient(lambda x: np.nan_to_num(x) / 1e308, x) != 0,
                                  [False, False, False, True])  # fmt: skip
    z = np.array([complex(np.nan, 1), complex(2, np.inf)])
    dz = gs.grad(
        lambda z: np.sum(np.real(np.nan_to_num(z)) + np.imag(np.nan_to_num(z)))
    )
    np.testing.assert_array_equal(dz(z), [1j, 1])


def test_nan_to_num_refuses_to_change_a_tensor():
    with pytest.raises(gs.UnsupportedOperationError, match="in place"):
        np.nan_to_num(gs.Tensor([1.0]), copy=False)


def test_angle_at_zero_and_of_real_numbers():
    np.testing.assert_array_equal(gradient(np.angle, np.array([0j, 2j])), [0, -0.5])
    np.testing.assert_array_equal(gradient(np.angle, np.array([-1.0, 0, 2])), [0, 0, 0])


def test_bessel_functions_agree_with_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-60, 60, 241), [1e-8, 24.999, 25.0, 700.0]])
    np.testing.assert_allclose(gradient(np.i0, x), special.i1(x), rtol=3e-14)
    second = gs.grad(lambda x: np.sum(gs.grad(lambda x: np.sum(np.i0(x)))(x)))(x)
    expected = (special.i0(x) + special.iv(2, x)) / 2
    np.testing.assert_allclose(second, expected, rtol=3e-14)
    third = gs.grad(lambda x: gs.grad(gs.grad(lambda x: np.i0(x)))(x))(1e-4)
    np.testing.assert_allclose(third, 3e-4 / 8, rtol=1e-6)


def test_maxima_beside_other_uses_on_a_persistent_tape():
    x = gs.Tensor([1.0, 3.0, 3.0])
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        m = np.max(x)
        y = np.sum(x * x) + 2 * m
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [2, 7, 7])
    np.testing.assert_array_equal(tape.gradient(m, x).numpy(), [0, 0.5, 0.5])
