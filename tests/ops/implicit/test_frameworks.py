"""Implicit operations in the frameworks: as in the engine, and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

from .problems import (
    PROBLEMS,
    P,
    W,
    captured,
    discrete,
    fixed_point,
    linear,
    loss,
    root,
)

BY_STEPS = discrete(method="rk4", steps=5, snapshots=2)


def expected(problem):
    f = loss(problem)
    return gs.grad(f, (0, 1))(P, W), gs.hvp(f, (P, W), (P, W))


def close(found, truth):
    for a, b in zip(found, truth, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-8)


def by_jax(f, args):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.jit(jax.grad(f, (0, 1)))(*args)


def by_torch(f, args):
    torch = pytest.importorskip("torch")
    args = [torch.tensor(x, requires_grad=True) for x in args]
    return torch.autograd.grad(f(*args), args)


def by_tensorflow(f, args):
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def gradient(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = f(*args)
        return tape.gradient(y, args)

    return gradient(*map(tf.constant, args))


DERIVED = {"jax": by_jax, "torch": by_torch, "tensorflow": by_tensorflow}


@pytest.mark.parametrize("problem", [*PROBLEMS, BY_STEPS])
def test_mlx(problem):
    mx = pytest.importorskip("mlx.core")
    f = loss(problem)
    a = [mx.array(x, mx.float64) for x in (P, W)]
    first, second = expected(problem)
    gradient = mx.grad(f, argnums=(0, 1))
    close(gradient(*a), first)
    along = lambda p, w: sum(
        mx.sum(d * x) for d, x in zip(gradient(p, w), a, strict=True)
    )
    close(mx.grad(along, argnums=(0, 1))(*a), second)
    close(mx.jvp(lambda *a: list(gradient(*a)), a, a)[1], second)


@pytest.mark.parametrize("problem", [*PROBLEMS, BY_STEPS])
def test_jax(problem):
    jax = pytest.importorskip("jax")
    f = loss(problem)
    with jax.enable_x64(True):
        gradient = jax.grad(f, (0, 1))
        found = jax.jit(lambda a: jax.jvp(lambda a: gradient(*a), (a,), (a,)))((P, W))
        for part, truth in zip(found, expected(problem), strict=True):
            close(part, truth)


@pytest.mark.parametrize("problem", [*PROBLEMS, BY_STEPS])
def test_torch(problem):
    torch = pytest.importorskip("torch")
    f, (first, second) = loss(problem), expected(problem)
    a = tuple(torch.tensor(x, requires_grad=True) for x in (P, W))
    found = torch.autograd.grad(f(*a), a, create_graph=True)
    close([x.detach() for x in found], first)
    along = sum(torch.sum(d * x.detach()) for d, x in zip(found, a, strict=True))
    close(torch.autograd.grad(along, a), second)
    b = tuple(x.detach() for x in a)
    tangent = torch.func.jvp(torch.func.grad(f, (0, 1)), b, b)[1]
    close(tangent, second)


@pytest.mark.parametrize("problem", [*PROBLEMS, BY_STEPS])
def test_tensorflow(problem):
    tf = pytest.importorskip("tensorflow")
    f, (first, second) = loss(problem), expected(problem)
    close(by_tensorflow(f, (P, W)), first)
    a = tf.constant(P), tf.constant(W)
    if problem in (linear, root, BY_STEPS):
        with tf.GradientTape() as outer:
            outer.watch(a)
            with tf.GradientTape() as tape:
                tape.watch(a)
                y = f(*a)
            found = tape.gradient(y, a)
            along = sum(
                tf.reduce_sum(d * x) for d, x in zip(found, (P, W), strict=True)
            )
        close(outer.gradient(along, a), second)


@pytest.mark.parametrize("name", ["linear", "root"])
def test_what_the_equations_capture(name):
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    tf = pytest.importorskip("tensorflow")
    f = loss(captured(name))
    problem = {"linear": linear, "root": root}[name]
    truth = gs.grad(loss(problem), (0, 1))(P, W)
    with jax.enable_x64(True):
        close(jax.jit(jax.grad(f, (0, 1)))(P, W), truth)
    a = [torch.tensor(x, requires_grad=True) for x in (P, W)]
    f(*a).backward()
    close([x.grad for x in a], truth)
    a = tf.constant(P), tf.Variable(W)
    with tf.GradientTape() as tape:
        tape.watch(a[0])
        y = f(*a)
    close(tape.gradient(y, a), truth)


def test_as_optimistix_finds_them():
    jax = pytest.importorskip("jax")
    optx = pytest.importorskip("optimistix")
    jnp = jax.numpy

    def theirs(p, w):
        def equation(x, args):
            p, w = args
            return x + jnp.tanh(w @ x) - p

        solver = optx.Newton(rtol=1e-12, atol=1e-12)
        x = optx.root_find(equation, solver, jnp.zeros_like(p), (p, w)).value
        return jnp.sum(jnp.sin(x))

    def their_fixed_point(p, w):
        def once(x, args):
            p, w = args
            return 0.5 * jnp.tanh(w @ x) + p

        solver = optx.FixedPointIteration(rtol=1e-13, atol=1e-13)
        x = optx.fixed_point(once, solver, jnp.zeros_like(p), (p, w)).value
        return jnp.sum(jnp.sin(x))

    with jax.enable_x64(True):
        for their, problem in ((theirs, root), (their_fixed_point, fixed_point)):
            truth = jax.grad(their, (0, 1))(jnp.asarray(P), jnp.asarray(W))
            close(jax.grad(loss(problem), (0, 1))(P, W), map(np.asarray, truth))


def test_no_solution_is_said_in_compiled_code_too():
    jax = pytest.importorskip("jax")
    tf = pytest.importorskip("tensorflow")

    def rootless(x0):
        return ops.root(lambda x: x**2 + 1, x0 / 3, max_steps=9)

    def run():
        jax.block_until_ready(jax.jit(rootless)(np.ones(1, np.float32)))
        jax.effects_barrier()

    with pytest.raises(Exception, match="no root was found"):
        run()
    with pytest.raises(Exception, match="no root was found"):
        tf.function(rootless)(tf.ones(1))


def test_a_module_as_the_equations():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 3).double()
    x = torch.ones(3, dtype=torch.float64)
    z = ops.fixed_point(lambda z: torch.tanh(layer(z)) * 0.5 + x, 0 * x)
    torch.sum(z).backward()
    through = 0 * x
    copy = torch.nn.Linear(3, 3).double()
    copy.load_state_dict(layer.state_dict())
    for _ in range(80):
        through = torch.tanh(copy(through)) * 0.5 + x
    torch.sum(through).backward()
    np.testing.assert_allclose(layer.weight.grad, copy.weight.grad, rtol=1e-9)


def test_steps_that_fit_are_chosen_where_there_are_values():
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    tf = pytest.importorskip("tensorflow")
    f = loss(discrete(rtol=1e-5))
    truth = gs.grad(f, (0, 1))(P, W)
    with jax.enable_x64(True):
        close(jax.grad(f, (0, 1))(P, W), truth)
        with pytest.raises(gs.GradsmithError, match="which compiled code and vmap"):
            jax.jit(f)(P, W)
    close(torch.func.grad(f, (0, 1))(torch.tensor(P), torch.tensor(W)), truth)
    a = tf.constant(P), tf.constant(W)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = f(*a)
    close(tape.gradient(y, a), truth)
    with pytest.raises(gs.GradsmithError, match="which compiled code and vmap"):
        tf.function(f)(*a)


@pytest.mark.parametrize("framework", ["jax", "torch", "tensorflow"])
def test_the_entries_of_a_sparse_matrix(framework):
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.eye(5) + W)

    def f(values, b):
        return gnp.sum(gnp.sin(ops.linear_solve(a, b, values)))

    args = a.data, P
    truth = gs.grad(f, (0, 1))(*args)
    close(DERIVED[framework](f, args), truth)


def test_odeint_is_compiled_once_for_all_times():
    jax = pytest.importorskip("jax")

    def total(k, n):
        t = jax.numpy.linspace(0, 1, n)
        y0 = {"y": jax.numpy.ones(2)}
        ys = ops.odeint(lambda t, y, k: {"y": -k * y["y"]}, y0, t, k)
        return jax.numpy.sum(ys["y"])

    def program(n):
        return str(jax.make_jaxpr(jax.value_and_grad(lambda k: total(k, n)))(0.7))

    assert len(program(30)) < 1.1 * len(program(4))
    t, k = np.linspace(0, 1, 5), np.float32(0.7)
    value, slope = jax.jit(jax.value_and_grad(lambda k: total(k, 5)))(k)
    np.testing.assert_allclose(value, 2 * np.exp(-k * t).sum(), rtol=1e-4)
    np.testing.assert_allclose(slope, -2 * (t * np.exp(-k * t)).sum(), rtol=1e-3)
