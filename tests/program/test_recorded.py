"""Compiled functions under tapes: one operation, with a compiled pullback."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.hooks import FUNCTION

X, W = np.array([0.3, 1.2, -0.4]), np.array([0.7, -0.2, 0.5])


def potential(x, w):
    return np.sum(np.sin(x * w) + np.exp(x) * w**2)


def steps(step):
    """A loop whose length depends on what is computed."""

    def run(w):
        x = X
        while np.sum(x) < 4.0:
            x = x + 0.3 + 0.01 * step(x, w)
        return np.sum(x * w)

    return run


@pytest.fixture(params=[False, True], ids=["NumPy", "kernels"], autouse=True)
def kernels(request):
    with gs.kernels(request.param):
        yield


def counted(fn):
    """The function, and a list that has an entry for each run of it."""
    runs = []

    def run(*args, **kwargs):
        runs.append(1)
        return fn(*args, **kwargs)

    return run, runs


def test_first_and_higher_orders():
    force = gs.grad(potential)
    eager, compiled = steps(force), steps(gs.compile(force))
    along = lambda gradient: lambda w: np.sum(gradient(w) * W)
    for _ in range(3):
        np.testing.assert_allclose(gs.grad(compiled)(W), gs.grad(eager)(W), rtol=1e-12)
        eager, compiled = along(gs.grad(eager)), along(gs.grad(compiled))


def test_the_function_runs_to_be_traced_alone():
    fn, runs = counted(potential)
    compiled = gs.compile(fn)
    slope = gs.grad(lambda w, x: compiled(x, w))
    for x in (X, 2 * X, 3 * X):
        np.testing.assert_allclose(slope(W, x), gs.grad(potential, 1)(x, W))
    assert len(runs) == 3  # its value, the same again, and its pullback


def test_trees_and_options():
    def fn(p, x, *, power):
        return {"y": [p["a"] * x**power, (np.sum(p["b"]), "text")]}

    compiled = gs.compile(fn)

    def loss(run):
        def of(p):
            (y, (b, text)) = run(p, X, power=3)["y"]
            assert text == "text"
            return np.sum(y) * b

        return of

    p = {"a": W, "b": X}
    for name in p:
        np.testing.assert_allclose(
            gs.grad(loss(compiled))(p)[name], gs.grad(loss(fn))(p)[name]
        )


def test_what_does_not_depend_on_a_followed_value_is_a_constant():
    compiled = gs.compile(lambda x, w: (2 * x, x * w))
    x, w = gs.Tensor(X), gs.Tensor(W)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(w)
        doubled, product = compiled(x, w)
    assert tape.gradient(doubled, w) is None
    np.testing.assert_allclose(tape.gradient(product, w).numpy(), X)
    np.testing.assert_allclose(tape.gradient(product, w).numpy(), X)  # again


@pytest.mark.parametrize("fn", [gs.stop_gradient, np.floor, np.sign])
def test_what_has_no_gradient_has_none(fn):
    product = lambda x, w: fn(x) * w
    found = []
    for run in (product, gs.compile(product)):
        x, w = gs.Tensor(X), gs.Tensor(W)
        with gs.GradientTape() as outer:
            outer.watch([x, w])
            with gs.GradientTape() as tape:
                tape.watch([x, w])
                y = run(x, w)
            dx, dw = tape.gradient(y, [x, w])
        assert dx is None
        assert outer.gradient(dw, [x, w]) == [None, None]
        found.append(dw.numpy())
    np.testing.assert_array_equal(*found)


def test_one_node_of_a_tape():
    compiled = gs.compile(potential)
    x = gs.Tensor(X)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x, W)
    assert "1 operation" in str(tape.draw(y))


def test_captured_tensors_are_followed():
    by_closure = lambda w: gs.compile(lambda x: np.sum(x * w))(X)
    returned = lambda w: np.sum(gs.compile(lambda x: w)(X))
    deep = lambda w: gs.compile(lambda x: np.sum(np.stack([x, {"w": w}["w"]])))(X)
    np.testing.assert_allclose(gs.grad(by_closure)(W), X)
    np.testing.assert_allclose(gs.grad(returned)(W), np.ones(3))
    np.testing.assert_allclose(gs.grad(deep)(W), np.ones(3))


def test_captured_variables_are_followed():
    v = gs.Variable(W)
    compiled = gs.compile(lambda x: np.sum(x * v))
    with gs.GradientTape() as tape:
        y = compiled(gs.Tensor(X))
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), X)


def test_what_cannot_be_traced_runs_as_it_is():
    fn = gs.compile(lambda x: x * 2 if np.sum(x) > 0 else x)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(fn(x)))(X), np.full(3, 2.0))
    whole = gs.compile(lambda x: (np.argmax(x), x[0] * 3.0))
    np.testing.assert_allclose(gs.grad(lambda x: whole(x)[1])(X), [3.0, 0, 0])


def test_the_error_of_the_function_is_raised():
    compiled = gs.compile(lambda x: x @ np.ones(4))
    with pytest.raises(ValueError, match="matmul"):
        gs.grad(compiled)(X)


def test_forward_mode():
    compiled = gs.compile(potential)
    found = gs.jvp(lambda w: compiled(X, w), (W,), (X,))
    np.testing.assert_allclose(found, gs.jvp(lambda w: potential(X, w), (W,), (X,)))
    hessian = gs.hessian(potential, 1)(X, W)
    np.testing.assert_allclose(gs.hessian(compiled, 1)(X, W), hessian, rtol=1e-12)


def test_plain_arrays_stay_plain_under_a_tape():
    compiled = gs.compile(np.sin)
    with gs.GradientTape():
        assert type(compiled(X)) is np.ndarray


def test_a_trace_sees_through_it():
    compiled = gs.compile(gs.grad(lambda w: gs.compile(potential)(X, w)))
    np.testing.assert_allclose(compiled(W), gs.grad(potential, 1)(X, W), rtol=1e-14)


def test_who_looks_at_functions_sees_them():
    compiled, seen = gs.compile(np.sin), []

    def noted(proceed, fn, args, kwargs):
        seen.append(fn)
        return proceed(fn, args, kwargs)

    with FUNCTION.wrapped(noted):
        gs.grad(lambda x: np.sum(compiled(x)))(X)
    assert np.sin in seen


def test_a_cotangent_that_overflows_gives_zero_where_it_is_masked():
    compiled = gs.compile(lambda x: np.where(x > 1, x, 0.0))
    found = gs.grad(lambda x: np.sum(1 / (compiled(x) + 1e-200)))(np.array([0.5, 2.0]))
    np.testing.assert_allclose(found, [0, -0.25])


def test_a_captured_array_that_changes_is_noticed():
    """The value is that of the old array: the gradient must not be the new one's."""
    scale = np.array([1.0, 2.0, 3.0])
    compiled = gs.compile(lambda x: np.sum(x * scale))
    with gs.GradientTape() as tape:
        x = gs.Tensor(np.ones(3))
        tape.watch(x)
        y = compiled(x)
    scale[:] = 7.0
    with pytest.raises(gs.GradsmithError, match="has changed since it was compiled"):
        tape.gradient(y, x)


