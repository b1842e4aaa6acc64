"""The examples: each runs, and its gradient is the one it promises."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from functools import cache, partial
from importlib import import_module

import numpy as np
import pytest

import examples
import gradsmith as gs
import gradsmith.numpy as gnp
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
    sparse_solve,
    square,
    stable_softmax,
    two_outputs,
    watched_constant,
)
from examples.fluid import solver as fluid
from gradsmith.core.arrays import FRAMEWORKS

# PyTorch's own, when it compiles
pytestmark = pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")

X = np.array([-1.5, -0.2, 0.3, 2.0])


def gradient(fn, *args, argnums=0):
    return gs.grad(lambda *a: np.sum(fn(*a)), argnums)(*args)


@cache
def shown(*options):
    """What the demo prints, and then which packages it loaded."""
    code = "from examples.__main__ import main; main(); import sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code, *options],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr == ""
    *lines, modules = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    return "\n".join(lines), modules.split()


def test_the_demo_needs_numpy_alone():
    text, modules = shown()
    assert f"All {len(demo.NAMES)} examples ran." in text
    assert "not installed" not in text
    assert not {"jax", "mlx", "scipy", "tensorflow", "torch"} & {*modules}


def test_the_demo_names_what_is_wrong_and_gives_each_verdict_once():
    text, _ = shown()
    assert "the mean over them instead of the sum" in " ".join(text.split())
    assert "inf in np.exp" in text
    assert text.count("✗ wrong") == 1
    operations = [op for op in PORTABLE if op.__module__.split(".")[1] in demo.NAMES]
    assert text.count("✓ right:") + text.count("✓ as declared:") == len(operations)


def test_the_whole_demo_shows_the_same_numbers_in_all_frameworks():
    text, _ = shown("--all")
    rows = [line.split()[1:5] for line in text.splitlines() if "_" not in line]
    assert rows.count(["0.196612", "-0.196612"] * 2) == 5


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
    _, run, _ = five_frameworks.FRAMEWORKS[name]
    gradient, tangent = run(x, np.array([1, 0, 0], np.float32))
    p = 1 / (1 + np.exp(-1.0))
    for found in (gradient, tangent):
        np.testing.assert_allclose(found, [p - p * p, p * p - p, 0], rtol=1e-6)


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
    through = gs.override(rounded, {gnp.round: one_term.straight_through})
    assert rounded(one_term.trained(rounded)) > 1
    assert rounded(one_term.trained(through)) < 0.01


# --- an example can be copied into code for any framework ----------------------------

LABELS = np.array([1, 0, 1, 0])  # integers: data, not differentiated
ROD, ENTRIES = sparse_solve.heat_equation(5)
PORTABLE = {
    clipped_loss.loss: (LABELS, np.array([0.9, 0.2, -0.3, 1.5])),
    cubic_layer.cube: (X,),
    fluid.pressure: (np.outer(X, X), partial(fluid.Fluid, 4)),
    leaky_relu.leaky_gradient_relu: (X,),
    linear_model.mean_squared_error: (LABELS, X),
    piecewise.bent: (np.array([-1.0, 0.0, 1.0]),),
    sparse_solve.SparseSolver.solve: (ROD, ENTRIES @ np.arange(1.0, 6.0), X),
    square.square: (X,),
    stable_softmax.softmax: (np.array([1000.0, 999.0, 0.0]),),
    two_outputs.z_and_w: (X, X[::-1].copy()),
}


def all_operations():
    names = [m.name for m in pkgutil.walk_packages(examples.__path__, "examples.")]
    modules = [import_module(n) for n in names if not n.endswith("__main__")]
    values = [v for m in modules for v in vars(m).values()]
    values += [m for v in values if isinstance(v, type) for m in vars(v).values()]
    return {v for v in values if isinstance(v, gs.Operation)}


def value_and_gradients(op, args, framework):
    """The outputs, and the gradients of their sum, as NumPy's arrays of float32."""
    arrays, calculus = FRAMEWORKS[framework].arrays, FRAMEWORKS[framework].calculus

    def argument(a, xs):
        if isinstance(a, np.ndarray):
            return arrays.array(a) if a.dtype == int else next(xs)
        return a(arrays.array) if callable(a) else a

    def fn(xs):
        xs = iter(xs)
        ys = op(*(argument(a, xs) for a in args))
        return list(ys) if isinstance(ys, tuple) else [ys]

    floats = [a for a in args if isinstance(a, np.ndarray) and a.dtype == float]
    xs = [arrays.array(a, "float32") for a in floats]
    ys, pull = calculus.vjp(fn, xs)
    dxs = pull([arrays.array(np.ones(y.shape), "float32") for y in ys])
    dxs = [np.zeros(x.shape) if d is None else d for d, x in zip(dxs, xs, strict=True)]
    return [arrays.numpy(a) for a in (*ys, *dxs)]


def test_each_operation_of_the_examples_is_tried():
    assert all_operations() == {*PORTABLE}


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch", "mlx"])
@pytest.mark.parametrize("op", PORTABLE, ids=lambda op: op.name)
def test_is_portable(op, framework):
    expected = value_and_gradients(op, PORTABLE[op], "numpy")
    found = value_and_gradients(op, PORTABLE[op], framework)
    for ours, theirs in zip(expected, found, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("framework", ["numpy", "tensorflow", "jax", "torch", "mlx"])
def test_one_term_is_portable(framework):
    through = gs.override(
        one_term.rounded_misfit, {gnp.round: one_term.straight_through}
    )
    w = np.array([0.1, -0.7, 1.4])
    _, dw = value_and_gradients(through, (w,), framework)
    rounded = np.round(8 * w) / 8
    expected = gradient(one_term.misfit, rounded)
    np.testing.assert_allclose(dw, expected, rtol=1e-5)
