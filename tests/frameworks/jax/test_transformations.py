"""An operation under each of JAX's transformations."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import checkify, io_callback

import gradsmith as gs

XS = jnp.arange(1, 5, dtype="float32")
X = jnp.float32(1.5)


@gs.custom_gradient
def times10(x):
    """The square, with a gradient of 10: the rule shows wherever it is used."""
    y = x * x
    return y, lambda dy: 10 * dy


@gs.operation
def scaled(x, w):
    return x * w


@scaled.vjp
def _(dy, y, x, w):
    return 10 * dy * w, 100 * gs.unbroadcast(dy * x, w.shape)


# --- vmap ----------------------------------------------------------------------------


def test_vmap_with_axes_and_unbatched_arguments():
    x, w = jnp.ones((3, 4)), jnp.arange(4.0)
    over = jax.vmap(scaled, in_axes=(1, 0), out_axes=1)
    np.testing.assert_array_equal(over(x, w), x * w)

    def loss(x, w):
        return jnp.sum(over(x, w))

    dx, dw = jax.grad(loss, (0, 1))(x, w)
    np.testing.assert_array_equal(dx, 10 * jnp.broadcast_to(w, (3, 4)))
    np.testing.assert_array_equal(dw, [300] * 4)


@pytest.mark.parametrize("axes", [(0, None), (None, 0)])
def test_the_gradient_of_an_unbatched_argument_is_summed_over_the_batch(axes):
    args = [XS if axis == 0 else X for axis in axes]

    def loss(*args):
        return jnp.sum(jax.vmap(scaled, in_axes=axes)(*args))

    dx, dw = jax.grad(loss, (0, 1))(*args)
    whole = [10 * args[1], 100 * args[0]]
    expected = [
        jnp.sum(jnp.broadcast_to(d, (4,))) if axis is None else d
        for d, axis in zip(whole, axes, strict=True)
    ]
    np.testing.assert_allclose(dx, expected[0])
    np.testing.assert_allclose(dw, expected[1])
    tangents = [jnp.ones_like(x) for x in args]
    dy = jax.jvp(jax.vmap(scaled, in_axes=axes), args, tangents)[1]
    np.testing.assert_allclose(dy, 10 * args[1] + 100 * args[0])


def test_nested_vmap():
    x, w = jnp.ones((2, 3)), jnp.arange(3.0)
    each = jax.vmap(jax.vmap(jax.grad(scaled)), (0, None))
    np.testing.assert_array_equal(each(x, w), 10 * jnp.broadcast_to(w, (2, 3)))
    outside = jax.grad(lambda x: jax.vmap(jax.vmap(times10))(x).sum())
    np.testing.assert_array_equal(outside(x), 10)


def test_collectives_over_a_named_axis_in_body_and_rule():
    @gs.custom_gradient
    def centred(x):
        y = x - lax.pmean(x, "batch")
        return y, lambda dy: 10 * (dy - lax.pmean(dy, "batch"))

    weights = jnp.array([1.0, 2, 3, 6])
    over = jax.vmap(centred, axis_name="batch")
    expected = 10 * (weights - 3)
    for wrap in (lambda f: f, jax.jit):
        dx = jax.grad(wrap(lambda x: jnp.sum(weights * over(x))))(XS)
        np.testing.assert_allclose(dx, expected)
        dy = jax.jvp(wrap(over), (XS,), (weights,))[1]
        np.testing.assert_allclose(dy, expected)
    step = lambda s, _: (centred(s), None)
    loop = lambda x: lax.scan(step, x, None, length=2)[0]
    kept = jax.checkpoint(jax.vmap(loop, axis_name="batch"))
    dx = jax.jit(jax.grad(lambda x: jnp.sum(weights * kept(x))))(XS)
    np.testing.assert_allclose(dx, 10 * expected)


# --- jit -----------------------------------------------------------------------------


def test_a_second_call_of_compiled_code_runs_no_python():
    runs = []

    @gs.custom_gradient
    def op(x):
        runs.append("body")

        def grad(dy):
            runs.append("grad")
            return 10 * dy

        return x * x, grad

    forward, gradient = jax.jit(op), jax.jit(jax.grad(op))
    forward(X)
    assert runs == ["body"]  # nobody asked for the gradient
    assert gradient(X) == 10
    before = len(runs)
    forward(X), gradient(X + 1)
    assert len(runs) == before
    gradient(np.float16(1))
    assert len(runs) > before


def test_static_arguments_of_jit():
    @gs.custom_gradient
    def power(x, n, *, mode):
        assert mode == "plain"
        return x**n, lambda dy: dy * n * 10

    compiled = jax.jit(jax.grad(power), static_argnums=1, static_argnames="mode")
    assert compiled(X, 3, mode="plain") == 30


def test_no_traced_value_is_left_behind():
    with jax.checking_leaks():
        for op in (times10, lambda x: scaled(x, X)):
            assert jax.grad(op)(X) == jax.jit(jax.grad(op))(X)
            jax.jit(jax.jacfwd(op))(X)
            jax.jit(jax.vmap(jax.grad(op)))(XS)
            jax.jit(jax.hessian(op))(X)


def test_what_an_eager_gradient_captured_is_released():
    captured = []

    @gs.custom_gradient
    def op(x):
        e = x * 2
        captured.append(weakref.ref(e))
        return e, lambda dy: dy * e

    for transform in (jax.grad, jax.jacrev):
        transform(lambda x: jnp.sum(op(x)))(XS)
    gc.collect()
    assert [ref() for ref in captured] == [None] * len(captured)


def test_donated_buffers():
    step = jax.jit(lambda x: x - 0.1 * jax.grad(times10)(x), donate_argnums=0)
    np.testing.assert_allclose(step(jnp.float32(3)), 2)


def test_abstract_evaluation():
    found = jax.eval_shape(jax.grad(lambda x: times10(x).sum()), XS)
    assert (found.shape, found.dtype) == ((4,), jnp.float32)
    assert "times10" in str(jax.make_jaxpr(times10)(X))
    lowered = jax.jit(jax.grad(times10)).lower(X)
    assert "gradsmith" not in lowered.as_text()  # the rule itself, nothing around it


def test_names_and_debugging_aids():
    assert jax.grad(jax.named_call(times10, name="mine"))(X) == 10
    with jax.named_scope("here"):
        assert jax.grad(times10)(X) == 10
    with jax.debug_nans(True), jax.disable_jit():
        assert jax.grad(times10)(X) == 10
    with jax.enable_checks(True):
        assert jax.jit(jax.hessian(times10))(X) == 0
        np.testing.assert_array_equal(jax.vmap(jax.grad(times10))(XS), 10)


# --- checkpoint ----------------------------------------------------------------------

POLICIES = [
    None,
    jax.checkpoint_policies.everything_saveable,
    jax.checkpoint_policies.nothing_saveable,
    jax.checkpoint_policies.dots_saveable,
    jax.checkpoint_policies.save_only_these_names("kept"),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("operation", [times10, lambda x: scaled(x, 2 * x)])
def test_checkpoint(policy, operation):
    def layers(x):
        x = checkpoint_name(operation(jnp.sin(x)), "kept")
        return jnp.sum(operation(x))

    expected = jax.grad(layers)(XS)
    saved = jax.checkpoint(layers, policy=policy)
    np.testing.assert_allclose(jax.grad(saved)(XS), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(saved))(XS), expected, rtol=1e-6)
    tangent = jax.jvp(saved, (XS,), (XS,))[1]
    np.testing.assert_allclose(tangent, expected @ XS, rtol=1e-6)


# --- control flow --------------------------------------------------------------------


def by_scan(x):
    return lax.scan(lambda s, _: (times10(s), None), x, None, length=3)[0]


def by_while(x):
    return lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, times10(s[1])), (0, x)
    )[1]


def by_cond(x):
    once = lambda x: lax.cond(x > 0, times10, lambda x: -x, x)
    return once(once(once(x)))


def by_switch(x):
    branches = [lambda x: -x, lambda x: times10(times10(times10(x)))]
    return lax.switch(jnp.int32(1), branches, x)


LOOPS = [
    by_scan,
    by_cond,
    by_switch,
    lambda x: lax.fori_loop(0, 3, lambda i, s: times10(s), x),
    lambda x: jax.checkpoint(by_scan)(x),
]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_control_flow(wrap):
    for loop in LOOPS:
        assert jax.grad(wrap(loop))(X) == 1000
        assert jax.jvp(wrap(loop), (X,), (jnp.float32(1),))[1] == 1000
    assert jax.jvp(wrap(by_while), (X,), (jnp.float32(1),))[1] == 1000
    assert jax.vmap(jax.grad(wrap(by_scan)))(XS).tolist() == [1000] * 4
    assert jax.hessian(wrap(by_scan))(X) == 0


def test_loops_over_elements():
    total = lambda x: jnp.sum(lax.map(times10, x))
    np.testing.assert_array_equal(jax.grad(total)(XS), 10)
    ordered = lambda x: lax.associative_scan(scaled, x)[-1]
    # in a product of four, a left factor counts 10 and a right one 100, per level
    dx = jax.grad(ordered)(XS)
    rates = dx * XS / 24
    np.testing.assert_allclose(rates, [100, 1000, 1000, 10000], rtol=1e-6)


def test_only_what_the_gradient_needs_is_kept():
    @gs.custom_gradient
    def op(x):
        big = jnp.outer(jnp.sin(x), jnp.cos(x))
        small = jnp.sum(big)
        return small * x, lambda dy: dy * small

    @gs.operation
    def ruled(x, w):
        return jnp.sin(x) * w

    @ruled.vjp
    def _(dy, y, x, w):
        return dy * 2, jnp.sum(dy * x)

    def kept(f, *args):
        pull = jax.jit(lambda *args: jax.vjp(f, *args)[1])(*args)
        return sorted(x.size for x in jax.tree.leaves(pull))

    x = jnp.ones(100)
    assert kept(op, x) == [1]
    assert kept(lambda x: ruled(x, XS.sum()), x) == []
    assert kept(lambda w, x: ruled(2 * x, w), X, x) == [1, 100]


def test_checks_in_a_body():
    @gs.custom_gradient
    def positive(x):
        checkify.check(x > 0, "must be positive")
        return x * 2, lambda dy: dy * 10

    for wrap in (lambda f: f, jax.jit):
        error, slope = checkify.checkify(wrap(jax.grad(wrap(positive))))(-X)
        assert "must be positive" in error.get()
        assert slope == 10


def test_effects_of_a_body_happen_once():
    seen = []

    @gs.custom_gradient
    def noted(x):
        io_callback(lambda x: seen.append(float(x)), None, x, ordered=True)
        return x * 2, lambda dy: dy * 10

    for wrap in (jax.jit, lambda f: jax.jit(jax.grad(f))):
        seen.clear()
        wrap(noted)(X)
        jax.effects_barrier()
        assert seen == [X]
