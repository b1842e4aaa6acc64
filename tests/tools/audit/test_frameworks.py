"""Functions of PyTorch, JAX and TensorFlow."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from torch.nn import functional as F  # noqa: N812 (as everybody calls it)

import gradsmith as gs

N = {"points": 1500}


@gs.operation
def cube(x):
    return x * x * x


@cube.vjp
def _(dy, y, x):
    return 3 * x * x * dy


@pytest.mark.parametrize(
    ("fn", "name"),
    [(torch.sinc, "PyTorch"), (jnp.sinc, "JAX"),
     (tf.experimental.numpy.sinc, "TensorFlow")],
)  # fmt: skip
def test_sinc_loses_its_gradient_everywhere(fn, name):
    report = gs.audit(fn, (-100, 100), **N)
    assert report.framework == name
    assert report.gradient.mean_bits > 16
    assert report.gradient.beyond > 0.9
    assert not report.gradient.wrong
    assert "np.sinc" in report.notes[0]


@pytest.mark.parametrize(
    "fn", [F.softplus, torch.nn.Softplus(), torch.exp, torch.special.exp2]
)
def test_what_torch_has_right(fn):
    report = gs.audit(fn, (-80, 80), **N)
    assert report.ok, str(report)


def test_conventions_of_gelu():
    exact, approximate = "gelu(x) = x ndtr(x)", "tanh(sqrt(2/pi)"
    for fn, words in [
        (F.gelu, exact),
        (partial(F.gelu, approximate="tanh"), approximate),
        (torch.nn.GELU(approximate="tanh"), approximate),
        (jax.nn.gelu, approximate),
        (partial(jax.nn.gelu, approximate=False), exact),
        (tf.nn.gelu, exact),
    ]:
        report = gs.audit(fn, (-1, 1), points=300)
        assert words in report.notes[0]
        assert report.value.mean_bits < 1


@pytest.mark.parametrize(
    "fn",
    [torch.tanh, torch.lgamma, torch.special.log_ndtr, torch.erfinv, torch.digamma,
     F.silu, F.logsigmoid, F.mish, F.hardswish, F.leaky_relu, F.elu, torch.rsqrt,
     jax.nn.silu, jax.nn.log_sigmoid, jax.lax.lgamma, jnp.arctanh, jax.nn.softplus,
     tf.math.atanh, tf.nn.silu, tf.math.softplus, tf.nn.elu, tf.nn.leaky_relu,
     tf.math.lgamma, tf.math.log_sigmoid, tf.math.erfinv],
)  # fmt: skip
def test_true_functions_are_found_by_name(fn):
    report = gs.audit(fn, (0.2, 0.7), points=100)
    assert report.value.mean_bits < 4, str(report)  # of another function, most of 24
    assert report.value.judged > 100
    assert not report.gradient.wrong


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("fn", [torch.tanh, jnp.tanh, tf.tanh])
def test_every_format(fn, dtype):
    report = gs.audit(fn, (-3, 3), dtype, points=500)
    assert report.exhaustive == (dtype != "float64")
    assert report.value.max_ulp < 4
    assert report.dtype == dtype


def test_a_frameworks_own_dtype():
    for dtype in (torch.float16, jnp.float16, tf.float16):
        assert gs.audit(torch.abs, (0, 1), dtype).dtype == "float16"


def test_subnormal_numbers_that_are_flushed_are_not_judged():
    report = gs.audit(jnp.sin, (-1e-37, 1e-37), points=500)
    assert report.value.outside > 100
    assert report.value.max_ulp < 4
    assert "subnormal" in report.notes[1]
    assert gs.audit(torch.sin, (-1e-37, 1e-37), points=500).value.outside == 0


def test_a_function_of_the_user_wants_a_reference():
    def mine(x):
        return torch.log(1 + torch.exp(x))

    with pytest.raises(gs.GradsmithError, match="reference=lambda x"):
        gs.audit(mine)
    report = gs.audit(mine, (-200, 200), reference=lambda x: np.logaddexp(x, 0), **N)
    assert report.framework == "PyTorch"
    line = mine.__code__.co_firstlineno + 1
    assert report.value.regions[0].cause == f"overflow in `exp`, line {line}"
    nan = report.gradient.regions[0]
    assert nan.text.startswith("gradient is NaN for x > 88.7228")


def test_a_wrong_autograd_function():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tanh(x)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return dy * (1 - torch.tanh(x))

    found = gs.audit(Wrong.apply, (0.1, 3), reference=np.tanh, **N).gradient
    assert found.wrong
    assert found.regions[0].text.startswith("gradient is wrong everywhere")


def test_an_operation_of_ours_in_each_framework():
    for name in ("torch", "jax", "tensorflow"):
        report = gs.audit(cube, (-9, 9), framework=name, points=300)
        assert report.framework != "NumPy"
        assert report.ok


@pytest.mark.parametrize(
    "fn", [torch.softmax, F.log_softmax, torch.logsumexp, torch.linalg.vector_norm,
           jax.nn.softmax, jax.nn.logsumexp, tf.nn.softmax, tf.reduce_logsumexp],
)  # fmt: skip
def test_vectors(fn):
    report = gs.audit(fn, (-5, 5), points=60)
    assert report.value.judged == 60
    assert report.value.mean_bits < 8
    assert not report.gradient.wrong
    json.loads(report.to_json())


@pytest.mark.parametrize("fn", [torch.hypot, jnp.hypot, torch.logaddexp, torch.pow])
def test_several_arguments(fn):
    report = gs.audit(fn, (0.5, 4), points=300)
    assert report.arguments == ("x1", "x2")
    assert report.value.max_ulp < 20


def test_a_loss_of_torch():
    def loss(p, t):
        return np.mean((p - t) ** 2)

    vector = gs.spec((5,))
    report = gs.audit(F.mse_loss, reference=loss, inputs=(vector, vector), points=40)
    assert report.ok
    assert report.arguments == ("p", "t")


def test_an_option_that_is_not_known_is_another_function():
    with pytest.raises(gs.GradsmithError, match="not known by its name"):
        gs.audit(partial(torch.div, rounding_mode="floor"))


def test_what_a_framework_raises_passes_through():
    def narrow(x):
        raise TypeError("not for Half")

    with pytest.raises(TypeError, match="Half"):
        gs.audit(narrow, framework="torch", reference=np.sin)


def test_an_operation_of_ours_calls_its_axis_axis_everywhere():
    report = gs.audit(gs.ops.softmax, framework="torch", points=40)
    assert report.value.judged == 40
    assert report.framework == "PyTorch"
