"""What an operation may be given, and return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs

X = jnp.float32(1.5)
EAGER_OR_COMPILED = [lambda f: f, jax.jit]


@pytest.fixture(params=EAGER_OR_COMPILED, ids=["eager", "jit"])
def wrap(request):
    return request.param


# --- static --------------------------------------------------------------------------


def test_static_arguments_are_found(wrap):
    @gs.custom_gradient
    def op(x, kind, n, nothing, fn, flag=True):
        assert (kind, n, nothing, flag) == ("a", 3, None, True)
        return fn(x) * n, lambda dy: 10 * dy * n

    f = wrap(jax.grad(lambda x: op(x, "a", 3, None, jnp.sin)))
    assert f(X) == 30


def test_a_rule_is_given_static_arguments_too(wrap):
    @gs.operation
    def power(x, n=2, *, factor=1.0):
        return factor * x**n

    @power.vjp
    def _(dy, y, x, n, *, factor):
        return 10 * dy * n * factor

    assert wrap(jax.grad(lambda x: power(x, 3, factor=2.0)))(X) == 60
    assert wrap(jax.grad(lambda x: power(n=3, x=x)))(X) == 30
    assert wrap(jax.grad(lambda x: power(x)))(X) == 20


def test_keyword_only_arrays_and_a_dict_of_gradients(wrap):
    @gs.custom_gradient
    def op(x, *, w):
        return x * w, lambda dy: {"w": 100 * dy, "x": 10 * dy}

    assert wrap(jax.grad(lambda x, w: op(x, w=w), (0, 1)))(X, X) == (10, 100)


def test_methods(wrap):
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @gs.operation
        def apply(self, x):
            return x * self.scale

        @apply.vjp
        def _(dy, y, self, x):  # noqa: N805
            return 10 * dy * self.scale

    assert wrap(jax.grad(lambda x: Layer(3.0).apply(x)))(X) == 30
    # a traced attribute is captured: through the body for itself, in the rule a value
    both = wrap(jax.grad(lambda x, s: Layer(s).apply(x), (0, 1)))
    assert both(X, jnp.float32(3)) == (30, 1.5)


# --- trees ---------------------------------------------------------------------------


class Pair(NamedTuple):
    a: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    w: Any
    b: Any


@jax.tree_util.register_pytree_with_keys_class
class Node:
    """A container that only JAX knows, as libraries of layers define them."""

    def __init__(self, w, label):
        self.w, self.label = w, label

    def tree_flatten_with_keys(self):
        return [(jax.tree_util.GetAttrKey("w"), self.w)], self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(children[0], label)


TREES = [
    ({"a": X, "b": [X, "name"]}, lambda t: t["a"] * t["b"][0]),
    (Pair(X, X), lambda t: t.a * t.b),
    (Layer(X, X), lambda t: t.w * t.b),
    ((X, (X,)), lambda t: t[0] * t[1][0]),
]


@pytest.mark.parametrize(("tree", "fn"), TREES)
def test_trees_in(tree, fn, wrap):
    def ten(x):
        return jnp.full_like(x, 10) if isinstance(x, jax.Array) else None

    @gs.custom_gradient
    def op(tree):
        grads = jax.tree.map(ten, tree)
        return fn(tree), lambda dy: jax.tree.map(lambda x: x * dy, grads)

    def f(x):
        return op(jax.tree.map(lambda y: y if isinstance(y, str) else x, tree))

    assert wrap(jax.grad(f))(X) == 20
    assert wrap(jax.jacfwd(f))(X) == 20


def test_a_container_registered_with_jax(wrap):
    @gs.operation
    def op(node, x):
        return node.w * x if node.label == "times" else x

    @op.vjp
    def _(dy, y, node, x):
        return Node(100 * dy, node.label), 10 * dy

    for f in (op, jax.jit(op)):
        node, dx = wrap(jax.grad(f, (0, 1)))(Node(X, "times"), X)
        assert (node.w, node.label, dx) == (100, "times", 10)

    @gs.custom_gradient
    def only(node):
        return node.w * 2, lambda dy: (dy * jnp.ones(2),)

    with pytest.raises(gs.GradientContractError, match=r"'node'"):
        jax.grad(only)(Node(X, "times"))


def test_trees_out(wrap):
    @gs.custom_gradient
    def op(x):
        out = {"y": x * 2, "n": jnp.int32(3), "label": "s", "pair": Pair(x, None)}

        def grad(dy):
            assert dy["n"] is None
            assert dy["label"] is None
            return 10 * dy["y"] + 100 * dy["pair"].a

        return out, grad

    def f(x):
        out = op(x)
        assert out["label"] == "s"
        assert out["pair"].b is None
        assert out["n"].dtype == jnp.int32
        return out["y"] + out["pair"].a

    assert wrap(jax.grad(f))(X) == 110
    assert wrap(jax.jacfwd(f))(X) == 110
    assert wrap(jax.grad(jax.grad(f)))(X) == 0


def test_outputs_that_are_numbers_or_of_numpy(wrap):
    @gs.custom_gradient
    def op(x):
        return (x * 2, 3.0, np.ones(2, "float32")), lambda dy: 10 * dy[0] + dy[1]

    assert wrap(jax.grad(lambda x: op(x)[0] + op(x)[1] + op(x)[2].sum()))(X) == 11


def test_the_same_array_twice_and_an_output_that_is_an_argument(wrap):
    @gs.custom_gradient
    def op(x, y):
        return x, lambda dy: (10 * dy, 100 * dy)

    assert wrap(jax.grad(lambda x: op(x, x)))(X) == 110


# --- no derivative -------------------------------------------------------------------


def test_integers_get_float0(wrap):
    @gs.custom_gradient
    def op(x, n):
        return x * n, lambda dy: (10 * dy, None)

    _, pull = jax.vjp(wrap(op), X, jnp.int32(2))
    dx, dn = pull(jnp.float32(1))
    assert dx == 10
    assert dn.dtype == jax.dtypes.float0
    assert jax.grad(wrap(op), allow_int=True, argnums=1)(X, 2).dtype == dn.dtype
    tangents = (jnp.float32(1), np.zeros((), jax.dtypes.float0))
    assert jax.jvp(wrap(op), (X, jnp.int32(2)), tangents)[1] == 10


def test_no_output_has_a_gradient(wrap):
    @gs.custom_gradient
    def op(x):
        return jnp.int32(x > 0), lambda dy: gs.zero

    assert wrap(jax.grad(lambda x: op(x) * x))(X) == 1
    assert wrap(jax.jacfwd(lambda x: op(x) * x))(X) == 1


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_keys(make, wrap):
    @gs.custom_gradient
    def dropout(key, x):
        mask = jax.random.bernoulli(key, 0.5, x.shape)
        return x * mask, lambda dy: (None, 10 * dy * mask)

    key, x = make(0), jnp.ones(8)
    mask = dropout(key, x)
    loss = lambda x, key: jnp.sum(dropout(key, x))
    np.testing.assert_array_equal(wrap(jax.grad(loss))(x, key), 10 * mask)
    np.testing.assert_array_equal(
        jax.jvp(wrap(partial(dropout, key)), (x,), (x,))[1], 10 * mask
    )
    keys = jax.random.split(key, 3)
    each = jax.vmap(wrap(jax.grad(loss)), (None, 0))(x, keys)
    expected = jnp.stack([10 * dropout(k, x) for k in keys])
    np.testing.assert_array_equal(each, expected)


def test_a_key_in_rule_form_with_a_jvp(wrap):
    @gs.operation
    def noisy(key, x):
        return x + jax.random.normal(key)

    @noisy.jvp
    def _(dx, y, key, x):
        return 10 * dx[1]

    assert wrap(jax.grad(noisy, 1))(jax.random.key(0), X) == 10
    assert wrap(jax.jacfwd(noisy, 1))(jax.random.key(0), X) == 10


# --- dtypes --------------------------------------------------------------------------

DTYPES = ["float16", "bfloat16", "float32", "float8_e4m3fn", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, wrap):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: (dy * 4).astype(dy.dtype)

    x = jnp.ones(3, dtype)
    y, pull = jax.vjp(wrap(op), x)
    (dx,) = pull(jnp.ones(3, dtype))
    assert y.dtype == dx.dtype == x.dtype
    np.testing.assert_array_equal(dx.astype("complex64"), 4)
    dy = jax.jvp(wrap(op), (x,), (x,))[1]
    assert dy.dtype == x.dtype
    np.testing.assert_array_equal(dy.astype("complex64"), 4)


def test_small_integers_are_integers(wrap):
    @gs.custom_gradient
    def op(x, n):
        return x * n.astype(x.dtype), lambda dy: (10 * dy, None)

    assert wrap(jax.grad(op))(X, jnp.array(3, "int4")) == 10


def test_double_precision(wrap):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: dy * 1e-12 + dy

    assert wrap(jax.grad(op))(np.float64(1)).dtype == jnp.float32
    with jax.enable_x64(True):
        dx = wrap(jax.grad(op))(np.float64(1))
        assert dx.dtype == jnp.float64
        assert dx == 1 + 1e-12


def test_python_numbers_stay_weak(wrap):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: dy * 10

    value, slope = wrap(jax.value_and_grad(op))(2.0)
    half = jnp.float16(1)
    assert (value * half).dtype == (slope * half).dtype == jnp.float16


def test_scalars_and_empty_arrays(wrap):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: dy * 10

    for shape in ((), (0,), (2, 0), (1, 1)):
        found = wrap(jax.grad(lambda x: jnp.sum(op(x))))(jnp.ones(shape))
        np.testing.assert_array_equal(found, np.full(shape, 10))


def test_a_number_may_be_the_gradient_of_a_scalar(wrap):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: 10.0

    assert wrap(jax.grad(op))(X) == 10


# --- complex -------------------------------------------------------------------------


@gs.custom_gradient
def squared(z):
    """The rule in the convention dL/dRe + i dL/dIm: dz = dy conj(2 z)."""
    return z * z, lambda dy: dy * jnp.conj(2 * z)


@gs.operation
def modulus(z):
    return jnp.abs(z)


@modulus.vjp
def _(dy, y, z):
    return dy * z / y


@pytest.mark.parametrize(
    ("operation", "plain"), [(squared, jnp.square), (modulus, jnp.abs)]
)
def test_complex_gradients_are_as_jax_defines_them(operation, plain, wrap):
    z, dz = jnp.complex64(3 + 4j), jnp.complex64(0.3 - 0.7j)
    loss = lambda f: lambda z: jnp.real(f(z) * (1 - 2j))
    found, expected = wrap(jax.grad(loss(operation)))(z), jax.grad(loss(plain))(z)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found, expected = (jax.jvp(wrap(f), (z,), (dz,))[1] for f in (operation, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    second = lambda f: jax.grad(lambda z: jnp.abs(jax.grad(loss(f))(z)) ** 2)
    found, expected = wrap(second(operation))(z), second(plain)(z)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
