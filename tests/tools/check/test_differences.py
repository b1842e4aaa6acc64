"""Differences know their own error, and kinks from smooth places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.tools.check.differences import slope
from gradsmith.tools.check.noise import noise_of

SMOOTH = {
    "exp": (np.exp, np.exp),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "cube": (lambda x: x**3, lambda x: 3 * x**2),
    "log": (np.log, lambda x: 1 / x),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}


def found(f, x, v):
    y = f(x)
    noise = noise_of(f, x, y, eps=2.0**-52, random=np.random.default_rng(0))
    return slope(f, x, v, y=y, noise=noise)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=40)
@given(st.floats(1e-6, 1e4))
def test_the_error_is_one(name, x):
    f, df = SMOOTH[name]
    x = np.array([x])
    with np.errstate(all="ignore"):
        s = found(f, x, x)
        truth = df(x) * x
    # A sine of 10**4 waves in one step is known to be unknown: its error is large.
    if np.isfinite(truth) and s.error < 1e-3 * abs(s.low):
        assert abs(s.low[0] - truth[0]) <= 8 * s.error[0] + 1e-14 * abs(truth[0])


def test_it_is_sharp_where_the_function_is_smooth():
    x = np.linspace(0.5, 2, 20)
    s = found(np.exp, x, x)
    assert np.all(s.error < 1e-9 * np.exp(x) * x)
    np.testing.assert_allclose(s.low, np.exp(x) * x, rtol=1e-10)


def test_a_kink_has_two_ends():
    s = found(np.abs, np.zeros(2), np.array([1.0, -2.0]))
    np.testing.assert_array_equal(s.low, [-1, -2])
    np.testing.assert_array_equal(s.high, [1, 2])
    assert np.all(s.error < 1e-9)


def test_a_kink_near_by_is_none():
    s = found(np.abs, np.array([0.003]), np.array([1.0]))
    assert s.low == s.high
    assert abs(s.low[0] - 1) < 1e-9


def test_a_jump_and_a_vertical_slope_do_not_settle():
    jump = found(np.sign, np.zeros(1), np.ones(1))
    steep = found(lambda x: np.sqrt(np.abs(x)), np.zeros(1), np.ones(1))
    assert jump.error[0] > 0.1 * abs(jump.high[0])
    assert steep.error[0] > 0.1 * abs(steep.high[0])


def test_a_noisy_function_is_known_to_be_one():
    noisy = lambda x: (x + 1e6) - 1e6
    x = np.linspace(0.1, 1, 50)
    s = found(noisy, x, x)
    assert np.median(s.error) > 1e-9
    assert np.mean(np.abs(s.low - x) <= 8 * s.error) > 0.95
