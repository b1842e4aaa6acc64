"""Elementwise rules where a formula alone does not say what is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradsmith as gs


def slope(fn, x, dtype: Any = np.float64):
    """The derivative of an elementwise function at each of some points."""
    return gs.grad(lambda x: np.sum(fn(x)))(np.asarray(x, dtype))


MASKED = [  # a branch that np.where does not take, and what the other one gives
    (lambda x: np.where(x > 0, np.sqrt(x), 0), [4.0, 0.0, -1.0], [0.25, 0, 0]),
    (lambda x: np.where(x > 0, np.log(x), 0), [2.0, 0.0, -1.0], [0.5, 0, 0]),
    (lambda x: np.where(x > 0, np.log1p(x - 1), 0), [2.0, 0.0, -1.0], [0.5, 0, 0]),
    (lambda x: np.where(x != 0, 1 / x, 0), [2.0, 0.0], [-0.25, 0]),
    (lambda x: np.where(x != 0, np.reciprocal(x), 0), [2.0, 0.0], [-0.25, 0]),
    (lambda x: np.where(x != 0, np.sin(x) / x, 1), [0.0], [0]),
    (lambda x: np.where(x > 0, x**0.5, 0), [4.0, 0.0, -1.0], [0.25, 0, 0]),
    (lambda x: np.where(x > 0, x**-1.5, 0), [1.0, 0.0, -1.0], [-1.5, 0, 0]),
    (lambda x: np.where(x > 0, x**x, 0), [1.0, 0.0, -1.5], [1, 0, 0]),
    (lambda x: np.where(abs(x) < 1, np.arcsin(x), 0), [0.0, 1.0, -3.0], [1, 0, 0]),
    (lambda x: np.where(abs(x) < 1, np.arccos(x), 0), [0.0, 1.0, -3.0], [-1, 0, 0]),
    (lambda x: np.where(abs(x) < 1, np.arctanh(x), 0), [0.0, 1.0, -3.0], [1, 0, 0]),
    (lambda x: np.where(x > 1, np.arccosh(x), 0), [1.25, 1.0, -3.0], [4 / 3, 0, 0]),
    (lambda x: np.where(x < 0, np.expm1(x), x), [0.0, 1e3], [1, 1]),  # ELU
    (lambda x: np.where(x < 0, np.exp(x), x), [0.0, 1e3], [1, 1]),
    (lambda x: np.where(x < 0, np.sinh(x), x), [0.0, 1e3], [1, 1]),
    (lambda x: np.where(x > 0, np.logaddexp(x, -np.inf), 0), [2.0, -np.inf], [1, 0]),
    (lambda x: np.where(x > 0, np.hypot(x, 0 * x), 0), [2.0, 0.0], [1, 0]),
    (lambda x: np.where(x > 0, np.arctan2(x, x), 0), [2.0, 0.0], [0, 0]),
    (lambda x: np.where(x > 0, np.remainder(3.5, x), 0), [2.0, 0.0], [-1, 0]),
    (lambda x: np.where(x > 0, np.fmod(3.5, x), 0), [2.0, 0.0], [-1, 0]),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("fn", "x", "expected"), MASKED)
def test_masked_branch(fn, x, expected, dtype):
    with np.errstate(all="ignore"):
        dx = slope(fn, x, dtype)
        np.testing.assert_allclose(dx, expected, rtol=4 * np.finfo(dtype).eps)
        second = gs.grad(lambda x: np.sum(gs.grad(lambda x: np.sum(fn(x)))(x)))
        assert np.isfinite(second(np.asarray(x, dtype))).all()


def test_norm_at_zero():
    x = np.zeros(3)
    assert not gs.grad(lambda x: np.sqrt(np.sum(x * x)))(x).any()
    assert not gs.hessian(lambda x: np.sqrt(np.sum(x * x)))(x).any()


@pytest.mark.parametrize("choice", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_ties_share(choice):
    x = np.array([1.0, 2.0, -np.inf])
    dx1, dx2 = gs.grad(lambda a, b: np.sum(choice(a, b)), (0, 1))(x, x)
    assert dx1.tolist() == dx2.tolist() == [0.5, 0.5, 0.5]


def test_choices_and_nan():
    x, y = np.array([1.0, np.nan]), np.array([np.nan, 1.0])
    dx, dy = gs.grad(lambda a, b: np.nansum(np.fmax(a, b)), (0, 1))(x, y)
    assert dx.tolist() == [1, 0]
    assert dy.tolist() == [0, 1]


def test_relu_in_float32():
    dx = slope(lambda x: np.maximum(0, x), [-1.0, 0.0, 2.0], np.float32)
    assert dx.tolist() == [0, 0.5, 1]
    assert dx.dtype == np.float32


KINKS = [
    (np.absolute, 0),
    (np.fabs, 0),
    (np.sqrt, 0),
    (np.cbrt, 0),
    (np.reciprocal, 0),
    (lambda x: np.copysign(x, -1.0), 0),
    (lambda x: x / 0.0, 0),
    (lambda x: x**0, 0),
    (lambda x: x**1, 1),
    (lambda x: x**0.3, 0),
    (lambda x: 0.0**x, 0),
    (np.sinc, 0),
]


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(("fn", "expected"), KINKS)
def test_at_zero(fn, expected, zero):
    with np.errstate(all="ignore"):
        assert slope(fn, zero) == expected


TAILS = [  # correct to the last digits, where the obvious formula has none left
    (np.tanh, 12.0, 1.510053817597625974e-10),
    (np.tanh, -20.0, 1.6993417021166355837e-17),
    (np.expm1, -40.0, 4.248354255291588995e-18),
    (np.log1p, -1 + 2.0**-50, 2.0**50),
    (np.arcsinh, 1e10, 1e-10),
    (np.arccosh, 1e200, 1e-200),
    (np.arctan, 1e100, 1e-200),
    (lambda x: np.logaddexp(x, 1e4), 1e4 - 40, 4.248354255291588995e-18),
    (lambda x: np.logaddexp2(x, 0), -60.0, 2.0**-60),
    (np.sinc, 1e-5, -3.289868133371756172e-5),
    (np.sinc, 0.5, -1.2732395447351626862),
    (np.sinc, 0.64, -1.3684427311721678772),
    (np.sinc, 10.25, 0.06684369235572002958),
    (lambda x: np.hypot(x, 1e200), 1e200, 0.5**0.5),
    (lambda x: np.arctan2(x, 1e200), 1e200, 0.5e-200),
    (lambda x: np.arctan2(x, 1e-200), 1e-200, 0.5e200),
    (lambda x: np.remainder(x, 0.1), 1.0, 1.0),
]


@pytest.mark.parametrize(("fn", "x", "expected"), TAILS)
def test_accuracy_in_the_tails(fn, x, expected):
    np.testing.assert_allclose(slope(fn, x), expected, rtol=1e-14)


def test_quotient_is_that_of_the_remainder():
    """1 // 0.1 is 9, since 0.1 is a little more; 1 / 0.1 is rounded to 10."""
    assert slope(lambda x: np.remainder(1.0, x), 0.1) == -9
    assert slope(lambda x: np.fmod(-1.0, x), 0.1) == 9


