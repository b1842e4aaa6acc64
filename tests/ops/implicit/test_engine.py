"""Implicit operations in the embedded engine: gradients, edges, bad input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.ops.implicit.discrete import stepped
from gradsmith.ops.implicit.ode import Flow
from gradsmith.ops.implicit.runge_kutta import Adaptive

from .problems import (
    PROBLEMS,
    P,
    T,
    W,
    captured,
    discrete,
    linear,
    loss,
    odeint,
    root,
    slope,
)

EXACT = [problem for problem in PROBLEMS if problem is not odeint]


@pytest.mark.parametrize("problem", EXACT)
def test_gradients_are_right_in_both_modes_and_twice(problem):
    report = gs.check.options(seconds=10)(problem, P, W)
    assert report.ok, report


def test_the_adjoint_is_as_close_as_its_tolerance():
    f, h = loss(odeint), 1e-3
    for i in range(P.size):
        e = h * np.eye(P.size)[i]
        near, far = f(P + e, W) - f(P - e, W), f(P + 2 * e, W) - f(P - 2 * e, W)
        expected = (8 * near - far) / (12 * h)
        assert gs.grad(f)(P, W)[i] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_forward_mode_is_the_transpose_of_reverse_mode(problem):
    rng = np.random.default_rng(1)
    v = rng.normal(size=P.shape), rng.normal(size=W.shape)
    y, dy = gs.jvp(problem, (P, W), v)
    u = rng.normal(size=y.shape)
    pulled = gs.vjp(problem, P, W)[1](u)
    both = sum(np.sum(a * b) for a, b in zip(pulled, v, strict=True))
    assert np.sum(u * dy) == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("name", ["linear", "root", "argmin"])
def test_what_the_equations_capture_has_its_gradient(name):
    problem = next(p for p in PROBLEMS if p.__name__ == name)
    expected = gs.grad(loss(problem), (0, 1))(P, W)
    found = gs.grad(loss(captured(name)), (0, 1))(P, W)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    tangent = gs.jvp(loss(captured(name)), (P, W), (P, W))[1]
    assert tangent == pytest.approx(gs.jvp(loss(problem), (P, W), (P, W))[1])


def test_a_second_derivative_by_what_is_captured_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="pass them as parameters"):
        gs.hessian(lambda w: loss(captured("root"))(P, w))(W)


def test_the_iterations_are_not_differentiated():
    calls = []

    def equation(x, p):
        calls.append(isinstance(x, gs.Tensor))
        return x**3 + x - p

    p = np.linspace(1, 50, 7)
    with gs.GradientTape() as tape:
        t = gs.Tensor(p)
        tape.watch(t)
        y = ops.root(equation, 0 * p, t)
    steps = len(calls)
    assert steps > 5
    dx = tape.gradient(y, t)
    assert len(calls) - steps <= 12  # columns of one matrix, and one pull
    np.testing.assert_allclose(dx, 1 / (3 * y.numpy() ** 2 + 1), rtol=1e-12)


def test_a_root_has_the_gradient_that_autodiff_finds_through_the_iterations():
    def through(p, w):
        x = 0 * p
        for _ in range(60):
            x = 0.5 * np.tanh(w @ x) + p
        return np.sum(np.sin(x))

    from .problems import fixed_point

    expected = gs.grad(through, (0, 1))(P, W)
    for a, b in zip(gs.grad(loss(fixed_point), (0, 1))(P, W), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("symmetric", [False, True])
def test_more_unknowns_than_a_matrix_is_made_for(symmetric):
    n = 700
    rng = np.random.default_rng(2)
    k, b = 2 + rng.random(n), rng.normal(size=n)

    def rod(x, k):
        skew = 0 if symmetric else 0.3 * (np.roll(x, 1) - np.roll(x, -1))
        return k * x - 0.5 * np.roll(x, 1) - 0.5 * np.roll(x, -1) + skew

    matrix = np.stack([rod(e, k) for e in np.eye(n)], axis=-1)

    def solved(k, b):
        return np.sum(np.sin(ops.linear_solve(rod, b, k, symmetric=symmetric)))

    def factorised(k, b):
        a = matrix - np.diag(np.diag(matrix)) + np.diag(np.ones(n)) * k
        return np.sum(np.sin(np.linalg.solve(a, b)))

    found, expected = (gs.grad(f, (0, 1))(k, b) for f in (solved, factorised))
    for a, c in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-7, atol=1e-10)


def test_gmres_solves_what_turns_every_vector():
    n = 600

    def turned(x):  # no direction is shortened: x'Ax = 0
        a, b = x[: n // 2], x[n // 2 :]
        return np.concatenate([b, -a]) * 2

    b = np.arange(n, dtype=float)
    np.testing.assert_allclose(turned(ops.linear_solve(turned, b)), b, atol=1e-8)


def test_trees_of_unknowns_and_of_parameters():
    def equation(x, p):
        return {"a": x["a"] - p["u"], "b": (x["b"][0] ** 2 - p["v"] * x["a"],)}

    x0 = {"a": np.ones(2), "b": (np.ones(2),)}

    def b(p):
        return np.sum(ops.root(equation, x0, p)["b"][0])

    p = {"u": np.array([1.0, 4.0]), "v": 2.0}
    d = gs.grad(b)({**p, "v": np.array(2.0)})
    np.testing.assert_allclose(d["u"], 2 / (2 * np.sqrt(2 * p["u"])))
    assert b(p) == pytest.approx(np.sum(np.sqrt(2 * p["u"])))


def test_the_times_have_gradients_and_may_run_backwards():
    def at(t):
        return ops.odeint(lambda t, y: -y * t, np.array(1.0), t)[-1]

    t = np.array([1.0, 0.5, 0.2])
    y = np.exp((t[0] ** 2 - t[-1] ** 2) / 2)
    assert at(t) == pytest.approx(y, rel=1e-6)
    np.testing.assert_allclose(gs.grad(at)(t), [y, 0, -0.2 * y], atol=1e-5)


def test_equal_steps_of_the_classical_method():
    def at(rate):
        t = np.array([0.0, 1.0])
        f = lambda t, y, rate: -rate * y
        return ops.odeint(f, np.array(1.0), t, rate, method="rk4", steps=20)[-1]

    assert gs.grad(at)(np.array(2.0)) == pytest.approx(-np.exp(-2), rel=1e-4)


def with_entries():
    sparse = pytest.importorskip("scipy.sparse")
    diagonals = [[-1.0] * 3, [3.0] * 4, [-0.5] * 3]
    return sparse.diags_array(diagonals, offsets=[-1, 0, 1]).tocsr()


def test_sparse_matrices_are_solved_both_ways():
    a = with_entries()
    gs.assert_gradients(lambda b: ops.linear_solve(a, b), np.arange(4.0))
    found = gs.grad(lambda b: ops.linear_solve(a, b)[0])(np.arange(4.0))
    np.testing.assert_allclose(found, np.linalg.inv(a.toarray())[0])


@pytest.mark.parametrize("columns", [None, 2])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_the_entries_of_a_sparse_matrix_have_a_gradient(layout, columns):
    a = with_entries().asformat(layout)
    b = np.arange(4.0) if columns is None else np.arange(8.0).reshape(4, 2)
    gs.assert_gradients(lambda v, b: ops.linear_solve(a, b, v), a.tocoo().data, b)


def test_a_sparse_matrix_is_factorised_once_for_both_ways(monkeypatch):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    made, a = [], with_entries()
    splu = linalg.splu
    monkeypatch.setattr(linalg, "splu", lambda a: made.append(a) or splu(a))
    gs.grad(lambda v: np.sum(ops.linear_solve(a, np.ones(4), v)))(a.data)
    assert len(made) == 1


@pytest.mark.parametrize("times", [[0.0, 1.0], [0.0, 0.4, 1.0]])
def test_the_discrete_gradient_is_that_of_the_steps(times):
    # With so few steps the adjoint's gradient is another one
    problem = discrete(method="rk4", steps=3, snapshots=2, times=times)
    gs.assert_gradients(problem, P, W)
    adjoint = gs.grad(loss(discrete(method="rk4", steps=3, gradient="adjoint")))(P, W)
    assert np.abs(gs.grad(loss(problem))(P, W) - adjoint).max() > 1e-7


def test_the_discrete_gradient_of_steps_that_fit():
    # How long the steps are counts as constant: these are equal, and the same as ours
    def by_hand(p, w):
        t, h = 0.0, 0.25
        for _ in range(4):
            p, t = solver.step(lambda t, y: slope(t, y, w), t, p, h), t + h
        return p

    solver = Adaptive(1.0, 1.0, 10)
    solver.parts = lambda *_: [(i / 4, 1 / 4) for i in range(4)]
    flow = Flow(lambda t, y, params: slope(t, y, *params), solver)
    times = np.array(0.0), np.array(1.0)

    def problem(p, w):
        return stepped(p, *times, [w], flow, snapshots=2, apart=False)

    found, expected = (gs.grad(loss(f), (0, 1))(P, W) for f in (problem, by_hand))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_discrete_and_adjoint_gradients_meet_where_steps_are_short():
    f, g = (
        loss(discrete(rtol=1e-10, atol=1e-10, gradient=gradient))
        for gradient in ("discrete", "adjoint")
    )
    for a, b in zip(gs.grad(f, (0, 1))(P, W), gs.grad(g, (0, 1))(P, W), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)
    assert f(P, W) == pytest.approx(g(P, W), rel=1e-12)


def test_the_discrete_gradient_stores_few_states():
    def peak(**how):
        problem = discrete(method="rk4", steps=200, times=[0.0, 0.1], still=True, **how)
        tracemalloc.start()
        gs.grad(lambda y: np.sum(problem(y, W)))(np.ones(20_000))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / 160_000

    few, all_of_them = peak(snapshots=5), peak(snapshots=200)
    assert few < 60
    assert all_of_them > 200


@pytest.mark.parametrize("find", [ops.root, ops.argmin])
def test_a_solver_of_the_users(find):
    optimize = pytest.importorskip("scipy.optimize")

    def equation(x, p):
        return x**3 - p

    def height(x, p):
        return np.sum(x**4 / 4 - p * x)

    def solver(f, x0):
        if find is ops.root:
            return optimize.root(f, x0, tol=1e-14).x
        return optimize.minimize(f, x0, tol=1e-12).x

    f = equation if find is ops.root else height
    p = np.array([8.0, 27.0])
    g = gs.grad(lambda p: np.sum(find(f, p, p, solver=solver, tol=1e-3)))(p)
    np.testing.assert_allclose(g, 1 / (3 * np.cbrt(p) ** 2), rtol=1e-4)


# Bad input


def test_a_singular_system():
    with pytest.raises(gs.GradsmithError, match="singular"):
        ops.linear_solve(lambda x: x * np.array([1.0, 0.0]), np.ones(2))


def test_a_solver_that_did_not_converge_says_how_far_it_is():
    with pytest.raises(gs.GradsmithError, match=r"residual is .* would be wrong"):
        ops.linear_solve(lambda x: x, np.ones(3), solver=lambda matvec, b: b / 2)
    n = np.arange(1.0, 601.0) ** 4
    with pytest.raises(gs.GradsmithError, match="not solved: the residual"):
        ops.linear_solve(lambda x: n * x, np.ones(600), max_steps=5)


def test_no_root_no_fixed_point_no_minimum():
    one = np.array([1.0])
    with pytest.raises(
        gs.GradsmithError, match=r"no solution was found: .* where the search"
    ):
        ops.root(lambda x: x**2 + 1, one)
    with pytest.raises(gs.GradsmithError, match=r"no root was found.*would be wrong"):
        ops.root(lambda x: x**2 + 1, one / 3, max_steps=9)
    with pytest.raises(gs.GradsmithError, match="no fixed point was found"):
        ops.fixed_point(lambda x: 2 * x + 1, one, max_steps=50)
    with pytest.raises(gs.GradsmithError, match="no minimum was found"):
        ops.argmin(lambda x: np.sum(np.exp(x)), one, max_steps=10)
    with pytest.raises(gs.GradsmithError, match="the given solver found no solution"):
        ops.root(lambda x: x - 2, one, solver=lambda f, x0: x0)


def test_an_integration_that_does_not_end():
    def blowing_up(t, y):
        return y**2

    t = np.array([0.0, 2.0])
    with pytest.raises(gs.GradsmithError, match="odeint: after 100 steps"):
        ops.odeint(blowing_up, np.array([1.0]), t, max_steps=100)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ops.root(lambda x: x[:2], np.ones(3)), r"f\(x\) does not fit"),
        (
            lambda: ops.root(lambda x: x, np.arange(3)),
            "x0 must be an array of floating",
        ),
        (lambda: ops.root(lambda x: x, ()), "x0 holds no array"),
        (lambda: ops.argmin(lambda x: x, np.ones(3)), r"f\(x\) must be a number"),
        (lambda: ops.linear_solve(np.ones((2, 3)), np.ones(2)), "not square"),
        (lambda: ops.linear_solve(np.eye(2), np.ones(2), 1.0), "parameters are for"),
        (
            lambda: ops.linear_solve(with_entries(), np.ones(4), np.ones(2)),
            "holds its entries",
        ),
        (
            lambda: ops.linear_solve(0 * with_entries(), np.ones(4)),
            "exactly singular",
        ),
        (
            lambda: ops.odeint(slope, P, T, W, gradient="forward"),
            "gradient='forward' is not known",
        ),
        (lambda: ops.odeint(slope, P, T, W, snapshots=3), "the adjoint equation needs"),
        (
            lambda: ops.odeint(slope, P, T, W, gradient="discrete", snapshots=0),
            "snapshots=0 is too small",
        ),
        (lambda: ops.linear_solve("a", np.ones(2)), "the matrix is not an array"),
        (lambda: ops.odeint(lambda t, y: y, np.ones(1), 1.0), "t must be the times"),
        (
            lambda: ops.odeint(lambda t, y: y, np.ones(1), np.ones(2), method="euler"),
            "method='euler' is not known",
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(gs.GradsmithError, match=words):
        call()


def test_an_error_of_the_users_passes_through():
    def broken(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ops.root(broken, np.ones(1))


def test_float32_stays_float32():
    p, w = P.astype(np.float32), W.astype(np.float32)
    for problem in (linear, root):
        assert problem(p, w).dtype == np.float32
        assert gs.grad(loss(problem))(p, w).dtype == np.float32
    assert gnp.asarray(p).dtype == np.float32
