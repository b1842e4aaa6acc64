"""What is wrong in JAX itself, from 0.10 on, and right with ours.

Each test first shows JAX's own mechanism fail, so that we notice when it is fixed. The
numbers are those of public issues of jax-ml/jax.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs

X = jnp.float32(3)


def by_hand(fn, forward, backward, **options):
    native = jax.custom_vjp(fn, **options)
    native.defvjp(forward, backward)
    return native


def test_a_gradient_of_another_dtype_is_accepted_19009():
    native = by_hand(jnp.sin, lambda x: (x, None), lambda _, dy: (jnp.float16(dy),))
    assert jax.grad(native)(X).dtype == jnp.float16

    ours = gs.with_gradient(jnp.sin, lambda dy, y, x: jnp.float16(dy))
    with pytest.raises(gs.GradientContractError, match="wrong dtype"):
        jax.grad(ours)(X)


def test_forward_mode_of_a_vjp_3996():
    native = by_hand(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, dy: (10 * dy,))
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        jax.jvp(native, (X,), (X,))

    ours = gs.with_gradient(jnp.sin, lambda dy, y, x: 10 * dy)
    assert jax.jvp(ours, (X,), (jnp.float32(1),))[1] == 10
    assert jax.jit(jax.hessian(ours))(X) == 0


def test_both_rules_in_one_operation_3996():
    native = jax.custom_jvp(jnp.sin)
    native.defjvp(lambda p, t: (jnp.sin(*p), 3 * t[0]))
    assert not hasattr(native, "defvjp")

    ours = gs.with_gradient(
        jnp.sin, lambda dy, y, x: 10 * dy, jvp=lambda dx, y, x: 3 * dx
    )
    assert (jax.grad(ours)(X), jax.jacfwd(ours)(X)) == (10, 3)


def test_a_callback_has_no_transpose_30401():
    spec = jax.ShapeDtypeStruct((), jnp.float32)

    @jax.custom_jvp
    def native(x):
        return jax.pure_callback(lambda x: 2 * np.asarray(x), spec, x)

    native.defjvp(lambda p, t: (native(*p), native(*t)))
    assert jax.jvp(native, (X,), (X,))[1] == 6
    with pytest.raises(ValueError, match="do not support"):
        jax.grad(native)(X)

    ours = gs.python_op(lambda x: 2 * x, lambda dy, y, x: 2 * dy)
    for wrap in (lambda f: f, jax.jit):
        assert jax.grad(wrap(ours))(X) == 2
        assert jax.jvp(wrap(ours), (X,), (X,))[1] == 6


def test_numpy_code_with_a_gradient_1142():
    spec = jax.ShapeDtypeStruct((), jnp.float32)
    native = lambda x: jax.pure_callback(lambda x: np.sin(np.asarray(x)), spec, x)
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(native)(X)

    ours = gs.python_op(lambda x: np.sin(x), lambda dy, y, x: dy * np.cos(x))
    np.testing.assert_allclose(jax.jit(jax.grad(ours))(X), jnp.cos(X), rtol=1e-6)
    each = jax.vmap(jax.grad(ours))(jnp.arange(3.0))
    np.testing.assert_allclose(each, jnp.cos(jnp.arange(3.0)), rtol=1e-6)


def test_none_is_silently_zero_17496_5913():
    native = by_hand(
        jnp.multiply, lambda x, w: (x * w, w), lambda w, dy: (dy * w, None)
    )
    assert jax.grad(native, 1)(X, X) == 0

    why = gs.not_differentiable("this is data")
    ours = gs.with_gradient(jnp.multiply, lambda dy, y, x, w: (dy * w, why))
    assert jax.grad(ours)(X, X) == 3
    with pytest.raises(gs.NotDifferentiableError, match="this is data"):
        jax.grad(ours, 1)(X, X)


def test_static_arguments_must_be_declared_20889_23065():
    def power(x, how):
        return x**2 if how == "square" else x

    native = by_hand(
        power, lambda x, how: (power(x, how), None), lambda _, dy: (10 * dy, None)
    )
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.grad(native)(X, "square")

    ours = gs.with_gradient(power, lambda dy, y, x, how: 10 * dy)
    assert jax.jit(jax.grad(ours), static_argnums=1)(X, "square") == 10


def test_an_array_as_nondiff_argument_20889():
    def scale(x, w):
        return x * w

    native = by_hand(
        scale,
        lambda x, w: (x * w, None),
        lambda w, _, dy: (10 * dy,),
        nondiff_argnums=(1,),
    )
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(jax.grad(native))(X, X)

    ours = gs.with_gradient(scale, lambda dy, y, x, w: (10 * dy, None))
    assert jax.jit(jax.grad(ours))(X, X) == 10


def test_closing_over_what_is_differentiated_4008_5440_8783():
    def loss(make, c):
        return make(c)(X)

    def native(c):
        return by_hand(lambda x: x * c, lambda x: (x * c, None), lambda _, dy: (dy,))

    def ours(c):
        return gs.with_gradient(lambda x: x * c, lambda dy, y, x: 10 * dy * c)

    def scanned(make, c):
        step = lambda s, _: (make(c)(s), None)
        return jax.lax.scan(step, X, None, length=1)[0]

    for f in (loss, scanned):
        with pytest.raises(Exception, match=r"closed-over|[Tt]racer"):
            jax.grad(partial(f, native))(2.0)
        assert jax.grad(partial(f, ours))(2.0) == 3
        assert jax.jacfwd(partial(f, ours))(2.0) == 3


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_custom_jvp_silently_drops_what_it_closes_over(wrap):
    def native(c):
        f = jax.custom_jvp(lambda x: x + c)
        f.defjvp(lambda p, t: (p[0], 10 * t[0]))
        return f

    assert jax.grad(wrap(lambda c: native(c)(c)))(3.0) == 10

    def ours(c):
        return gs.with_gradient(lambda x: x + c, jvp=lambda dx, y, x: 10 * dx)

    assert jax.grad(wrap(lambda c: ours(c)(c)))(3.0) == 10 + 1


def test_complex_rules_are_written_in_one_convention_9110():
    z = jnp.complex64(3 + 4j)
    energy = lambda z: jnp.real(z * jnp.conj(z))
    assert jax.grad(energy)(z) == 6 - 8j  # PyTorch and TensorFlow say 6 + 8j

    ours = gs.with_gradient(energy, lambda dy, y, z: 2 * dy * z)
    assert jax.grad(ours)(z) == jax.grad(energy)(z)


def test_gradients_that_nobody_needs_11208():
    runs = []

    def backward(kept, dy):
        runs.append("both")
        return dy, dy

    native = by_hand(jnp.multiply, lambda x, w: (x * w, None), backward)
    jax.grad(native)(X, X)
    assert runs == ["both"]

    def rule(dy, y, x, w, needs):
        runs.append(needs)
        return dy * w, None

    jax.grad(gs.with_gradient(lambda x, w: x * w, rule))(X, X)
    assert runs[-1] == {"x": True, "w": False}


def test_keyword_only_arguments_13302():
    def scale(x, *, w):
        return x * w

    native = by_hand(scale, lambda x, *, w: (x * w, w), lambda w, dy: (dy, dy))
    with pytest.raises(TypeError, match="could not be resolved"):
        jax.grad(lambda x: native(x, w=X))(X)

    ours = gs.with_gradient(scale, lambda dy, y, x, *, w: (10 * dy, 100 * dy))
    assert jax.grad(lambda x, w: ours(x, w=w), (0, 1))(X, X) == (10, 100)


def test_custom_gradient_with_keywords_13302():
    @jax.custom_gradient
    def native(x, k=2.0):
        return x * k, lambda dy: 10 * dy

    with pytest.raises(Exception, match=r"structure|keyword|tree"):
        jax.grad(lambda x: native(x, k=2.0))(X)

    @gs.custom_gradient
    def ours(x, k=2.0):
        return x * k, lambda dy: 10 * dy

    assert jax.grad(lambda x: ours(x, k=2.0))(X) == 10


def test_the_rule_is_dropped_from_the_output_in_second_order():
    native = by_hand(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, dy: (10 * dy,))
    square = lambda f: lambda x: f(x) ** 2
    by_rule = 2 * 10 * 10
    found = jax.grad(jax.grad(square(native)))(X)
    np.testing.assert_allclose(found, 2 * 10 * jnp.cos(X), rtol=1e-6)

    ours = gs.with_gradient(jnp.sin, lambda dy, y, x: 10 * dy)
    assert jax.grad(jax.grad(square(ours)))(X) == by_rule


def test_a_transposed_function_drops_the_rule():
    native = jax.custom_jvp(lambda x: 2 * x)
    native.defjvp(lambda p, t: (2 * p[0], 10 * t[0]))
    assert jax.linear_transpose(native, X)(jnp.float32(1)) == (2,)

    ours = gs.with_gradient(lambda x: 2 * x, jvp=lambda dx, y, x: 10 * dx)
    with pytest.raises(gs.UnsupportedOperationError, match=r"jax\.vjp"):
        jax.linear_transpose(ours, X)(jnp.float32(1))


def test_a_gradient_through_a_scan_drops_the_rule_when_differentiated_again():
    def opaque(x):
        return jax.lax.stop_gradient(jnp.exp(x))

    native = jax.custom_jvp(opaque)
    native.defjvp(lambda p, t: (native(*p), native(*p) * t[0]))
    ours = gs.with_gradient(opaque, lambda dy, y, x: y * dy)

    def looped(fn):
        return lambda x: jax.lax.scan(lambda x, _: (fn(x), None), x, length=2)[0]

    x = jnp.float32(0.3)
    second = jax.grad(jax.grad(lambda x: jnp.exp(jnp.exp(x))))(x)
    if jax.__version_info__ < (0, 12):
        assert jax.grad(jax.grad(looped(native)))(x) == 0
    for order in (jax.grad, jax.jacfwd, lambda f: jax.jit(jax.grad(f))):
        found = order(jax.grad(looped(ours)))(x)
        np.testing.assert_allclose(found, second, rtol=1e-5)
