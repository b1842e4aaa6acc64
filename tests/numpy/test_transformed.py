"""Under the frameworks' compilers and transformations."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.numpy._dispatch import portable

from .harness import CASES, call, compare, find, native_args, noted

# PyTorch uses its own deprecated compiler when a dual number is first made.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")

X = np.random.default_rng(0).normal(size=(4, 3))


def softmax(x, axis=-1):
    e = gnp.exp(gnp.subtract(x, gnp.max(x, axis=axis, keepdims=True)))
    return gnp.divide(e, gnp.sum(e, axis=axis, keepdims=True))


def loss(x):
    y = softmax(gnp.matmul(x, gnp.ones((3, 3), dtype=x.dtype, like=x)) + x)
    y = gnp.where(gnp.greater(y, 0.2), y, gnp.multiply(y, 2.0))
    y = gnp.concatenate([y, gnp.reshape(gnp.arange(3, like=x), (1, 3))])
    return gnp.mean(gnp.log1p(gnp.maximum(y, 0))) + gnp.linalg.norm(y)


WANTED = gs.value_and_grad(loss)(X)


def check(value, gradient):
    np.testing.assert_allclose(value, WANTED[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, WANTED[1], rtol=1e-4, atol=1e-6)


def test_torch_compile_fullgraph():
    x = torch.tensor(X, requires_grad=True)
    y = torch.compile(loss, fullgraph=True, backend="aot_eager")(x)
    y.backward()
    check(y.detach(), x.grad)


# One case of each function that goes its own way through dispatch and promotion.
SAMPLE = (
    "exp", "add", "where", "clip", "sum", "var", "argmax", "sort", "reshape", "stack",
    "concatenate", "pad", "take", "take_along_axis", "einsum", "moveaxis", "squeeze",
    "linalg.norm", "linalg.solve", "special.erf", "special.xlogy", "special.softmax",
    "zeros_like", "astype", "broadcast_arrays", "atleast_2d", "cumsum", "diag",
    "median", "round", "sign", "split", "tile", "unbroadcast", "stop_gradient",
    "full_like",
)  # fmt: skip


def mixed(name):
    """The case of a function whose operands have the most dtypes."""
    cases = [case for case in CASES if case.name == name]
    return max(cases, key=lambda c: len({x.dtype for x in native_args(c, "torch")}))


def test_torch_compile_fullgraph_of_a_sample():
    for case in map(mixed, SAMPLE):
        torch._dynamo.reset()  # one piece of code, compiled anew for each
        compiled = torch.compile(
            lambda xs, case=case: call(case, find(case.name), xs),
            fullgraph=True,
            backend="eager",
        )
        ys = noted(case, compiled, native_args(case, "torch"))
        noted(case, compare, case, ys, "torch")


def test_torch_that_is_imported_later_compiles():
    """The first call of all is inside of the compiler."""
    code = (
        "import gradsmith.numpy as gnp, torch\n"
        "f = lambda x: gnp.sum(gnp.exp(x) + gnp.add(x, 1))\n"
        "g = torch.compile(f, fullgraph=True, backend='eager')\n"
        "print(float(g(torch.zeros(2))))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert result.stdout.strip() == "4.0", result.stderr


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return gnp.sum(gnp.multiply(self.w, x), axis=-1)


def test_torch_module_compiles_with_lengths_that_vary():
    scale = Scale()
    compiled = torch.compile(scale, fullgraph=True, dynamic=True, backend="eager")
    for n in (2, 3, 5):
        torch.testing.assert_close(compiled(torch.ones(n, 3)), scale(torch.ones(n, 3)))


def test_torch_func():
    x = torch.tensor(X)
    check(loss(x), torch.func.grad(loss)(x))
    rows = torch.func.vmap(softmax)(x)
    torch.testing.assert_close(rows, softmax(x))
    _, tangent = torch.func.jvp(loss, (x,), (torch.ones_like(x),))
    np.testing.assert_allclose(tangent, WANTED[1].sum(), rtol=1e-6)


def test_jax():
    with jax.enable_x64(True):
        x = jnp.asarray(X)
        check(*jax.value_and_grad(loss)(x))
        check(*jax.jit(jax.value_and_grad(loss))(x))
        rows = jax.jit(jax.vmap(softmax))(x)
        np.testing.assert_allclose(rows, softmax(x))
        _, tangent = jax.jvp(loss, (x,), (jnp.ones_like(x),))
        np.testing.assert_allclose(tangent, WANTED[1].sum(), rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_tensorflow(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return y, tape.gradient(y, x)

    check(*both(tf.constant(X)))


def test_tensorflow_vectorized_map():
    x = tf.constant(X)
    np.testing.assert_allclose(tf.vectorized_map(softmax, x), softmax(x))


def test_autograph_leaves_the_functions_alone():
    """A function that it rewrites comes from a file of its own."""
    files = []

    def definition(K, x):
        files.append(sys._getframe(1).f_code.co_filename)
        return x

    function = portable(np.positive)(definition)

    @tf.function
    def run(x):
        files.append(sys._getframe(0).f_code.co_filename)
        return function(x)

    run(tf.constant(X))
    assert files[0] != __file__  # the user's function is rewritten, as ever
    assert files[1].endswith("_dispatch.py")
    assert hasattr(gnp.exp, "autograph_info__")


def test_length_of_the_zero_vector_has_a_gradient_everywhere():
    zero = np.zeros(3)
    assert jax.grad(gnp.linalg.norm)(jnp.asarray(zero)).tolist() == [0, 0, 0]
    x = torch.tensor(zero, requires_grad=True)
    assert torch.autograd.grad(gnp.linalg.norm(x), x)[0].tolist() == [0, 0, 0]
    x = tf.constant(zero)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gnp.linalg.norm(x)
    assert tape.gradient(y, x).numpy().tolist() == [0, 0, 0]


def test_unknown_rank_says_what_to_do():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def run(x):
        return gnp.sum(x)

    with pytest.raises(ValueError, match=r"tf\.ensure_shape"):
        run(tf.constant(X, tf.float32))
