"""Traced values that a body or a rule captures, which JAX's custom_vjp refuses."""

from __future__ import annotations

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gradsmith as gs

C = np.float32(0.5)


def plain_of(c):
    return lambda x: jnp.exp(x * c) * c


def closure_of(c):
    @gs.custom_gradient
    def op(x):
        e = jnp.exp(x * c)
        return e * c, lambda dy: dy * e * c * c

    return op


def rule_of(c):
    return gs.with_gradient(plain_of(c), lambda dy, y, x: dy * y * c)


def jvp_of(c):
    return gs.with_gradient(plain_of(c), jvp=lambda dx, y, x: dx * y * c)


def nested_in_closure(c):
    inner = closure_of(c)

    @gs.custom_gradient
    def op(x):
        y = inner(x)
        return y, lambda dy: dy * y * c

    return op


def nested_in_rule(c):
    return gs.with_gradient(closure_of(c), lambda dy, y, x: dy * y * c)


MAKERS = [closure_of, rule_of, jvp_of, nested_in_closure, nested_in_rule]


def at_once(make, c):
    return make(c)(jnp.sin(c)) ** 2


def in_jit(make, c):
    return jax.jit(lambda x: make(c)(x))(jnp.sin(c)) ** 2


def in_scan(make, c):
    step = lambda s, _: (0.1 * make(c)(s), None)
    return lax.scan(step, jnp.float32(0.7), None, length=2)[0]


def in_vmap(make, c):
    return jnp.sum(jax.vmap(lambda x: make(c)(x))(jnp.arange(3.0) * c))


def mapped_itself(make, c):
    return jnp.sum(jax.vmap(lambda z: make(c * z)(jnp.sin(c)))(jnp.arange(3.0)))


def in_checkpoint(make, c):
    return jax.checkpoint(lambda x: make(c)(x))(jnp.sin(c))


PLACES = [at_once, in_jit, in_scan, in_vmap, mapped_itself, in_checkpoint]
MODES = {"reverse": jax.grad, "forward": jax.jacfwd}
WORDS = [["reverse"], ["forward"], ["reverse", "reverse"], ["forward", "reverse"]]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", MAKERS)
def test_like_autodiff_to_second_order(make, place):
    for word in WORDS:
        f, g = partial(place, make), partial(place, plain_of)
        for mode in word:
            f, g = MODES[mode](f), MODES[mode](g)
        np.testing.assert_allclose(jax.jit(f)(C), jax.jit(g)(C), rtol=1e-4)
        if len(word) == 1:
            np.testing.assert_allclose(f(C), g(C), rtol=1e-4)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_the_rule_speaks_for_arguments_and_autodiff_for_the_rest(wrap):
    def f(x, c):
        @gs.custom_gradient
        def op(x):
            return x * c, lambda dy: 10 * dy

        return op(x)

    assert wrap(jax.grad(f, (0, 1)))(5.0, 2.0) == (10, 5)
    assert wrap(jax.jacfwd(f, (0, 1)))(5.0, 2.0) == (10, 5)
    # also if nothing else is perturbed, or traced
    assert wrap(jax.grad(lambda c: f(jnp.float32(5), c)))(2.0) == 5


def reversal(strength):
    """The body does not use what the gradient captures."""

    @gs.custom_gradient
    def op(x):
        return x, lambda dy: -strength * dy

    return op


def held_by_an_object(strength):
    class Holder:
        pass

    holder = Holder()
    holder.options = {"strength": [strength]}
    rule = lambda dy, y, x: -holder.options["strength"][0] * dy
    return gs.with_gradient(lambda x: x * 1, rule)


@pytest.mark.parametrize("make", [reversal, held_by_an_object])
def test_captured_by_the_rule_alone(make):
    def f(x, strength):
        return make(strength)(x) ** 2

    def jitted(x, strength):
        return jax.jit(lambda x: make(strength)(x))(x) ** 2

    def scanned(x, strength):
        step = lambda s, _: (make(strength)(s), None)
        return lax.scan(step, x, None, length=1)[0] ** 2

    for g in (f, jitted, scanned, jax.jit(f), jax.checkpoint(f)):
        assert jax.grad(g, (0, 1))(3.0, 2.0) == (-12, 0)
        found = jax.vmap(jax.grad(g), (None, 0))(3.0, jnp.arange(3.0))
        np.testing.assert_array_equal(found, [0, -6, -12])
    # d/ds of -s * 2x
    assert jax.grad(lambda s: jax.grad(f)(3.0, s))(2.0) == -6


def test_captured_integers_and_keys():
    @jax.jit
    def f(x, n, key):
        @gs.custom_gradient
        def op(x):
            noise = jax.random.normal(key)
            return x * n + noise, lambda dy: 10 * dy * n + 0 * noise

        return op(x)

    args = (2.0, jnp.int32(3), jax.random.key(0))
    assert jax.grad(f)(*args) == 30
    assert jax.grad(jax.checkpoint(f))(*args) == 30


HIDDEN = {}


def test_what_can_not_be_found_is_refused():
    @gs.custom_gradient
    def op(x):
        return x * 1, lambda dy: HIDDEN["strength"] * dy

    @jax.jit
    def f(x, strength):
        HIDDEN["strength"] = strength
        return op(x)

    with pytest.raises(gs.UnsupportedOperationError, match="make it an argument"):
        jax.grad(f)(3.0, 2.0)
    HIDDEN.clear()


def test_captured_by_a_body_with_different_levels():
    def f(a, b):
        def inner(x):
            op = gs.with_gradient(lambda x: x * a * b, lambda dy, y, x: 10 * dy * b)
            return op(x)

        return jax.grad(inner)(3.0) * a  # 10 b a

    for word in product(MODES.values(), repeat=2):
        outer, once_more = word
        assert outer(f, 0)(2.0, 5.0) == 50
        assert once_more(outer(f, 0), 1)(2.0, 5.0) == 10


@pytest.mark.parametrize("make", MAKERS)
def test_captured_of_a_vmap_that_is_over_when_the_derivative_is_taken(make):
    def total(make, x):
        each = lambda x: make(jnp.sin(x))(x)
        return jnp.sum(jax.jit(jax.vmap(each))(x))

    f, g, xs = partial(total, make), partial(total, plain_of), jnp.arange(3.0)
    for mode in (jax.grad, jax.jacfwd, jax.hessian):
        np.testing.assert_allclose(mode(f)(xs), mode(g)(xs), rtol=1e-4, atol=1e-6)


def test_captured_in_a_checkpoint_whose_gradient_moves_another_argument():
    def product(c):
        vjp = lambda dy, y, x, w: (dy * w * c, dy * x * c)
        return gs.with_gradient(lambda x, w: x * w * c, vjp)

    def loss(c, w):
        return jax.checkpoint(lambda x, w: product(c)(x, w))(jnp.sin(c), w)

    for outer in MODES.values():
        found = outer(jax.grad(loss), 1)(C, C)  # d/dc of sin(c) c
        np.testing.assert_allclose(found, np.cos(C) * C + np.sin(C), rtol=1e-6)


def test_what_a_vmap_left_behind_and_can_not_be_found_is_refused():
    op = gs.with_gradient(lambda x: x * 1, lambda dy, y, x: HIDDEN["strength"] * dy)

    def f(x):
        HIDDEN["strength"] = jnp.sin(x)
        return op(x)

    with pytest.raises(gs.UnsupportedOperationError, match="make it an argument"):
        jax.jvp(jax.jit(jax.vmap(f)), (jnp.ones(3),), (jnp.ones(3),))
    HIDDEN.clear()
