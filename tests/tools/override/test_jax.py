import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

from .rules import guided, tenfold

X = jnp.array([-1.0, 2.0])


def gradient(fn, x=X):
    return jax.grad(lambda x: jnp.sum(fn(x)))(x).tolist()


compiled = jax.jit(lambda x: jax.nn.relu(x))


def scanned(x):
    return jax.lax.scan(lambda c, _: (jax.nn.relu(c), None), x, None, length=1)[0]


def looped(x):
    return jax.lax.fori_loop(0, 1, lambda i, c: jax.nn.relu(c), x)


def branched(x):
    return jax.lax.cond(x[0] < 0, jax.nn.relu, lambda x: x, x)


CALLS = {
    "jax.nn.relu": jax.nn.relu,
    "jit": compiled,
    "jit of jit": jax.jit(lambda x: compiled(x)),
    "vmap": jax.vmap(jax.nn.relu),
    "scan": scanned,
    "jit of scan": jax.jit(scanned),
    "fori_loop": looped,
    "cond": branched,
    "checkpoint": jax.checkpoint(lambda x: jax.nn.relu(x)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_function_is_changed_however_it_is_called(call):
    assert gradient(call) == [0, 1]  # compiled ones are compiled now
    with gs.override({jax.nn.relu: tenfold}) as record:
        assert gradient(call) == [10, 10]
    assert record.count("relu") >= 1
    assert gradient(call) == [0, 1]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_changed_function_can_be_transformed(call):
    changed = gs.override(call, {jax.nn.relu: tenfold})
    assert gradient(changed) == [10, 10]
    assert jax.jit(jax.grad(lambda x: changed(x).sum()))(X).tolist() == [10, 10]
    assert jax.jit(jax.grad(lambda x: call(x).sum()))(X).tolist() == [0, 1]


def test_gradients_inside_of_a_compiled_function():
    step = jax.jit(jax.grad(lambda x: jax.nn.relu(x).sum()))
    assert step(X).tolist() == [0, 1]
    with gs.override({jax.nn.relu: tenfold}):
        assert step(X).tolist() == [10, 10]
    assert step(X).tolist() == [0, 1]


def test_a_scope_inside_of_a_compiled_function():
    @jax.jit
    def step(x):
        with gs.override({jax.nn.relu: tenfold}):
            first = jax.nn.relu(x)
        return first + jax.nn.relu(x)

    assert gradient(step) == [10, 11]


@pytest.mark.parametrize(
    "fn", [jnp.tanh, jax.nn.gelu, jax.nn.softplus, jax.lax.exp, jax.nn.sigmoid]
)
def test_functions_of_all_kinds(fn):
    plain = gradient(fn)
    with gs.override({fn: tenfold}):
        assert gradient(fn) == [10, 10]
        assert gradient(jax.jit(lambda x: fn(x))) == [10, 10]
    assert gradient(fn) == plain


def test_functions_of_the_user():
    def square(x):
        return x * x

    @jax.custom_vjp
    def ruled(x):
        return x

    ruled.defvjp(lambda x: (x, None), lambda _, dy: (5 * dy,))
    fast = jax.jit(square)
    outer = jax.jit(lambda x: fast(x))
    assert gradient(outer) == [-2, 4]
    for target in (square, fast):
        with gs.override({target: tenfold}):
            assert gradient(outer) == [10, 10]
    with gs.override({ruled: tenfold}):
        assert gradient(jax.jit(lambda x: ruled(x))) == [10, 10]
    assert gradient(outer) == [-2, 4]


def test_operators_are_calls_of_ufuncs():
    with gs.override({jnp.add: lambda dy, y, a, b: (dy, 10 * dy)}) as record:
        assert gradient(lambda x: x + x) == [11, 11]
        assert gradient(lambda x: x + np.ones(2, np.float32)) == [1, 1]
    assert record.count() == 2


@pytest.mark.parametrize("around", [lambda fn: fn, jax.jit])
def test_primitives(around):
    product = around(lambda x: jnp.tanh(x) * x)
    rule = lambda dy, y, a, b: (dy, 10 * dy)
    with gs.override({jax.lax.mul_p: rule}) as record:  # and not tanh's own gradient
        expected = 10 + 1 / np.cosh(X) ** 2
        np.testing.assert_allclose(gradient(product), expected, rtol=1e-6)
    assert record.count("mul") == 1
    power = lambda dy, y, x, y_: dy
    with pytest.raises(gs.GradsmithError, match="never called"):
        gs.override(product, {jax.lax.integer_pow_p: power})(X)


def test_parameters_of_primitives_are_given_to_rules_that_take_them():
    rule = lambda dy, out, x, y: dy * y
    with gs.override({jax.lax.integer_pow_p: rule}):
        assert gradient(lambda x: x**3) == [3, 3]


def test_what_has_a_rule_of_its_own_decides():
    with pytest.raises(gs.GradsmithError, match="max inside relu was left alone"):
        gs.override(jax.nn.relu, {jax.lax.max_p: lambda dy, y, a, b: (dy, b)})(X)


def test_an_operation_replaces_the_value_too():
    @gs.custom_gradient
    def shifted(x):
        return gnp.maximum(x, 0) + 1, lambda dy: 3 * dy

    fast = jax.jit(lambda x: x * x)
    for target, call in ((jax.nn.relu, compiled), (fast, fast)):
        with gs.override({target: shifted}):
            assert call(X).tolist() == [1, 3]
            assert call(X).tolist() == [1, 3]
            assert gradient(call) == [3, 3]
    assert fast(X).tolist() == [1, 4]


def test_guided_backpropagation():
    w = jax.random.normal(jax.random.key(0), (4, 3))
    model = jax.jit(lambda x: jnp.sum(jax.nn.relu(x @ w) @ jnp.array([1.0, -1, 2])))
    x = jnp.arange(4.0)
    found = jax.grad(gs.override(model, {jax.nn.relu: guided}))(x)
    z = x @ w
    expected = w @ jnp.where(z > 0, jnp.array([1.0, 0, 2]), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_forward_mode_and_second_order():
    refused = pytest.raises(gs.NotDifferentiableError, match="linear")
    with gs.override({jax.nn.relu: tenfold}), refused:
        jax.jvp(compiled, (X,), (X,))
    linear = gs.override(compiled, {jax.nn.relu: tenfold}, linear=True)
    assert jax.jvp(linear, (X,), (X,))[1].tolist() == [-10, 20]
    cubic = gs.override(jnp.tanh, {jnp.tanh: lambda dy, y, x: dy * x**2})
    assert jax.grad(jax.grad(cubic))(3.0) == 6


def test_a_target_that_never_occurred():
    refused = pytest.raises(gs.GradsmithError, match=r"never called.*elu\n.*relu")
    with refused, gs.override({jax.nn.elu: tenfold}):
        compiled(X)


def test_other_threads_go_on_as_ever():
    found = []
    with gs.override({jax.nn.relu: tenfold, jax.lax.exp_p: tenfold}):
        thread = threading.Thread(target=lambda: found.append(gradient(compiled)))
        thread.start()
        thread.join()
        gradient(lambda x: compiled(x) + jnp.exp(x))
    assert found == [[0, 1]]


def test_everything_is_restored():
    bind, call = jax.extend.core.Primitive.bind, jax.custom_jvp.__call__
    refused = pytest.raises(ValueError, match="mine")
    with refused, gs.override({jax.nn.relu: tenfold, jax.lax.exp_p: tenfold}):
        raise ValueError("mine")
    assert jax.extend.core.Primitive.bind is bind
    assert jax.custom_jvp.__call__ is call
    assert gradient(compiled) == [0, 1]
