"""Births in JAX."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

jax = pytest.importorskip("jax")
jnp = jax.numpy


def entropy(p):
    logs = jnp.log(p)
    return -jnp.sum(p * logs)


def masked(x):
    roots = jnp.sqrt(x)
    return jnp.sum(jnp.where(x > 0, roots, 0.0))


@jax.custom_vjp
def double(x):
    return x * 2


def double_forward(x):
    return x * 2, x


def double_backward(x, dy):
    half = x * 0.5
    return (dy / half,)


double.defvjp(double_forward, double_backward)


@jax.custom_jvp
def triple(x):
    return x * 3


@triple.defjvp
def triple_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    slope = 1 / x
    return x * 3, slope * dx


@gs.custom_gradient
def root(x):
    y = gnp.sqrt(x)

    def grad(dy):
        slope = 2 * y
        return dy / slope

    return y, grad


def test_forward():
    report = gs.find_nan(entropy, jnp.array([0.5, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("log", "forward", "inf")
    assert report.where.file == __file__
    assert report.where.source == "logs = jnp.log(p)"
    assert str(report.inputs[0]) == "x[1] = 0.0"
    assert "becomes NaN in mul" in report.explanation


@pytest.mark.parametrize("wrap", [lambda fn: fn, jax.jit, jax.checkpoint])
def test_masked_branch(wrap):
    report = gs.find_nan(wrap(masked), jnp.array([4.0, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("sqrt", "backward", "nan")
    assert report.where.source == "roots = jnp.sqrt(x)"
    assert report.masked
    assert "jnp.where(x > 0" in report.mask.source
    assert "jnp.where(mask, f(safe), 0.0)" in report.repair
    assert report.reaches == ("the gradient of x",)


def test_native_vjp():
    report = gs.find_nan(double, jnp.array([0.0, 1.0]))
    assert (report.operation, report.phase) == ("div", "backward")
    assert report.where.source == "return (dy / half,)"
    assert report.where.function == "double_backward"


def test_native_jvp():
    report = gs.find_nan(triple, jnp.array([0.0, 1.0]))
    assert report.where.source == "slope = 1 / x"


def test_rule_of_ours():
    report = gs.find_nan(lambda x: jnp.sum(3 * root(x)), jnp.array([0.0, 1.0]))
    assert (report.operation, report.phase) == ("div", "backward")
    assert report.where.source == "return dy / slope"


def test_body_of_ours():
    @gs.custom_gradient
    def log(x):
        y = gnp.log(x)
        return y, lambda dy: dy

    report = gs.find_nan(log, jnp.array([0.0, 1.0]))
    assert report.where.source == "y = gnp.log(x)"


def test_scan():
    def f(xs):
        def step(total, x):
            r = jnp.sqrt(x)
            return 0.5 * total + r, total * r

        total, parts = jax.lax.scan(step, 0.0, xs, reverse=True)
        return total + jnp.sum(parts)

    report = gs.find_nan(f, jnp.array([4.0, 0.0]))
    assert (report.phase, report.where.source) == ("backward", "r = jnp.sqrt(x)")
    xs = jnp.array([4.0, 1.0, 9.0])
    walked = _gradient(f, xs)
    np.testing.assert_allclose(walked, jax.grad(f)(xs), rtol=1e-6)


def _gradient(f, x):
    from gradsmith.frameworks.jax.arrays import floats
    from gradsmith.frameworks.jax.observe.walk import EquationWalk
    from gradsmith.tools.nan.origins import Origins

    code = jax.make_jaxpr(f)(x)
    walk = EquationWalk(Origins(floats), active=[x])
    ys = walk.run(code, [x], None)
    return walk.gradients(ys, [x])[0]


def test_branches_and_loops():
    def branch(x):
        return jax.lax.cond(x[0] > 1, jnp.exp, lambda x: jnp.log(x), x)

    report = gs.find_nan(branch, jnp.array([0.0]))
    assert report.operation == "log"
    report = gs.find_nan(branch, jnp.array([1000.0]))
    assert report.operation == "exp"

    def loop(x):
        return jax.lax.while_loop(lambda c: c < 1e30, lambda c: c * c * c, x)

    report = gs.find_nan(loop, jnp.array(1e15))
    assert (report.operation, report.kind) == ("mul", "inf")


def test_sum_of_gradients():
    def twice(x):
        return 3e38 * jnp.sum(x) + 3e38 * jnp.sum(x - 1)

    report = gs.find_nan(twice, jnp.array([0.0]))
    assert report.operation.startswith("the sum of the gradients")


def test_clean():
    assert gs.find_nan(masked, jnp.array([4.0, 1.0])).ok
    assert gs.find_nan(jax.nn.softplus, jnp.array([1000.0])).ok


def test_given():
    report = gs.find_nan(entropy, jnp.array([jnp.nan, 1.0]))
    assert (report.phase, report.operation) == ("argument", "p")
    report = gs.find_nan(jax.nn.softmax, jnp.array([jnp.inf, 1.0]))
    assert (report.phase, report.operation) == ("forward", "sub")
    assert "was given: x[0] = inf" in report.explanation


def test_functions_that_look_at_values():
    def f(x):
        if x[0] > 0:
            return jnp.log(x - 1)
        return x

    report = gs.find_nan(f, jnp.array([1.0, 2.0]))
    assert report.where.source == "return jnp.log(x - 1)"
    assert gs.find_nan(f, jnp.array([-1.0, 2.0])).ok
    assert not jax.config.jax_disable_jit


def test_bodies_in_functions_that_look_at_values():
    @jax.custom_jvp
    def log(x):
        return jnp.log(x) + 1

    log.defjvp(lambda primals, tangents: (log(*primals), tangents[0]))

    def f(x):
        return log(x) if x[0] >= 0 else x

    report = gs.find_nan(f, jnp.array([0.0]))
    assert report.where.source == "return jnp.log(x) + 1"


@pytest.mark.parametrize("op", [double, triple, root], ids=["vjp", "jvp", "ours"])
def test_rules_in_functions_that_look_at_values(op):
    def f(x):
        return jnp.sum(op(x)) if x[0] >= 0 else x

    report = gs.find_nan(f, jnp.array([0.0, 2.0]))
    assert (report.operation, report.phase) == ("div", "backward")
    assert report.where.source in (
        "return (dy / half,)",
        "slope = 1 / x",
        "return dy / slope",
    )
