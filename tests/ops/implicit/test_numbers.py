"""Whole numbers, half precision and mixed precision in implicit operations."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

from .test_systems import FRAMEWORKS, arrays

RATES = np.array([1, 2])
Y0 = np.ones(2, np.float32)


def gradient(framework, f, x):
    """The gradient of a function's sum, by the framework's own means."""

    def loss(x):
        return gnp.sum(f(x))

    if framework == "numpy":
        return gs.grad(loss)(x)
    x = arrays(framework)(x)
    if framework == "jax":
        return pytest.importorskip("jax").grad(loss)(x)
    if framework == "torch":
        loss(x.requires_grad_()).backward()
        return x.grad
    with pytest.importorskip("tensorflow").GradientTape() as tape:
        tape.watch(x)
        y = loss(x)
    return tape.gradient(y, x)


def decay(t, y, rate=1):
    rate = gnp.astype(rate, y.dtype) if hasattr(rate, "dtype") else rate
    return -rate * y


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("times", [np.array([0.0, 1.0]), np.array([0, 1]), [0, 1]])
def test_times_of_any_numbers(framework, times):
    t = times if isinstance(times, list) else arrays(framework)(times)
    found = gradient(framework, lambda y: ops.odeint(decay, y, t)[-1], Y0)
    assert "float32" in str(found.dtype)
    np.testing.assert_allclose(found, np.exp(-1), rtol=1e-3)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_times_keep_their_numbers_in_their_gradient(framework):
    y0 = arrays(framework)(Y0)
    found = gradient(
        framework, lambda t: ops.odeint(decay, y0, t)[-1], np.array([0.0, 1.0])
    )
    np.testing.assert_allclose(found, [2 * np.exp(-1), -2 * np.exp(-1)], rtol=1e-3)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_whole_numbers_as_parameters(framework):
    rates, t = (arrays(framework)(x) for x in (RATES, np.array([0, 1], np.float32)))

    def times(x, rates):
        return x * gnp.astype(rates, x.dtype)

    found = gradient(framework, lambda y: ops.odeint(decay, y, t, rates)[-1], Y0)
    np.testing.assert_allclose(found, np.exp(-RATES), rtol=2e-3)
    for find in (
        lambda p: ops.root(lambda x, p, r: times(x, r) - p, 0 * p, p, rates),
        lambda p: ops.linear_solve(times, p, rates),
    ):
        np.testing.assert_allclose(gradient(framework, find, Y0), 1 / RATES)


def test_whole_numbers_forwards():
    for find in (
        lambda p: ops.root(lambda x, p, r: x * r - p, 0 * p, p, RATES),
        lambda p: ops.linear_solve(lambda x, r: x * r, p, RATES),
    ):
        tangent = gs.jvp(find, (np.ones(2),), (np.ones(2),))[1]
        np.testing.assert_allclose(tangent, 1 / RATES)
    end = lambda y: ops.odeint(decay, y, [0, 1], RATES)[-1]
    tangent = gs.jvp(end, (np.ones(2),), (np.ones(2),))[1]
    np.testing.assert_allclose(tangent, np.exp(-RATES), rtol=1e-6)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_parameter_of_more_digits(framework):
    y0, t = (arrays(framework)(x) for x in (Y0, np.array([0, 1], np.float32)))

    def end(rate):
        return ops.odeint(decay, y0, t, rate, rtol=1e-6, atol=1e-6)[-1]

    found = gradient(framework, end, np.array(2.0))
    np.testing.assert_allclose(found, -2 * np.exp(-2), rtol=1e-4)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_half_precision_is_solved_in_single(framework):
    p = np.array([2.0, 3.0], np.float16)
    for find, truth in (
        (lambda p: ops.root(lambda x, p: x**2 - p, p, p), 0.5 / np.sqrt(p)),
        (lambda p: ops.argmin(lambda x, p: gnp.sum((x - p) ** 2), 0 * p, p), 1),
        (lambda p: ops.fixed_point(lambda x, p: x / 2 + p, 0 * p, p), 2),
        (lambda p: ops.linear_solve(lambda x: 2 * x, p), 0.5),
        (lambda p: ops.odeint(decay, p, [0, 1])[-1], np.exp(-1)),
    ):
        found = gradient(framework, find, p)
        assert "float16" in str(found.dtype)
        np.testing.assert_allclose(np.asarray(found), truth, rtol=1e-3)
        assert "float16" in str(find(arrays(framework)(p)).dtype)


def test_each_unknown_keeps_its_numbers():
    x0 = {"a": np.ones(1, np.float32), "b": np.ones(1)}
    x = ops.root(lambda x: {"a": x["a"] - 1, "b": x["b"] ** 2 - 2}, x0)
    assert (x["a"].dtype, x["b"].dtype) == (np.float32, np.float64)
    assert x["b"][0] == pytest.approx(2**0.5, rel=1e-15)


def test_no_unknowns():
    assert ops.odeint(decay, np.ones(0), np.array([0.0, 1.0])).shape == (2, 0)
    assert ops.root(lambda x: x, np.ones(0)).shape == (0,)
    assert ops.argmin(lambda x: np.sum(x), np.ones((3, 0))).shape == (3, 0)


def test_what_grows_backwards_in_time_is_for_the_discrete_gradient():
    def end(y, **how):
        return ops.odeint(lambda t, y: -(y**3), y, np.array([0.0, 10.0]), **how)[-1]

    y = np.array(10.0, np.float32)
    with pytest.raises(gs.GradsmithError, match="gradient='discrete'"):
        gs.grad(lambda y: end(y, max_steps=500))(y)
    close = {"rtol": 1e-6, "atol": 1e-6}
    found = gs.grad(lambda y: end(y, gradient="discrete", **close))(y)
    assert found == pytest.approx((1 + 2 * 10 * 100) ** -1.5, rel=1e-3)
