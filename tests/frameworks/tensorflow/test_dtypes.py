"""Dtypes: halves, complex numbers, mixed precision; what is no dense tensor."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import canary, gradients, jvp, orders, x3

WRAPPERS = [lambda fn: fn, tf.function]


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floating_dtypes(dtype, wrap):
    x = tf.constant([1.0, 2.0], dtype)
    _, first, second = orders(wrap(canary), x, 2)
    assert first.dtype == second.dtype == x.dtype
    assert tf.cast(first, tf.float32).numpy() == pytest.approx([10, 20])
    assert tf.cast(second, tf.float32).numpy() == pytest.approx([10, 10])
    dy = jvp(wrap(canary), x, tf.ones_like(x))
    assert dy.dtype == x.dtype


@gs.custom_gradient
def square(z):
    return z * z, lambda dy: 2 * tf.math.conj(z) * dy


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_complex_numbers_in_tensorflows_convention(wrap):
    z = tf.constant([1 + 2j, 3 - 1j], tf.complex64)

    def loss(fn, z):
        return tf.reduce_sum(tf.abs(fn(z)) ** 2)

    (ours,) = gradients(lambda z: loss(wrap(square), z), z)
    (theirs,) = gradients(lambda z: loss(lambda z: z * z, z), z)
    assert ours.numpy() == pytest.approx(theirs.numpy(), rel=1e-5)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_forward_mode_of_complex_numbers(wrap):
    z, dz = tf.constant(1 + 2j, tf.complex64), tf.constant(1 + 1j, tf.complex64)
    found = jvp(wrap(square), z, dz)
    assert complex(found) == pytest.approx(complex(jvp(lambda z: z * z, z, dz)))


def test_numbers_where_a_gradient_is_a_scalar():
    @gs.custom_gradient
    def fn(x):
        return 2 * x, lambda dy: 5.0

    for wrap in WRAPPERS:
        (dx,) = gradients(wrap(fn), tf.constant(1.0, tf.float16))
        assert (dx.dtype, float(dx)) == (tf.float16, 5)


@pytest.fixture
def policy(request):
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


class Scale(keras.layers.Layer):
    """Its variable is an argument, a Keras variable as it stands."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="w")

    def call(self, x):
        return product(x, self.w)


@gs.custom_gradient
def product(x, w):
    def grad(dy):
        assert dy.dtype == x.dtype == w.dtype
        return 2 * w * dy, 3 * tf.reduce_sum(x * dy, axis=0)

    return x * w, grad


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"], indirect=True)
@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_mixed_precision(policy, mode):
    model = keras.Sequential([keras.Input((2,)), Scale(), keras.layers.Dense(1)])
    options = {"run_eagerly": mode == "eager", "jit_compile": mode == "jit"}
    optimizer = keras.optimizers.SGD()
    if policy == "mixed_float16":  # with a scale at which nothing overflows
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8)
    model.compile(optimizer, "mse", **options)
    layer = model.layers[0]
    assert layer.compute_dtype == policy.removeprefix("mixed_")
    before = layer.w.numpy()
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert layer.w.dtype == "float32"
    assert not np.array_equal(before, layer.w.numpy())


def test_a_keras_variable_gets_the_gradient():
    v = keras.Variable([1.0, 2.0])
    for wrap in WRAPPERS:
        with tf.GradientTape() as tape:
            y = wrap(lambda: canary(v))()
        assert tape.gradient(y, v.value).numpy() == pytest.approx([10, 20])
    with keras.src.backend.common.variables.AutocastScope("float16"):
        assert canary(v).dtype == tf.float16


def test_a_keras_tensor():
    with pytest.raises(gs.GradsmithError, match=r"'canary' was given a KerasTensor"):
        canary(keras.Input((3,)))


@pytest.mark.parametrize(
    ("x", "way_out"),
    [
        (tf.ragged.constant([[1.0], [2.0, 3.0]]), r"x\.flat_values"),
        (tf.sparse.from_dense([[1.0, 0.0]]), r"x\.values"),
    ],
)
def test_ragged_and_sparse_tensors(x, way_out):
    for wrap in WRAPPERS:
        with pytest.raises(gs.GradsmithError, match=way_out):
            wrap(canary)(x)

    @gs.custom_gradient
    def returns(y):
        return x, lambda dy: dy

    with pytest.raises(gs.GradsmithError, match="returned a"):
        returns(x3)

    @gs.custom_gradient
    def wrong(y):
        return y, lambda dy: x

    with pytest.raises(gs.GradientContractError, match="wrong"):
        gradients(wrong, x3)


def test_indexed_slices_as_argument():
    x = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1]), tf.constant([3, 2]))
    assert canary(x).numpy().tolist() == [[0, 0], [1, 1], [0, 0]]


def test_arrays_of_two_frameworks():
    with pytest.raises(gs.GradsmithError, match="arrays of two frameworks"):
        product(x3, np.ones(3, np.float32))
