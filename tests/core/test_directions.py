"""Jacobians in forward mode: many tangents at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core import forward

rng = np.random.default_rng(5)
M, V, S = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(2, 3, 4))
A, B3 = rng.normal(size=(4, 3)), rng.normal(size=(2, 4, 3))
ROWS = np.array([2, 0, 2])

# A function of a matrix of 3 by 4, of a stack, or of a vector each
FUNCTIONS = {
    "broadcast operands": (lambda x: x[0] * S + x * V, M),
    "number": (lambda x: np.sum(x) * S, M),
    "sum": (lambda x: np.sum(x**2, axis=0), M),
    "sum of several axes": (lambda x: np.sum(x**2, axis=(0, -1), keepdims=True), S),
    "sum where": (lambda x: np.sum(x**2, 1, where=M > 0, initial=2.0), M),
    "mean": (lambda x: np.mean(np.sin(x), 1, keepdims=True), S),
    "max": (lambda x: np.max(x, axis=1), S),
    "max of ties": (lambda x: np.max(np.round(x) + 0 * x, axis=-1), M),
    "max of all": (lambda x: np.max(x) * V, M),
    "reshape": (lambda x: np.reshape(np.sin(x), (2, 6)), M),
    "reshape in columns": (lambda x: np.reshape(np.sin(x), (2, 6), order="F"), M),
    "transpose": (lambda x: np.sin(x).T, S),
    "axes": (lambda x: np.transpose(x**2, (1, -1, 0)), S),
    "swapaxes": (lambda x: np.swapaxes(x**2, 0, 2), S),
    "moveaxis": (lambda x: np.moveaxis(x**2, (0, 1), (-1, 0)), S),
    "flip": (lambda x: np.flip(x**2, 0) + np.flip(x), M),
    "squeeze": (lambda x: np.squeeze(np.expand_dims(x**2, (0, 2))), M),
    "broadcast_to": (lambda x: np.broadcast_to(x**2, (2, 3, 4)), M),
    "elements": (lambda x: x[1, 2] * x[..., None, 0] + x[-1, :1] * V[:3], M),
    "rows": (lambda x: x[ROWS] ** 2, M),
    "columns": (lambda x: x[:, ROWS] ** 2, S),
    "mask": (lambda x: x[M > 0] ** 2, M),
    "numbers beside an array": (lambda x: x[0, :, ROWS] ** 2, S),
    "two arrays": (lambda x: x[:, ROWS, ROWS] ** 2, S),
    "take": (lambda x: np.take(x**2, ROWS, 1) + np.take(x, ROWS), M),
    "concatenate": (lambda x: np.concatenate((x, M, x**2), 1), M),
    "concatenate flat": (lambda x: np.concatenate((x, x**2), None), M),
    "stack": (lambda x: np.stack((x, M, x**2), -1) + np.stack((x,) * 3, 2), M),
    "iteration": (lambda x: [a * b for a, b in zip(x, x[::-1], strict=True)][1], M),
    "unstack": (lambda x: np.unstack(x**2, axis=1)[2], S),
    "where": (lambda x: np.where(M > 0, x, V) * np.where(M > 1, 1.0, x[0]), M),
    "cumsum": (lambda x: np.cumsum(x**2, 0) + np.cumsum(x)[-1], M),
    "prod": (lambda x: np.prod(x, 1), M),
    "matrices": (lambda x: (x @ A) @ (A.T @ x.T), M),
    "stacks": (lambda x: (x @ B3) @ (A.T @ np.swapaxes(x, 1, 2)), S),
    "a stack of one": (lambda x: S @ x.T + x[None, :, :1] * x @ B3, M),
    "vectors": (lambda x: (x @ V) * (M @ x) + x @ x, V[:4] * 2),
    "vector and stack": (lambda x: (x @ B3) + (S @ x), V * 2),
    "matrix and vector": (lambda x: (x @ V) * (V[:3] @ x)[:3] + x[0] @ x[1], M),
    "dot": (lambda x: np.dot(x, A) + 2 * np.dot(x[0], V), M),
    "tensordot": (lambda x: np.tensordot(x, B3, ([1], [1])) * x[0, 0], M),
    "tensordot of the second": (lambda x: np.tensordot(B3, x, ([1, 2], [1, 0])), M),
    "einsum": (lambda x: np.einsum("ij,kj->ik", x, x), M),
    "norm": (lambda x: np.linalg.norm(x, axis=1), M),
    "solve": (lambda x: np.linalg.solve(x @ A + 5 * np.eye(3), A.T), M),
    "another dtype": (lambda x: (x**2).astype(np.float32).astype(float), M),
    "complex": (lambda x: np.conj(np.exp(1j * x)) + 2j * np.real(x * 1j), M),
    "a constant": (lambda x: M, M),
    "gradient": (gs.grad(lambda x: np.sum(x[1:] ** 3) + np.max(x @ V)), M),
    "gradient of a reduction": (gs.grad(lambda x: np.sum(np.max(x**2, 1))), M),
}


def one_by_one(f, x):
    """The Jacobian by one `gs.jvp` for each element."""
    y = np.asarray(f(x))
    units = np.eye(x.size).reshape(-1, *x.shape)
    columns = [gs.jvp(f, (x,), (e,))[1] for e in units]
    return np.stack(columns, -1).reshape(y.shape + x.shape)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_tangents_are_each_one_by_one(name):
    f, x = FUNCTIONS[name]
    np.testing.assert_allclose(
        gs.jacfwd(f)(x), one_by_one(f, x), rtol=1e-12, atol=1e-14
    )


@given(
    st.sampled_from(["mul", "add", "power"]),
    st.sampled_from([(), (1,), (3,), (2, 1), (2, 3), (4, 2, 1), (4, 1, 3)]),
    st.sampled_from([(), (3,), (1, 3), (2, 3), (4, 2, 3)]),
)
def test_operands_broadcast_as_without_tangents(op, shape1, shape2):
    ops = {"mul": np.multiply, "add": np.add, "power": np.power}
    x1 = 1 + np.arange(np.prod(shape1, dtype=int), dtype=float).reshape(shape1)
    x2 = np.full(shape2, 2.0)
    f = lambda x: ops[op](x, x2) + ops[op](x2, x)
    np.testing.assert_allclose(gs.jacfwd(f)(x1), one_by_one(f, x1), rtol=1e-12)


def test_a_function_runs_once_for_all_columns():
    runs = []

    def f(x):
        runs.append(x)
        return np.sin(x) * 2

    gs.jacfwd(f)(np.ones(50))
    assert len(runs) == 2  # once more for the shape of the result


def test_large_tangents_are_carried_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(forward, "MOST", 100)
    runs = []

    def f(x):
        runs.append(x)
        return np.sum(np.outer(x, np.ones(30)) ** 2, axis=1)

    x = np.arange(1.0, 4.0)
    np.testing.assert_allclose(gs.jacfwd(f)(x), np.diag(60 * x))
    assert len(runs) == 1 + 1 + 3  # one finds that 3 * 90 elements are too many


def test_jacobians_of_jacobians():
    f = lambda x: np.sum(x**3 * V[:3]) * x
    third = gs.jacfwd(gs.jacfwd(gs.jacfwd(f)))(V[:3])
    again = gs.jacfwd(gs.jacfwd(gs.jacrev(f)))(V[:3])
    np.testing.assert_allclose(third, again, rtol=1e-12, atol=1e-14)


def test_gradients_of_jacobians():
    f = lambda x: np.max(x @ A, axis=1) * x[0, :3] + x[:, 1]
    norm = lambda jacobian: lambda x: np.sum(jacobian(f)(x) ** 2)
    expected = gs.grad(norm(gs.jacrev))(M)
    np.testing.assert_allclose(gs.grad(norm(gs.jacfwd))(M), expected, rtol=1e-12)


def test_results_are_new_arrays():
    a, b = gs.jacfwd(lambda x: (x, x))(V)
    a[:] = 0
    np.testing.assert_array_equal(b, np.eye(4))


@gs.custom_gradient
def doubled(x):
    return 2 * x, lambda dy: 2 * dy


def test_operations_capture_tangents():
    def f(x):
        @gs.custom_gradient
        def scaled(z):
            return z * x, lambda dz: dz * x

        return scaled(doubled(x)) + gs.checkpoint(np.sin)(x)

    expected = np.diag(4 * V + np.cos(V))
    np.testing.assert_allclose(gs.jacfwd(f)(V), expected, rtol=1e-12)


def test_compiled():
    f = lambda x: np.max(x @ A, axis=1) * x[0, :3] + np.stack((x[:, 1],) * 3)
    compiled = gs.compile(gs.jacfwd(f))
    np.testing.assert_allclose(compiled(M), gs.jacfwd(f)(M), rtol=1e-12, atol=1e-14)
