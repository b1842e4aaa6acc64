"""What is kept from one pass to the next, in the memory of a result."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.program.kernels.kernel import Kernel
from gradsmith.program.kernels.scratch import homes, kept_in

pytest.importorskip("llvmlite")


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def softmax_and_other(x):
    """The first result is written where the second still needs what is kept."""
    return x * np.float64(2), softmax(x)


def with_exponentials(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True), e


def two_kept(x):
    e, t = np.exp(-x * x), np.tanh(x)
    return e / np.sum(e), t * np.sum(t)


def kernel_of(fn, x):
    return Kernel(gs.compile(fn).program(x))


@pytest.mark.parametrize(
    "fn", [softmax, softmax_and_other, with_exponentials, two_kept]
)
@pytest.mark.parametrize("n", [5, 64, 1003])
def test_values_of_one_row(fn, n):
    x = np.random.default_rng(0).normal(size=n)
    found, expected = kernel_of(fn, x)(x), fn(x)
    for y, z in zip(np.atleast_2d(found), np.atleast_2d(expected), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-13)


def test_one_row_takes_no_memory_of_its_own():
    kernel = kernel_of(softmax, np.ones(1000))
    assert [node.op for node in kept_in(kernel.nest)] == ["exp"]
    assert kernel.kept == 0
    kernel = kernel_of(two_kept, np.ones(1000))
    assert kernel.kept == 0
    assert sorted(homes(kernel.nest, kernel.storage).values()) == [0, 1]


def test_a_result_that_is_written_before_has_no_room():
    kernel = kernel_of(with_exponentials, np.ones(1000))
    (home,) = homes(kernel.nest, kernel.storage).values()
    assert home == 0  # the second one is written one pass before the first


def test_rows_and_other_kinds_of_numbers():
    assert kernel_of(softmax, np.ones((4, 1000))).kept == 1
    narrow = kernel_of(softmax, np.ones(1000, np.float32))
    assert narrow.kept == 0
    program = narrow.program
    half = Kernel(program, ("float16", "float16"))
    assert half.kept == 1  # what is kept is a float32
