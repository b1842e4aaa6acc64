"""The examples: each runs, and its gradient is the one it promises."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import gradsmith as gs
from examples import __main__ as demo
from examples import (
    clipped_loss,
    cubic_layer,
    five_frameworks,
    guided_backprop,
    leaky_relu,
    linear_model,
    one_term,
    piecewise,
    square,
    stable_softmax,
    two_outputs,
    watched_constant,
)

X = np.array([-1.5, -0.2, 0.3, 2.0])


def gradient(fn, *args, argnums=0):
    return gs.grad(lambda *a: np.sum(fn(*a)), argnums)(*args)


@pytest.mark.parametrize("name", demo.NAMES)
def test_reports(name):
    assert list(import_module(f"examples.{name}").report())


def test_demo_shows_all():
    result = subprocess.run(
        [sys.executable, "-m", "examples"], capture_output=True, text=True, check=True
    )
    assert "All 13 examples ran." in result.stdout
    assert result.stderr == ""


def test_square():
    np.testing.assert_array_equal(square.square(X), X**2)
    np.testing.assert_array_equal(gradient(square.square, X), 2 * X)


def test_leaky_relu():
    relu = leaky_relu.leaky_gradient_relu
    np.testing.assert_array_equal(relu(X), [0, 0, 0.3, 2.0])
    np.testing.assert_array_equal(gradient(relu, X), [0.01, 0.01, 1, 1])


def test_stable_softmax_agrees_with_autodiff_and_survives_large_inputs():
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    ours = gradient(lambda x: weights * stable_softmax.softmax(x), X)
    naive = gradient(lambda x: weights * stable_softmax.naive_softmax(x), X)
    np.testing.assert_allclose(ours, naive, rtol=1e-12)
    large = gs.grad(lambda x: stable_softmax.softmax(x)[0])(np.array([1e3, 999.0]))
    p = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(large, [p * (1 - p), -p * (1 - p)], rtol=1e-12)


@pytest.mark.parametrize("name", five_frameworks.FRAMEWORKS)
def test_five_frameworks_agree(name):
    x = np.array([1000.0, 999.0, 0.0], np.float32)
    gradient, tangent = five_frameworks.FRAMEWORKS[name](x)
    p = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(gradient, [p - p * p, p * p - p, 0], rtol=1e-6)
    expected = [p * (1000 - (1000 * p + 999 * (1 - p))), 0, 0]
    np.testing.assert_allclose(tangent[0], expected[0], rtol=1e-3)


def test_watched_constant():
    loss, dx = watched_constant.loss_and_gradient([1.0, 2.0, 3.0])
    assert loss.item() == 14
    np.testing.assert_array_equal(dx.numpy(), [2, 4, 6])


def test_two_outputs():
    x, y, dz, dw = 2.0, 3.0, 0.7, -1.1
    _, pull = gs.vjp(two_outputs.z_and_w, x, y)
    dx, dy = pull((dz, dw))
    assert dx == pytest.approx(dz * (y + np.cos(x)), rel=1e-15)
    assert dy == pytest.approx(dz * x + dw * 2 * y, rel=1e-15)


def test_piecewise_chooses_its_gradient_at_the_kink():
    dx = gradient(piecewise.bent, np.array([-1.0, -1e-300, 0.0, 1e-300, 1.0]))
    np.testing.assert_array_equal(dx, [1, 1, 1.5, 2, 2])


def test_linear_model_learns():
    weights, bias, losses = linear_model.train()
    np.testing.assert_allclose(weights, linear_model.TRUE_WEIGHTS, atol=5e-3)
    assert bias == pytest.approx(linear_model.TRUE_BIAS, abs=5e-3)
    assert losses[-1] < 1e-3 * losses[0]


def test_clipped_loss_agrees_with_autodiff_inside_the_bounds():
    y_true, y_pred = np.array([1.0, 0.0, 1.0]), np.array([0.9, 0.2, 0.4])
    ours = gs.grad(clipped_loss.loss, argnums=1)(y_true, y_pred)
    plain = gs.grad(clipped_loss.plain_loss, argnums=1)(y_true, y_pred)
    np.testing.assert_allclose(ours, plain, rtol=1e-14)


def test_clipped_loss_has_no_gradient_outside_the_bounds_nor_for_labels():
    y_true, y_pred = gs.Tensor([1.0, 0.0]), gs.Tensor([-0.3, 1.5])
    with gs.GradientTape() as tape:
        tape.watch([y_true, y_pred])
        value = clipped_loss.loss(y_true, y_pred)
    for_labels, for_predictions = tape.gradient(value, [y_true, y_pred])
    assert for_labels is None
    assert "declares no gradient for 'y_true'" in tape.explain(value, y_true)
    np.testing.assert_array_equal(for_predictions.numpy(), [0, 0])


def test_cubic_layer_finds_its_weight():
    x = np.linspace(-1, 1, 50)
    layer = cubic_layer.CubicLayer(initial=0.8)
    losses = cubic_layer.fit(layer, x, (1.5 * x) ** 3)
    assert layer.w.item() == pytest.approx(1.5, abs=1e-3)
    assert losses[-1] < 1e-5 * losses[0]


@pytest.mark.parametrize("name", guided_backprop.FRAMEWORKS)
def test_guided_backprop_changes_the_gradient(name):
    _, run = guided_backprop.FRAMEWORKS[name]
    plain, changed, record = run(np.ones((1, 8, 8), np.float32))
    assert record.count() == 2
    assert not np.allclose(plain, changed)


def test_one_term_learns_by_the_other_gradient_alone():
    rounded = one_term.rounded_misfit
    through = gs.override(rounded, {np.round: one_term.straight_through})
    assert rounded(one_term.trained(rounded)) > 1
    assert rounded(one_term.trained(through)) < 0.01
