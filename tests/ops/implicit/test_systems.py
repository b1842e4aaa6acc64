"""Linear systems: singular ones, stacks, numbers of every kind and size."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

FRAMEWORKS = ("numpy", "jax", "torch", "tensorflow")


def arrays(name):
    if name == "numpy":
        return np.array
    module = pytest.importorskip(name)
    return {
        "jax": lambda x: module.numpy.array(x),
        "torch": lambda x: module.tensor(x),
        "tensorflow": lambda x: module.constant(x),
    }[name]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_singular_matrix_is_said_to_be(framework):
    a = arrays(framework)
    for matrix in (np.ones((2, 2)), np.stack([np.eye(2), np.zeros((2, 2))])):
        with pytest.raises(gs.GradsmithError, match="matrix is singular"):
            ops.linear_solve(a(matrix), a(np.array([1.0, 2.0])))
    if framework != "tensorflow":  # which calls it not invertible
        lost = ops.linear_solve(a(np.full((2, 2), np.nan)), a(np.ones(2)))
        assert np.isnan(np.asarray(lost)).all()


def test_a_singular_matrix_in_compiled_code():
    jax = pytest.importorskip("jax")

    def run():
        jax.block_until_ready(jax.jit(ops.linear_solve)(np.ones((2, 2)), np.ones(2)))
        jax.effects_barrier()

    with pytest.raises(Exception, match="matrix is singular"):
        run()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_vector_has_one_axis(framework):
    a, b = np.stack([np.eye(2), 2 * np.eye(2)]), np.array([[1.0, 2.0], [3.0, 4.0]])
    make = arrays(framework)
    for right in (b, b[0], b[None], b[:, :1]):
        found = np.asarray(ops.linear_solve(make(a), make(right)))
        np.testing.assert_allclose(found, np.linalg.solve(a, right))
    few = ops.linear_solve(make(a[1]), make(np.ones((3, 2, 2))))
    np.testing.assert_allclose(np.asarray(few), 0.5 * np.ones((3, 2, 2)))


def test_an_empty_system_and_a_list():
    assert ops.linear_solve(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
    np.testing.assert_allclose(ops.linear_solve(2 * np.eye(2), [1, 2]), [0.5, 1])


@pytest.mark.parametrize("option", ["solver", "tol", "symmetric"])
def test_a_matrix_takes_no_options(option):
    with pytest.raises(gs.GradsmithError, match=f"linear_solve: {option}= is for"):
        ops.linear_solve(np.eye(2), np.ones(2), **{option: True})


@pytest.mark.parametrize("entries", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(
    ("b", "dtype"),
    [
        (np.array([1, 2]), np.float64),
        ([1, 2], np.float64),
        (np.array([1.0, 2.0]), np.float64),
        (np.array([1, 2], np.float32), np.float32),
    ],
)
def test_numbers_of_a_sparse_system(entries, b, dtype):
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.diag([2, 3]).astype(entries))
    x = ops.linear_solve(a, b)
    np.testing.assert_allclose(x, [1 / 2, 2 / 3], rtol=1e-6)
    assert x.dtype == dtype
    values = np.array([2, 3], np.float32)
    d = gs.grad(lambda v: np.sum(ops.linear_solve(a, b, v)))(values)
    np.testing.assert_allclose(d, [-1 / 4, -2 / 9], rtol=1e-6)
    assert d.dtype == np.float32


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("unit", [1e-25, 1.0, 1e19, 1e30])
def test_large_systems_in_any_units(framework, symmetric, unit):
    b = arrays(framework)(np.full(600, unit, np.float32))
    x = ops.linear_solve(lambda x: 2.0 * x, b, symmetric=symmetric)
    assert x.dtype == b.dtype
    np.testing.assert_allclose(np.asarray(x), unit / 2, rtol=1e-5)
    x = ops.linear_solve(lambda x: 1e-20 * x, b[:] / b[0], symmetric=symmetric)
    np.testing.assert_allclose(np.asarray(x), 1e20, rtol=1e-5)


def test_a_large_root_whose_matrix_is_trivial():
    torch = pytest.importorskip("torch")
    x = ops.root(lambda x, p: x - p, torch.ones(600), torch.full((600,), 3.0))
    np.testing.assert_allclose(x, 3, rtol=1e-6)


@pytest.mark.parametrize("condition", [1e4, 1e9, 1e12])
def test_an_ill_conditioned_system_is_solved_as_well_as_rounding_lets(condition):
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))
    a = q @ np.diag(np.geomspace(1, 1 / condition, 20)) @ q.T
    x = ops.linear_solve(lambda x: a @ x, np.ones(20))
    np.testing.assert_allclose(
        x, np.linalg.solve(a, np.ones(20)), rtol=1e-15 * condition
    )


def test_a_solution_that_is_all_rounding_is_none():
    n = 12  # Hilbert's matrix, with a right-hand side that no x of numbers gives
    i = np.arange(2 * n)
    a = 1 / (1 + i[:, None] + i)
    with pytest.raises(gs.GradsmithError, match="not solved"):
        ops.linear_solve(lambda x: a @ x, (-1.0) ** i)


# torch.func


def jacobians(torch):
    return {"jacrev": torch.func.jacrev, "jacfwd": torch.func.jacfwd}


@pytest.mark.parametrize("name", ["linear", "root", "fixed_point", "argmin", "odeint"])
def test_the_transforms_of_torch(name):
    torch = pytest.importorskip("torch")
    from . import problems

    problem, P, W = getattr(problems, name), problems.P, problems.W
    p, w = torch.tensor(P), torch.tensor(W)
    truth = gs.jacobian(problem)(P, W)
    for jacobian in jacobians(torch).values():
        np.testing.assert_allclose(jacobian(problem)(p, w), truth, atol=1e-8)
    each = torch.func.vmap(problem, (0, None))(torch.stack([p, 2 * p]), w)
    for found, x in zip(each, (P, 2 * P), strict=True):
        np.testing.assert_allclose(found, problem(x, W), atol=1e-8)
    if name != "odeint":  # the same, and slow
        curved = torch.func.hessian(problems.loss(problem))(p, w)
        expected = gs.hessian(problems.loss(problem))(P, W)
        np.testing.assert_allclose(curved, expected, atol=1e-8)


def test_one_of_many_without_a_solution_is_said_under_vmap():
    torch = pytest.importorskip("torch")

    def root(p):
        return ops.root(lambda x, p: x**2 - p, gnp.ones_like(p) / 3, p, max_steps=9)

    with pytest.raises(gs.GradsmithError, match=r"no root was found: after \d"):
        torch.func.vmap(root)(torch.tensor([[1.0], [2.0], [-1.0]]))


COMPILED = """
import torch
from gradsmith import ops

