"""Reverse and forward mode, to third order, from the one rule of an operation."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.jet import jet

import gradsmith as gs

X = np.float32(1.3)
BATCH = np.linspace(0.1, 2, 5, dtype="float32")


def reference(x):
    return jnp.sin(x) * x


@gs.custom_gradient
def closure(x):
    e = jnp.sin(x)  # captured: a function of x when the gradient is differentiated
    return e * x, lambda dy: dy * (jnp.cos(x) * x + e)


@gs.custom_gradient
def capturing_its_output(x):
    y = jnp.sin(x) * x
    return y, lambda dy: dy * (jnp.cos(x) * x + y / x)


@gs.operation
def by_vjp(x):
    return reference(x)


@by_vjp.vjp
def _(dy, y, x):
    return dy * (jnp.cos(x) * x + y / x)


@gs.operation
def by_jvp(x):
    return reference(x)


@by_jvp.jvp
def _(dx, y, x):
    return dx * (jnp.cos(x) * x + jnp.sin(x))


by_both = gs.with_gradient(
    reference,
    lambda dy, y, x: dy * (jnp.cos(x) * x + jnp.sin(x)),
    jvp=lambda dx, y, x: dx * (jnp.cos(x) * x + y / x),
)

OPERATIONS = [closure, capturing_its_output, by_vjp, by_jvp, by_both]
MODES = {"reverse": jax.grad, "forward": jax.jacfwd}
WORDS = [word for n in (1, 2) for word in product(MODES, repeat=n)]
WORDS += [["reverse"] * 3, ["forward", "reverse", "forward"]]


def derivative(f, word):
    for mode in word:
        f = MODES[mode](f)
    return f


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("word", WORDS, ids="-".join)
def test_any_mix_of_modes_is_right_to_third_order(operation, word):
    f, expected = derivative(operation, word), derivative(reference, word)(X)
    np.testing.assert_allclose(f(X), expected, rtol=2e-5)
    expected = jax.vmap(derivative(reference, word))(BATCH)
    found = jax.jit(jax.vmap(f))(BATCH)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_tangent_that_depends_on_the_point_is_differentiated(operation):
    def along(f):
        return lambda x: jax.jvp(f, (x,), (x * x,))[1]

    for mode in MODES.values():
        expected = mode(along(reference))(X)
        np.testing.assert_allclose(mode(along(operation))(X), expected, rtol=2e-5)


@gs.custom_gradient
def wrong_closure(x):
    return jnp.sin(x), lambda dy: 10 * dy


wrong_vjp = gs.with_gradient(jnp.sin, lambda dy, y, x: 10 * dy)
wrong_jvp = gs.with_gradient(jnp.sin, jvp=lambda dx, y, x: 10 * dx)
CANARIES = [wrong_closure, wrong_vjp, wrong_jvp]


@pytest.mark.parametrize("operation", CANARIES)
def test_a_wrong_rule_shows_in_every_mode(operation):
    assert operation(jnp.float32(0)) == 0
    assert jax.grad(operation)(X) == 10
    assert jax.jvp(operation, (X,), (np.float32(1),))[1] == 10
    assert jax.vjp(operation, X)[1](np.float32(2)) == (20,)
    assert jax.linearize(operation, X)[1](np.float32(2)) == 20
    assert jax.value_and_grad(operation)(X)[1] == 10
    assert jax.jacrev(operation)(X) == jax.jacfwd(operation)(X) == 10
    assert jax.jit(jax.grad(operation))(X) == 10
    assert jax.grad(jax.jit(operation))(X) == 10
    assert jax.hessian(operation)(X) == 0
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(operation)))(BATCH), 10)
    total = jax.grad(lambda x: jax.vmap(operation)(x).sum())(BATCH)
    np.testing.assert_array_equal(total, 10)


@pytest.mark.parametrize("operation", CANARIES)
def test_the_rule_also_speaks_for_the_output_in_second_order(operation):
    # d/dx y**2 = 2 y 10, and once more 2 * 10 * 10
    for outer, inner in product(MODES.values(), repeat=2):
        assert outer(inner(lambda x: operation(x) ** 2))(X) == 200


@gs.custom_gradient
def output_captured(x):
    y = x * x * x
    return y, lambda dy: dy * y * 10


@gs.custom_gradient
def intermediate_captured(x):
    e = x * x * x
    return e * 1.0, lambda dy: dy * e * 10


@gs.custom_gradient
def argument_captured(x):
    return x, lambda dy: dy * x * 10


@pytest.mark.parametrize(
    # an output by the rule: 10 * 10 y; the rest by autodiff: 10 * 3 x**2, and 10
    ("operation", "expected"),
    [(output_captured, 800), (intermediate_captured, 120), (argument_captured, 10)],
)
def test_what_a_gradient_captures_counts_as_on_the_engine(operation, expected):
    assert gs.grad(gs.grad(operation))(2.0) == expected
    for outer, inner in product(MODES.values(), repeat=2):
        assert outer(inner(operation))(2.0) == expected
        assert jax.jit(outer(inner(operation)))(2.0) == expected


both_wrong = gs.with_gradient(
    jnp.sin, lambda dy, y, x: 10 * dy, jvp=lambda dx, y, x: 3 * dx
)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint])
def test_with_both_rules_each_mode_takes_its_own(wrap):
    operation = wrap(both_wrong)
    assert jax.grad(operation)(X) == 10
    assert jax.jvp(operation, (X,), (np.float32(1),))[1] == 3
    assert jax.jacrev(operation)(X) == 10
    assert jax.jacfwd(operation)(X) == 3


def test_values_and_gradients_with_several_outputs_and_arguments():
    @gs.custom_gradient
    def polar(r, phi):
        c, s = jnp.cos(phi), jnp.sin(phi)

        def grad(dx, dy):
            return jnp.sum(dx * c + dy * s), r * (dy * c - dx * s)

        return r * c, r * s, grad

    def plain(r, phi):
        return r * jnp.cos(phi), r * jnp.sin(phi)

    r, phi = jnp.float32(2), jnp.arange(3, dtype="float32")
    for transform in (jax.jacrev, jax.jacfwd):
        found = transform(polar, (0, 1))(r, phi)
        expected = transform(plain, (0, 1))(r, phi)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)

    def loss(f):
        return lambda r, phi: jnp.sum(jnp.sin(f(r, phi)[0]) * f(r, phi)[1])

    found = jax.hessian(loss(polar), (0, 1))(r, phi)
    expected = jax.hessian(loss(plain), (0, 1))(r, phi)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# --- what has no transpose -----------------------------------------------------------

clipping = gs.with_gradient(
    lambda x: x * 1, lambda dy, y, x: jnp.clip(dy, -1, 1), linear=False
)


@gs.custom_gradient(linear=False)
def clipping_closure(x):
    return x * 1, lambda dy: jnp.clip(dy, -1, 1)


@pytest.mark.parametrize("operation", [clipping, clipping_closure])
def test_a_rule_that_is_not_linear_has_reverse_mode_alone(operation):
    for wrap in (lambda f: f, jax.jit):
        f = wrap(lambda x: 5 * operation(x))
        assert jax.grad(f)(X) == 1
        np.testing.assert_array_equal(jax.vmap(jax.grad(f))(BATCH), 1)
        total = jax.grad(lambda x, f=f: jax.vmap(f)(x).sum())(BATCH)
        np.testing.assert_array_equal(total, 1)
        with pytest.raises(gs.NotDifferentiableError, match="no forward mode"):
            jax.jvp(f, (X,), (X,))
    with pytest.raises(gs.NotDifferentiableError, match=r"@.*\.jvp"):
        jax.jit(jax.jacfwd(operation))(X)


def test_an_operation_without_a_rule_runs_and_is_not_differentiated():
    @gs.operation
    def bare(x):
        return jnp.sin(x)

    assert jax.jit(bare)(X) == bare(jnp.asarray(X))
    for transform in (jax.grad, jax.jacfwd):
        for wrap in (lambda f: f, jax.jit):
            with pytest.raises(gs.UnsupportedOperationError, match="no gradient yet"):
                transform(wrap(bare))(X)


def test_a_rule_may_hold_what_jax_cannot_transpose():
    def slow_times(n, dy):  # a loop of unknown length has no transpose in JAX
        stop = lambda state: state[0] < n
        step = lambda state: (state[0] + 1, state[1] + dy)
        return jax.lax.while_loop(stop, step, (0, jnp.zeros_like(dy)))[1]

    @gs.custom_gradient
    def tripled(x, n):
        return x * 3, lambda dy: (slow_times(n, dy), None)

    assert jax.grad(tripled)(X, 3) == 3
    assert jax.jit(jax.grad(tripled))(X, 3) == 3
    np.testing.assert_array_equal(
        jax.vmap(jax.grad(tripled), (0, None))(BATCH, jnp.int32(3)), 3
    )
    with pytest.raises(ValueError, match="Reverse-mode") as info:
        jax.jvp(lambda x: tripled(x, jnp.int32(3)), (X,), (X,))
    assert "@tripled.jvp would give it directly" in "".join(info.value.__notes__)


def test_the_transpose_of_a_rule_honours_operations_in_it():
    reverse = gs.with_gradient(lambda x: x, lambda dy, y, x: -7 * dy)

    @gs.custom_gradient
    def outer(x):
        return x * 1, lambda dy: reverse(dy)

    assert jax.grad(outer)(X) == 1
    assert jax.jvp(outer, (X,), (np.float32(1),))[1] == -7
    assert jax.jit(jax.jacfwd(outer))(X) == -7


def test_linear_transpose_would_drop_the_rule_and_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match=r"jax\.vjp"):
        jax.linear_transpose(clipping, X)(X)
    with pytest.raises(gs.UnsupportedOperationError, match=r"jax\.linear_transpose"):
        jax.linear_transpose(jax.jit(clipping), X)(X)


def test_taylor_mode_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="nest"):
        jet(wrong_vjp, (X,), ((1.0, 0.0),))
    with pytest.raises(gs.UnsupportedOperationError, match="nest"):
        jet(jax.jit(wrong_vjp), (X,), ((1.0, 0.0),))


def test_a_body_in_plain_python_works_where_jax_is_eager():
    @gs.custom_gradient
    def f(x):
        if x > 1:
            return x * 2, lambda dy: dy * (20 if dy > 0 else 30)
        return x * 3, lambda dy: dy * 3

    assert jax.grad(f)(2.0) == 20
    assert jax.grad(f)(0.5) == 3
    assert jax.jvp(f, (0.5,), (1.0,))[1] == 3


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_numbers_and_numpy_arrays_become_arrays_of_jax(wrap):
    @gs.operation
    def halved(x):
        return 0.5 * x.at[()].get()

    @halved.vjp
    def _(dy, y, x):
        return 0.5 * dy.at[()].get()

    for one in (1.0, np.float32(1)):
        assert jax.jvp(wrap(halved), (one,), (one,)) == (0.5, 0.5)
        y, pull = jax.vjp(wrap(halved), one)
        assert pull(np.asarray(1, y.dtype)) == (0.5,)