def test_a_gradient_that_needs_elements_is_the_tapes():
    parts = lambda x: np.piecewise(x, [x < 0.5], [lambda t: t * t, np.sin])
    loss = lambda x: np.sum(parts(x) * np.exp(x))
    x = np.linspace(0.0, 1.0, 7)
    np.testing.assert_allclose(gs.grad(gs.compile(loss))(x), gs.grad(loss)(x))
    with pytest.raises(gs.UnsupportedOperationError):
        gs.compile(gs.grad(loss))(x)


def test_an_override_holds_in_its_block_alone():
    slope = gs.grad(lambda x: np.sum(np.tanh(x)))
    early, late = gs.compile(slope), gs.compile(slope)
    early(X)
    with gs.override({np.tanh: lambda dy, y, x: 10 * dy}):
        for compiled in (early, late):
            np.testing.assert_array_equal(compiled(X), np.full(3, 10.0))
    for compiled in (early, late):
        np.testing.assert_allclose(compiled(X), slope(X))


class Model:
    def __init__(self):
        self.w = np.ones(3)
        self.step = gs.compile(self.forward)

    def forward(self, q):
        return np.sum(self.w * q)


def test_a_tensor_in_the_place_of_a_captured_array_is_followed():
    model, held = Model(), {"w": np.ones(3)}
    inner = lambda q: np.sum(held["w"] * q)
    closed = gs.compile(lambda q: inner(q) * 1.0)

    def by_attribute(w):
        model.w = w
        return model.step(w * 1.0)

    def by_closure(w):
        held["w"] = w
        return closed(w * 1.0)

    for compiled, loss in ((model.step, by_attribute), (closed, by_closure)):
        gs.grad(compiled)(X)  # traced with an array there
        np.testing.assert_allclose(gs.grad(loss)(X), 2 * X)