def loss(p):
    return torch.sum(ops.root(lambda x, p: x**2 - p, p, p))

p = torch.tensor([4.0, 16.0], requires_grad=True)
torch.compile(loss, backend="eager")(p).backward()
torch.testing.assert_close(p.grad, torch.tensor([1 / 4, 1 / 8]))
"""


def test_a_compiler_of_torch_leaves_the_search_alone():
    pytest.importorskip("torch")
    # In a process of its own: Dynamo warns of what it looks at itself
    subprocess.run([sys.executable, "-c", COMPILED], check=True, timeout=600)


SKEW = np.array([[3.0, 1.0, 0.0], [0.5, 4.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_that_is_not_symmetric_is_refused(framework, dtype):
    make = arrays(framework)
    a, b = make(SKEW.astype(dtype)), make(np.array([1.0, 2.0, 3.0], dtype))
    with pytest.raises(Exception, match="symmetric=True, and the function is not"):
        ops.linear_solve(lambda x: gnp.matmul(a, x), b, symmetric=True)
    large = make(np.random.default_rng(0).normal(size=600).astype(dtype))
    with pytest.raises(Exception, match="symmetric=True, and the function is not"):
        ops.linear_solve(lambda x: 2 * x + 0.1 * gnp.roll(x, 1), large, symmetric=True)


def test_the_adjoint_of_a_map_that_is_not_symmetric_is_refused():
    """The solution lies where the map is symmetric, and its adjoint does not."""
    solve = lambda b: ops.linear_solve(lambda x: SKEW @ x, b, symmetric=True)
    b = np.array([0.0, 0.0, 3.0])
    np.testing.assert_allclose(solve(b), [0, 0, 1.5])
    with pytest.raises(gs.GradsmithError, match="symmetric=True, and the function is"):
        gs.grad(lambda b: solve(b)[0])(b)
    np.testing.assert_allclose(gs.grad(lambda b: solve(b)[2])(b), [0, 0, 0.5])


def test_a_map_that_is_not_symmetric_in_compiled_code():
    jax = pytest.importorskip("jax")

    def run():
        f = lambda b: ops.linear_solve(lambda x: SKEW @ x, b, symmetric=True)
        jax.block_until_ready(jax.jit(f)(np.ones(3)))
        jax.effects_barrier()

    with pytest.raises(Exception, match="symmetric=True, and the function is not"):
        run()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetric_maps_pass(seed, dtype):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    sizes = np.geomspace(1, 10.0 ** -(seed % 4), n) * 10.0 ** rng.integers(-8, 8)
    a = (q * sizes @ q.T).astype(dtype)
    a = (a + a.T) / 2
    x = rng.normal(size=n).astype(dtype)
    solve = lambda b: ops.linear_solve(lambda x: a @ x, b, symmetric=True)
    np.testing.assert_allclose(solve(a @ x), x, rtol=1e-2, atol=1e-3)
    assert np.isfinite(gs.grad(lambda b: np.sum(solve(b)))(a @ x)).all()