@pytest.mark.parametrize("fn", [np.arctan, np.arcsinh, np.tan])
def test_float16_does_not_overflow(fn):
    x = np.array([300.0, 1.5], np.float16)
    truth = slope(fn, x.astype(float))
    np.testing.assert_allclose(slope(fn, x, np.float16), truth, rtol=5e-3)


NUMBERS = [
    lambda x: x / 3,
    lambda x: 3 / x,
    lambda x: 2.0**x,
    lambda x: x**2.5,
    lambda x: x**-1,
    lambda x: x * 3 + 1 - x / 2,
    lambda x: np.maximum(x, 0.5),
    lambda x: np.logaddexp(x, 0.5),
    lambda x: np.hypot(3.0, x),
    lambda x: np.arctan2(x, 2),
    lambda x: np.copysign(x, -1.0),
    lambda x: np.ldexp(x, 3),
    lambda x: np.remainder(x, 0.3),
    lambda x: np.float_power(x, 2),
    lambda x: x / [1.0, 2.0],
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("fn", NUMBERS)
def test_numbers_promote_nothing(fn, dtype):
    x = np.array([0.7, 1.3], dtype)
    assert slope(fn, x, dtype).dtype == dtype
    y, dy = gs.jvp(fn, (x,), (np.ones_like(x),))
    assert y.dtype == dy.dtype == fn(x).dtype


@pytest.mark.parametrize("x", [2.0, np.float32(2), np.array(2.0), np.array(2.0, "e")])
def test_scalars(x):
    y, dx = gs.value_and_grad(lambda x: x**3 / 2 + np.sqrt(x) * 0)(x)
    assert (y, dx) == (4, 6)
    assert dx.dtype == np.asarray(x).dtype


def test_zero_and_infinite_exponents():
    x = np.array([0.0, 0.5, 2.0])
    with np.errstate(all="ignore"):
        assert slope(lambda x: x**0.0, x).tolist() == [0, 0, 0]
        assert slope(lambda x: x**np.inf, x).tolist() == [0, 0, np.inf]
        dx, dp = gs.grad(lambda x, p: np.sum(x**p), (0, 1))(-x, np.array([0.5, 2.0, 3]))
    assert dx.tolist() == [0, -1, 12]  # a negative base to a whole power has a slope
    assert dp.tolist() == [0, 0, 0]  # in its exponent it has none


def test_modf_keeps_the_values_of_numpy():
    x = np.array([-1.5, 2.25, np.inf, -0.0])
    fraction, whole = np.modf(gs.Tensor(x))
    for got, expected in zip((fraction, whole), np.modf(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), expected)
        assert (np.signbit(np.asarray(got)) == np.signbit(expected)).all()


# The gradient of a real loss is dL/dRe + i dL/dIm: it points uphill.


def test_complex_gradient_points_uphill():
    z = np.array([3 + 4j, -1j, 0])
    np.testing.assert_allclose(
        gs.grad(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * z, atol=1e-15
    )
    np.testing.assert_allclose(slope(np.abs, z, complex), [0.6 + 0.8j, -1j, 0])


def test_complex_gradient_of_an_analytic_function():
    z = np.array([0.3 + 0.4j])
    dz = gs.grad(lambda z: np.sum(np.real(np.sin(z))))(z)
    np.testing.assert_allclose(dz, np.conj(np.cos(z)))


def test_real_input_of_a_complex_result():
    x = np.array([0.5, 2.0])
    dx = gs.grad(lambda x: np.sum(np.real((1 + 2j) * x)))(x)
    assert dx.dtype == x.dtype
    assert dx.tolist() == [1, 1]


@pytest.mark.parametrize("fn", [np.tanh, np.tan, np.exp, np.arcsinh, np.arctan])
def test_complex_far_out_is_not_nan(fn):
    z = np.array([800 + 1j, 1 + 800j, 1e200 + 1e200j])
    with np.errstate(all="ignore"):
        dz = gs.grad(lambda z: np.sum(np.real(fn(z))))(z)
    assert not np.isnan(dz[:2]).any()


def test_a_narrow_integer_exponent_does_not_wrap_around():
    x, p = np.array([1.01]), np.array([-128], np.int8)
    dx = gs.grad(lambda x: np.sum(x**p))(x)
    np.testing.assert_allclose(dx, -128 * 1.01**-129.0, rtol=1e-12)


def test_a_neighbour_moves_along():
    x = np.array([0.1, -2.0, 1e-300, 0.0])
    y, pull = gs.vjp(lambda x: np.nextafter(x, np.inf), x)
    np.testing.assert_array_equal(y, np.nextafter(x, np.inf))
    np.testing.assert_array_equal(pull(np.arange(4.0))[0], np.arange(4.0))
    f = lambda to: np.sum(np.nextafter(x, to))
    np.testing.assert_array_equal(gs.grad(f)(np.ones(4)), 0)
