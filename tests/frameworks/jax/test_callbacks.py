"""NumPy code inside JAX's, with its gradient: `gs.python_op` and what it builds on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS

X = jnp.linspace(0.1, 1, 4, dtype="float32")


@gs.python_op
def cube(x):
    assert not isinstance(x, jax.Array)  # whose use in a callback may wait for itself
    return np.power(x, 3)


@cube.vjp
def _(dy, y, x):
    return 3 * x**2 * dy


def total(x):
    return jnp.sum(cube(x))


WAYS = [
    lambda f: f,
    jax.jit,
    jax.checkpoint,
    lambda f: lambda x: jax.jit(f)(x),
]


@pytest.mark.parametrize("wrap", WAYS)
def test_values_gradients_and_tangents(wrap):
    np.testing.assert_allclose(wrap(cube)(X), X**3, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(wrap(total))(X), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(wrap(cube), (X,), (X,))[1], 3 * X**3, rtol=1e-6)
    second = jax.grad(lambda x: jnp.sum(jax.grad(wrap(total))(x) ** 2))
    np.testing.assert_allclose(second(X), 36 * X**3, rtol=1e-5)


def test_batched_and_in_loops():
    each = jax.vmap(jax.grad(cube))
    np.testing.assert_allclose(each(X), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(each)(X), 3 * X**2, rtol=1e-6)
    outside = jax.grad(lambda x: jnp.sum(jax.vmap(cube)(x)))
    np.testing.assert_allclose(jax.jit(outside)(X), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(cube)(X), jnp.diag(3 * X**2), rtol=1e-6)
    np.testing.assert_allclose(jax.jacrev(cube)(X), jnp.diag(3 * X**2), rtol=1e-6)

    def twice(x):
        return jax.lax.scan(lambda s, _: (cube(s), None), x, None, length=2)[0].sum()

    np.testing.assert_allclose(jax.jit(jax.grad(twice))(X), 9 * X**8, rtol=1e-5)


def test_a_linear_callback_is_transposable():
    @gs.python_op
    def doubled(x):
        return 2 * x

    @doubled.vjp
    def _(dy, y, x):
        return 2 * dy

    for wrap in (lambda f: f, jax.jit):
        (found,) = jax.vjp(wrap(doubled), X)[1](X)
        np.testing.assert_allclose(found, 2 * X)
        np.testing.assert_allclose(jax.linearize(wrap(doubled), X)[1](X), 2 * X)
        back = jax.linear_transpose(jax.linearize(wrap(doubled), X)[1], X)(X)
        np.testing.assert_allclose(back[0], 2 * X)


# --- host itself ---------------------------------------------------------------------

host = FRAMEWORKS["jax"].call.host


def test_one_callback_serves_a_batch():
    calls = []

    def fn(x, w):
        calls.append((x.shape, w.shape))
        return [x * w, np.sum(w)]

    specs = [gs.spec((3,), "float32"), gs.spec((), "float32")]
    run = lambda x, w: host(fn, [x, w], specs, "fn")
    x, w = jnp.arange(12.0).reshape(2, 2, 3), jnp.arange(3.0)
    batched = jax.jit(jax.vmap(jax.vmap(run, (0, None)), (0, None)))
    y, s = batched(x, w)
    np.testing.assert_array_equal(y, x * w)
    np.testing.assert_array_equal(s, np.full((2, 2), 3))
    assert calls == [((3,), (3,))] * 4
    assert str(jax.make_jaxpr(batched)(x, w)).count("pure_callback[") == 1


def test_results_get_the_dtype_that_jax_has_for_them():
    fn = lambda x: [np.asarray(x, "float64") / 3]
    run = lambda x: host(fn, [x], [gs.spec((4,), "float64")], "fn")[0]
    assert run(X).dtype == jax.jit(run)(X).dtype == jnp.float32
    with jax.enable_x64(True):
        assert run(X).dtype == jax.jit(run)(X).dtype == jnp.float64


def test_large_arrays_do_not_wait_for_each_other():
    x = jnp.ones((1500, 1500))
    fn = lambda x: [np.sin(x)]
    spec = gs.spec(x.shape, "float32")

    @jax.jit
    def f(x):
        for _ in range(3):
            x = host(fn, [x * 2], [spec], "sin")[0] @ x
        return x

    assert f(x).shape == x.shape


def test_in_eager_mode_the_function_runs_at_once():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        host(fail, [X], [], "fail")


class Scaled:
    @gs.python_op
    def times(self, x):
        return x * self.k

    @times.vjp
    def _(dy, y, self, x):  # noqa: N805  (a rule, no method)
        return dy * self.k


@pytest.mark.parametrize("spec", [None, lambda x: x])
def test_a_captured_traced_value_is_refused_not_lost(spec):
    def by_closure(w, x):
        times = gs.python_op(lambda x: x * w, lambda dy, y, x: dy, spec=spec)
        return jnp.sum(times(x))

    def by_object(w, x):
        scaled = Scaled()
        scaled.k = w
        return jnp.sum(scaled.times(x))

    for captures in (by_closure, by_object):
        with pytest.raises(gs.UnsupportedOperationError, match="make it an argument"):
            jax.jit(jax.grad(captures))(X, X)


def test_an_output_that_a_gradient_captures_is_differentiated_by_the_rule():
    @gs.custom_gradient
    def reciprocal(x):
        y = 1 / x
        return y, lambda dy: -2 * y * y * dy  # wrong by a factor of 2

    second = gs.grad(gs.grad(reciprocal))(0.5)
    assert second == 8 / 0.5**3  # the rule of y in the rule of y
    host = gs.python_op(reciprocal)
    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_allclose(wrap(jax.grad(jax.grad(host)))(0.5), second)
        np.testing.assert_allclose(wrap(jax.jacfwd(jax.grad(host)))(0.5), second)


def test_a_rule_may_come_after_the_first_call():
    double = gs.python_op(lambda x: 2 * x)
    np.testing.assert_allclose(double(X), 2 * X)
    double.vjp(lambda dy, y, x: 2 * dy)
    np.testing.assert_allclose(jax.vmap(jax.grad(double))(X), 2)


def test_of_an_operation_that_is_not_linear():
    clip = gs.with_gradient(np.positive, lambda dy, y, x: np.clip(dy, -1, 1))
    assert gs.python_op(clip).linear
    assert not gs.python_op(clip, linear=False).linear


def test_second_derivatives_in_bfloat16_are_refused():
    x = X.astype("bfloat16")
    np.testing.assert_allclose(jax.grad(total)(x), 3 * x * x, rtol=0.02)
    with pytest.raises(gs.UnsupportedOperationError, match="float32 or float64"):
        jax.jit(jax.grad(lambda x: jnp.sum(jax.grad(total)(x))))(x)
