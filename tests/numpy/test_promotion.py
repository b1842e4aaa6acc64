"""dtypes and shapes are NumPy's for all dtypes and shapes."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import mlx.core as mx
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradsmith.numpy as gnp

from .harness import FRAMEWORKS, NATIVE, canonical, plain

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
BINARY = ("add", "multiply", "divide", "power", "maximum", "where")
NUMBERS = (True, 2, 2.0, 2j, np.float32(2), np.int64(2))

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)
each_function = pytest.mark.parametrize("name", BINARY)


def run(name, module, x1, x2, condition):
    fn = getattr(module, name)
    return fn(condition, x1, x2) if name == "where" else fn(x1, x2)


def check(name, framework, x1, x2):
    """The dtype is NumPy's; what NumPy refuses is refused."""
    native = NATIVE[framework]
    condition = np.array([True, False])
    given = [x.astype(canonical(x.dtype, framework)) if isinstance(x, np.ndarray) else x
             for x in (x1, x2)]  # fmt: skip
    swapped = [native(x) if isinstance(x, np.ndarray) else x for x in given]
    try:
        with np.errstate(all="ignore"):
            wanted = run(name, np, *given, condition)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            run(name, gnp, *swapped, native(condition))
        return
    if framework == "torch" and "complex" in str(wanted.dtype) and name == "maximum":
        return  # PyTorch has no order of complex numbers
    if framework == "tensorflow" and not has_kernel(name, wanted.dtype):
        return
    y = plain(run(name, gnp, *swapped, native(condition)))
    assert y.dtype == canonical(wanted.dtype, framework)
    np.testing.assert_allclose(y, wanted.astype(y.dtype), rtol=2e-2)


def has_kernel(name, dtype):
    """TensorFlow has no order of complex numbers, and powers of few integers."""
    if name == "maximum":
        return dtype.kind != "c"
    return name != "power" or dtype.kind in "fc" or dtype.itemsize > 2


@each_framework
@each_function
@settings(max_examples=25)
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_two_arrays(name, framework, first, second):
    check(name, framework, np.array([1, 0], first), np.array([1, 1], second))


@each_framework
@each_function
@settings(max_examples=25)
@given(st.sampled_from(DTYPES), st.sampled_from(NUMBERS), st.booleans())
def test_array_and_number(name, framework, dtype, number, first):
    x = np.array([1, 2], dtype)
    check(name, framework, *((number, x) if first else (x, number)))


SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)


@each_framework
@settings(max_examples=12)
@given(SHAPES)
def test_broadcasting(framework, shapes):
    x1, x2 = (np.arange(np.prod(s)).reshape(s).astype("float32")
              for s in shapes.input_shapes)  # fmt: skip
    n1, n2 = NATIVE[framework](x1), NATIVE[framework](x2)
    np.testing.assert_array_equal(plain(gnp.add(n1, n2)), x1 + x2)
    both = gnp.broadcast_arrays(n1, n2)
    for y, want in zip(both, np.broadcast_arrays(x1, x2), strict=True):
        np.testing.assert_array_equal(plain(y), want)
    back = gnp.unbroadcast(gnp.ones_like(gnp.add(n1, n2)), x1.shape)
    assert plain(back).shape == x1.shape
    assert plain(back).sum() == np.broadcast(x1, x2).size


@each_framework
@settings(max_examples=10)
@given(st.data())
def test_reductions(framework, data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))
    dtype = data.draw(st.sampled_from(["bool", "int8", "int32", "float32", "float64"]))
    axes = data.draw(
        st.none() | hnp.valid_tuple_axes(len(shape)) if shape else st.none()
    )
    keepdims = data.draw(st.booleans())
    x = (np.arange(np.prod(shape)) % 3).reshape(shape).astype(dtype)
    x = x.astype(canonical(x.dtype, framework))
    for name in ("sum", "prod", "mean", "max", "min", "any", "all", "std"):
        wanted = getattr(np, name)(x, axis=axes, keepdims=keepdims)
        y = getattr(gnp, name)(NATIVE[framework](x), axis=axes, keepdims=keepdims)
        y = plain(y)
        assert y.dtype == canonical(wanted.dtype, framework), name
        assert y.shape == wanted.shape, name
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("array", "bfloat16"),
    [
        (tf.constant([1, 2], tf.bfloat16), tf.bfloat16),
        (jnp.array([1, 2], jnp.bfloat16), jnp.bfloat16),
        (torch.tensor([1, 2], dtype=torch.bfloat16), torch.bfloat16),
        (mx.array([1, 2], mx.bfloat16), mx.bfloat16),
    ],
    ids=FRAMEWORKS,
)
def test_bfloat16_stays(array, bfloat16):
    results = [
        gnp.exp(array), gnp.multiply(array, 2.0), gnp.add(array, array), gnp.sum(array),
        gnp.mean(array), gnp.where(array > 1, array, 0), gnp.special.erf(array),
        gnp.astype(gnp.astype(array, "float32"), "bfloat16"), gnp.maximum(array, 0),
        gnp.special.softmax(array, axis=0), gnp.std(array),
    ]  # fmt: skip
    assert all(y.dtype == bfloat16 for y in results)
    wide = gnp.add(array, gnp.astype(array, "float16"))
    assert wide.dtype == gnp.astype(array, gnp.float32).dtype
    assert gnp.finfo(array).eps == 2**-7
    assert gnp.result_type(array, 1.0) == bfloat16


def test_jax_in_64_bits_is_numpy():
    with jax.enable_x64(True):
        x, y = jnp.ones(2, jnp.int32), jnp.ones(2, jnp.float32)
        assert gnp.add(x, y).dtype == np.float64
        assert gnp.sum(x).dtype == np.int64
        assert gnp.mean(x).dtype == np.float64


def test_jax_without_64_bits_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gnp.mean(jnp.ones(2, jnp.int32)).dtype == np.float32
        assert gnp.astype(jnp.ones(2), float).dtype == np.float32


def test_number_that_jit_made_an_array_is_still_a_number():
    x = jnp.ones(2, jnp.float16)
    assert jax.jit(gnp.multiply)(x, 2.0).dtype == np.float16
    assert jax.jit(gnp.where)(x > 0, x, 0.0).dtype == np.float16


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_negative_power_of_whole_numbers_raises(framework):
    x = NATIVE[framework](np.array([1, 2], np.int32))
    with pytest.raises(ValueError, match="negative integer powers"):
        gnp.power(x, -1)
