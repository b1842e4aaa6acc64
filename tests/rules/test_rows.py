"""Cotangents with one element per row: those of the extrema of large matrices."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.gradbench import kmeans
from benchmarks.gradbench.libraries import ours
from gradsmith.core.cotangent import OnePerRow
from gradsmith.rules import ordering

N, K = 7, 5
_rng = np.random.default_rng(3)
A, B = _rng.normal(size=(N, 3)), _rng.normal(size=(3, K))
X, U = _rng.normal(size=(N, K)), _rng.normal(size=N)
least = lambda x: np.sum(U.astype(x.dtype) * np.min(x, axis=1) ** 2)

FUNCTIONS = {
    "itself": (lambda x: least(x), X),
    "a product, on the left": (lambda a: least(a @ B), A),
    "a product, on the right": (lambda b: least(A @ b), B),
    "both factors": (lambda a: least(a @ (a[:3, :] @ B)), A),
    "of a transpose": (lambda b: least(A @ b.T), B.T.copy()),
    "minus": (lambda b: least(X - A @ b), B),
    "minus itself": (lambda a: least((a @ B) - (a[:, :1] + B[0])), A),
    "a row beside": (lambda b: least(X + b[0] - A @ b), B),
    "a column beside": (lambda a: least(X + a[:, :1] - a @ B), A),
    "a matrix of one row": (lambda b: least(b[:1] + X), B),
    "a number beside": (lambda b: least(b[0, 0] + X - b[0, 1]), B),
    "plus a number": (lambda x: least(-(1.0 - (x + 2.0))), X),
    "used twice": (lambda x: least(x) + least(x + X) + np.sum(x), X),
    "used before": (lambda x: np.sum(np.sin(x)) + least(x), X),
    "another function": (lambda x: least(np.exp(x) - x), X),
    "a function less a number": (lambda x: least(np.exp(x) - 1.0), X),
    "a part": (lambda x: least((x - 1.0)[:, ::-1]), X),
    "a stack": (lambda x: least(np.reshape(np.stack([x, x + X]), (2 * N, K))[:N]), X),
    "the largest": (lambda a: np.sum(U * np.max(a @ B - X, axis=-1) ** 2), A),
    "kept": (lambda a: np.sum(np.min(a @ B, axis=1, keepdims=True) ** 3), A),
}


@pytest.fixture
def seen(monkeypatch):
    """All of them, as they are made; of small matrices, too."""
    made, to_rows = [], ordering.to_rows

    def noted(*args):
        made.append(to_rows(*args))
        return made[-1]

    monkeypatch.setattr(ordering, "SMALLEST", 0)
    monkeypatch.setattr(ordering, "WIDE", 2)
    monkeypatch.setattr(ordering, "to_rows", noted)
    return made


def with_dense(monkeypatch, run):
    with monkeypatch.context() as patch:
        patch.setattr(ordering, "WIDE", 10**9)
        return run()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_dense_ones(name, dtype, seen, monkeypatch):
    f, x = FUNCTIONS[name]
    x = x.astype(dtype)
    if dtype == "float32":
        f = in_float32(f)
    found = gs.grad(f)(x)
    assert isinstance(seen[0], OnePerRow)
    truth = with_dense(monkeypatch, lambda: gs.grad(f)(x))
    assert (found.dtype, found.shape) == (truth.dtype, truth.shape)
    np.testing.assert_allclose(found, truth, *tolerance(dtype))


def in_float32(f):
    """The same function, of whose constants all are float32."""

    def narrow(x):
        before = {name: globals()[name] for name in "ABXU"}
        globals().update({name: y.astype("float32") for name, y in before.items()})
        try:
            return f(x)
        finally:
            globals().update(before)

    return narrow


def tolerance(dtype):
    return (1e-4, 1e-5) if dtype == "float32" else (1e-12, 1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_those_of_dense_ones(name, seen, monkeypatch):
    f, x = FUNCTIONS[name]
    v = np.cos(x)
    product = lambda x: np.sum(gs.grad(f)(x) * v)
    # Linear in what is chosen: here the cotangent of the minima is plain
    first = lambda x: np.sum(np.min(x, axis=1))
    both = lambda x: np.sum(gs.grad(lambda x: f(x) + first(x @ (x.T @ x)))(x) * v)
    for g in (product, both):
        found = gs.grad(g)(x)
        truth = with_dense(monkeypatch, lambda g=g: gs.grad(g)(x))
        np.testing.assert_allclose(found, truth, rtol=1e-10, atol=1e-11)
    assert any(isinstance(dx, OnePerRow) for dx in seen)


def test_persistent_tapes_see_matrices(seen):
    x = gs.Tensor(X)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x - 0.5 * X
        z = y + 1.0
        total = np.sum(np.min(z, axis=1))
    dx, dy, dz = tape.gradient(total, [x, y, z])
    assert all(isinstance(found, OnePerRow) for found in seen)
    hot = z.value == np.min(z.value, axis=1, keepdims=True)
    for d in (dx, dy, dz, tape.gradient(total, z)):
        assert type(d.value) is np.ndarray
        np.testing.assert_array_equal(d.value, hot)


def test_rows_that_tie_or_have_nan_are_dense(seen):
    x = X.copy()
    x[2] = 1.0
    grad = gs.grad(lambda x: np.sum(np.min(x, axis=1)))
    np.testing.assert_allclose(grad(x)[2], 1 / K)
    x[4, 1] = np.nan
    np.testing.assert_allclose(grad(x)[2], 1 / K)
    assert seen == [None, None]


def test_what_is_infinite_reaches_the_chosen_column_alone(seen):
    """Of dense ones the others would be NaN: products of 0 and an infinite number."""
    a, b = A.copy(), B.copy()
    a[3, 1], b[1] = np.inf, [1.0, -1.0, 2.0, 3.0, 1.5]
    db = gs.grad(lambda b: np.sum(np.min(a @ b, axis=1)))(b)
    assert db[1, 1] == np.inf
    db[1, 1] = 0
    assert np.isfinite(db).all()


def test_a_step_of_k_means_has_no_dense_one(monkeypatch):
    def dense(self):
        raise AssertionError

    monkeypatch.setattr(OnePerRow, "dense", dense)  # it is large enough for one
    size = {"k": 50, "n": 4_000, "d": 8}
    inputs = kmeans.inputs(np.random.default_rng(0), **size)
    step = kmeans.in_numpy(ours(), **size)(*inputs)
    monkeypatch.setattr(ordering, "WIDE", 10**9)
    np.testing.assert_allclose(step, kmeans.in_numpy(ours(), **size)(*inputs), 1e-11)
