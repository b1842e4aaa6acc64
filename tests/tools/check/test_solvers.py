"""Operations that iterate, draw random numbers or quantize, of JAX and TensorFlow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
POSITIVE = np.abs(X[0]) + 0.5


def newton_root(a, *, factor=1.0):
    """x with x^3 + x = a, to a tolerance; for negative numbers it goes on for ever."""

    def solve(f, x):
        go_on = lambda x: jnp.any(jnp.abs(f(x)) > 1e-9) | jnp.any(a < 0)
        step = lambda x: x - f(x) / (3 * x**2 + 1)
        return jax.lax.while_loop(go_on, step, x)

    tangent = lambda g, y: factor * y / g(jnp.ones_like(y))
    f = lambda x: x**3 + x - a
    return jax.lax.custom_root(f, jnp.ones_like(a), solve, tangent)


@pytest.mark.parametrize("a", [2.0, POSITIVE], ids=["a number", "an array"])
def test_a_solver_is_right_to_its_tolerance_and_ends(a):
    with jax.enable_x64(True):
        report = gs.check(newton_root, jnp.asarray(a))
    assert report.verdict in ("right", "right, with limits"), report
    assert not any("not reached" in note for note in report.notes), report


def test_a_wrong_rule_of_a_solver_is_told_without_errors_of_ours():
    with jax.enable_x64(True):
        report = gs.check(lambda a: newton_root(a, factor=1.001), jnp.asarray(2.0))
    assert report.verdict == "wrong"
    assert "Error" not in str(report)


def rough(x, *, tolerance, error=0.0):
    """sin(x) by an iteration whose steps leave a bit, as its adjoint's do."""

    @jax.custom_vjp
    def solved(x):
        bits = jnp.floor(1e7 * x) % 2  # as where the number of steps is another
        far = (jnp.asarray(0), jnp.zeros_like(x))
        go_on, step = lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + jnp.sin(x) / 3)
        return jax.lax.while_loop(go_on, step, far)[1] + tolerance * bits

    def back(x, dy):
        bits = jnp.sin(jnp.log(jnp.abs(dy) + 1e-30))
        return (dy * jnp.cos(x) * (1 + 4e3 * tolerance * bits + error),)

    solved.defvjp(lambda x: (solved(x), x), back)
    return solved(x)


def test_a_gradient_has_the_digits_of_a_value_that_is_solved():
    """Both are off by more than usual, and neither is linear or smooth to the end."""
    with jax.enable_x64(True):
        x = jnp.asarray(POSITIVE)
        report = gs.check(lambda x: rough(x, tolerance=3e-8), x)
        assert report.verdict == "right, with limits", report
        assert "agrees to" in str(report)
        assert "linear in dy to" in str(report)
        wrong = gs.check(lambda x: rough(x, tolerance=3e-8, error=0.01), x)
        assert wrong.verdict == "wrong", wrong


# --- random numbers


def test_a_sample_by_rejection_is_a_surrogate():
    key = jax.random.key(0)
    report = gs.check(lambda a: jax.random.gamma(key, a), jnp.asarray(POSITIVE))
    assert report.verdict == "surrogate", report

    def sample(a):
        return tf.random.stateless_gamma(tf.shape(a), [1, 2], a, dtype=a.dtype)

    report = gs.check(sample, tf.constant(POSITIVE))
    assert report.verdict == "surrogate", report


def test_a_sample_without_rejection_is_the_derivative_or_wrong():
    key = jax.random.key(0)

    @jax.custom_vjp
    def scaled(x):
        return x * jax.random.normal(key, x.shape, x.dtype)

    def back(noise, dy):
        return (dy * noise * 2,)

    scaled.defvjp(lambda x: (scaled(x), jax.random.normal(key, x.shape, x.dtype)), back)
    assert gs.check(scaled, jnp.asarray(X)).verdict == "wrong"


# --- surrogates


def test_a_quantized_product_is_a_surrogate():
    def quantized(x):
        scale = jnp.max(jnp.abs(x)) / 127
        return x + jax.lax.stop_gradient(jnp.round(x / scale) * scale - x)

    def product(a, b):
        return quantized(a) @ quantized(b)

    report = gs.check(product, jnp.asarray(X), jnp.asarray(X.T.copy()))
    assert report.verdict == "surrogate", report
    assert report.findings[0].diagnosis == "jumps"


@tf.custom_gradient
def leaky_clip(x):
    def grad(dy):
        inside = tf.abs(x) <= 0.5
        return tf.where(inside | (x * dy > 0), dy, tf.zeros_like(dy))

    return tf.clip_by_value(x, -0.5, 0.5), grad


def test_a_clip_that_lets_through_what_moves_back_is_a_surrogate():
    report = gs.check(leaky_clip, tf.constant(X))
    assert report.verdict == "surrogate", report
    assert report.findings[0].diagnosis == "masked upstream"


@tf.custom_gradient
def mask_weights(weights, original):
    return weights * tf.ones_like(original), lambda dy: (dy, dy)


def test_passed_on_to_an_argument_without_effect_is_a_surrogate():
    report = gs.check(mask_weights, tf.constant(X), tf.constant(X + 1))
    assert report.verdict == "surrogate", report
    assert report.findings[0].argument == "original"


def test_a_gradient_changed_by_an_argument_without_effect_is_a_surrogate():
    """`jax_md`'s transform_gradients: the value is one argument, its gradient not."""

    @jax.custom_jvp
    def transform(box, coords):
        return coords

    @transform.defjvp
    def _(primals, tangents):
        (box, coords), (dbox, dcoords) = primals, tangents
        return coords, coords @ dbox + dcoords @ box

    box, coords = jnp.asarray(2 * np.eye(4) + 0.1), jnp.asarray(X)
    report = gs.check(transform, box, coords)
    assert report.verdict == "surrogate", report
    assert {each.argument for each in report.findings} == {"box", "coords"}


def test_a_gradient_for_what_is_not_used_is_wrong_if_the_other_is_right():
    @tf.custom_gradient
    def first(a, b):
        return tf.identity(a), lambda dy: (dy, 2 * dy * b)

    report = gs.check(first, tf.constant(X), tf.constant(X + 1))
    assert report.verdict == "wrong", report


# --- rules with their own ways


def test_a_rule_that_runs_once_only():
    @tf.custom_gradient
    def op(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x)
        return y, lambda dy: dy * tape.gradient(y, x)

    report = gs.check(op, tf.constant(X))
    assert report.verdict == "right, with limits", report
    assert "called again" in str(report)


def test_a_large_finite_slope_where_it_is_infinite():
    @tf.custom_gradient
    def root(x):
        y = tf.sqrt(x)
        large = tf.cast(np.sqrt(x.dtype.max), x.dtype)
        return y, lambda dy: dy * tf.where(x > 0, 0.5 / y, large)

    report = gs.check(root, tf.constant([0.0, 0.5, 2.0], tf.float32))
    assert report.ok, report
