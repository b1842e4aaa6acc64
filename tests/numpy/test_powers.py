"""Powers of NumPy's arrays, which the engine computes itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.rules.polynomials import FEW

LENGTHS = (0, 1, 7, FEW - 1, FEW)
DTYPES = ("bool", "int8", "uint64", "float16", "float32", "float64", "complex64", ">f8")
SHARE = 2.0**-53  # of a float64: the largest relative error of one product


def powers_of(dtype, length):
    x = 2.3 * np.random.default_rng(3).normal(size=length)
    if dtype[0] == "u":
        x = np.abs(x)
    return (x + 0.5j * x[::-1] if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_as_exact_as_numpys(dtype, length):
    x = powers_of(dtype, length)
    for n in (None, 0, 1, 2, 3, 20, 33):
        if n is None and length > 7:
            continue
        for increasing in (False, True):
            y, want = gnp.vander(x, n, increasing), np.vander(x, n, increasing)
            assert (y.shape, y.dtype) == (want.shape, want.dtype)
            if want.dtype.kind == "i" or (length >= FEW and want.dtype.kind == "f"):
                np.testing.assert_array_equal(y, want)
            np.testing.assert_allclose(y, want, rtol=2.8 * 2 * 40 * SHARE)


def test_error_of_a_power_is_at_most_that_of_its_products():
    x = 1 + 0.3 * np.random.default_rng(3).normal(size=100)
    k = np.arange(64)
    exact = np.vander(x.astype(np.longdouble), 64, increasing=True)
    error = np.abs(gnp.vander(x, 64, increasing=True) - exact) / np.abs(exact)
    assert np.all(error <= 1.01 * SHARE * np.maximum(k - 1, 0))


def test_each_power_is_a_row_in_memory():
    for length in (64, 600):
        for x in (np.ones(length), gs.Tensor(np.ones(length))):
            y = gnp.vander(x, 40)
            y = y.value if isinstance(y, gs.Tensor) else y
            assert y.T.flags.c_contiguous


@pytest.mark.parametrize("length", LENGTHS)
def test_numpys_function_of_a_tensor_keeps_its_bits(length):
    x = powers_of("float64", length)
    y = np.vander(gs.Tensor(x), 20)  # type: ignore[call-overload]
    np.testing.assert_array_equal(y.numpy(), np.vander(x, 20))


def test_large_powers_are_nobody_elses():
    """They lie in reused memory."""
    x = np.linspace(-1.0, 1.0, 4_000)
    first = gnp.vander(x, 64)
    before = first.copy()
    second = gnp.vander(2 * x, 64)
    assert first.nbytes > 10**6
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, before)
    del first
    first = gnp.vander(x, 64)
    np.testing.assert_array_equal(second, np.vander(2 * x, 64))
    np.testing.assert_array_equal(first, before)


def test_of_lists_and_objects():
    np.testing.assert_array_equal(gnp.vander([2, 3], 3), [[4, 2, 1], [9, 3, 1]])
    x = np.array([1 << 70, 3], object)
    np.testing.assert_array_equal(gnp.vander(x, 3), np.vander(x, 3))
    f = lambda x: np.sum(gnp.vander([x[0], x[1]], 3)[:, 0])
    np.testing.assert_allclose(gs.grad(f)(np.array([2.0, -3.0])), [4.0, -6.0])


def test_a_program_names_numpys_function():
    """So that compiled loops know it."""
    program = gs.trace(lambda x: gnp.vander(x, 3, increasing=True), np.ones(4))
    assert "np.vander(x, 3, increasing=True)" in str(program)


def test_an_open_length_needs_n():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)])
    def powers(x):
        return gnp.vander(x)

    with pytest.raises(ValueError, match="needs N"):
        powers(tf.ones(3, tf.float64))
