"""What the frameworks' own checkers are known to miss, or to reject though it is right.

Each row is a custom operation of a framework, as its users write them, with a right and
a wrong rule. That the framework's checker errs is asserted too: once it does not, we
want to know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from jax.test_util import check_grads

import gradsmith as gs

from .helpers import native

Rule = Callable[..., Any]

# All others are wrong.
GRADES = {
    "clipped g": "surrogate",
    "relu(g)": "surrogate",  # guided backpropagation
    "overflow in float32 alone": "right, with limits",
    "second order detached": "right, with limits",
    "broadcast not reduced": "right, with limits",
    "ties counted twice": "right, with limits",  # there are none among the inputs
}


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) + 0.1


@dataclass(frozen=True)
class Spot:
    """An operation with a right and a wrong rule, on the inputs of the check."""

    body: Rule
    right: Rule
    wrong: Rule
    inputs: tuple[np.ndarray, ...] = (normal(3, 4),)
    peer: Callable[..., bool] | None = None  # in place of the default usage


def spot(framework: str, rows: dict[str, Spot], name: str) -> tuple[Spot, Any, Any]:
    row = rows[name]
    right = native(framework, row.body, row.right)
    return row, right, native(framework, row.body, row.wrong)


# --- PyTorch: gradcheck --------------------------------------------------------------


def gradcheck(op: Any, *xs: np.ndarray, dtype: Any = torch.float64, **how: Any) -> bool:
    """Whether torch accepts it, by default or as is said."""
    given = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in xs]
    return torch.autograd.gradcheck(op.apply, given, raise_exception=False, **how)


fast = partial(gradcheck, fast_mode=True)


def sin(dy: Any, y: Any, x: Any) -> Any:
    return dy * torch.cos(x)


def tanh(dy: Any, y: Any, x: Any) -> Any:
    return dy * (1 - y * y)


def softmax(dy: Any, y: Any, x: Any) -> Any:
    return y * (dy - (dy * y).sum(-1, keepdim=True))


def nothing(dy: Any, y: Any, *xs: Any) -> Any:
    return torch.zeros_like(xs[0])


def _only_contiguous(dy: Any, y: Any, x: Any) -> Any:
    flat = dy.as_strided((dy.numel(),), (1,)).reshape(x.shape)  # by memory, not index
    return flat * (1 - y * y)


def _mutates(dy: Any, y: Any, x: Any) -> Any:
    return dy.mul_(1 - y * y)


def _late(dy: Any, y: Any, x: Any) -> Any:
    dx = (dy * (1 - y * y)).reshape(-1)
    return torch.where(torch.arange(dx.numel()) < 1024, dx, 0).reshape(x.shape)


def _first(tied: Any) -> Any:
    return tied & (tied.cumsum(-1) == 1)


def _detached(dy: Any, y: Any, x: Any) -> Any:
    return dy * (3 * x * x).detach()


def softplus(x: Any) -> Any:
    return torch.logaddexp(x, torch.zeros_like(x))


TORCH = {
    "fast mode: zero, softmax of 32 x 32": Spot(
        lambda x: torch.softmax(x, -1), softmax, nothing, (normal(32, 32),), fast
    ),
    "fast mode: zero, sine of 300 x 300": Spot(
        torch.sin, sin, nothing, (normal(300, 300),), fast
    ),
    "fast mode: sign, sine of 500 x 500": Spot(
        torch.sin, sin, lambda *a: -sin(*a), (normal(500, 500),), fast
    ),
    "relu(g)": Spot(torch.tanh, tanh, lambda dy, y, x: tanh(torch.relu(dy), y, x)),
    "clipped g": Spot(torch.tanh, tanh, lambda dy, y, x: tanh(dy.clip(-1, 1), y, x)),
    "lower dtype": Spot(torch.tanh, tanh, lambda *a: tanh(*a).to(torch.float32)),
    "right only if contiguous": Spot(torch.tanh, tanh, _only_contiguous),
    "mutates the upstream": Spot(torch.tanh, tanh, _mutates),
    "ties counted twice": Spot(
        lambda x: x.amax(-1),
        lambda dy, y, x: dy[:, None] * _first(x == y[:, None]),
        lambda dy, y, x: dy[:, None] * (x == y[:, None]),
    ),
    "1e-6 of the wrong sign": Spot(
        lambda x: 1e-6 * torch.tanh(x),
        lambda dy, y, x: 1e-6 * dy / torch.cosh(x) ** 2,
        lambda dy, y, x: -1e-6 * dy / torch.cosh(x) ** 2,
    ),
    "wrong for x < 0": Spot(
        torch.tanh,
        tanh,
        lambda dy, y, x: torch.where(x < 0, 0.0, tanh(dy, y, x)),
        (positive(3, 4),),
    ),
    "wrong for |x| < 0.01": Spot(
        torch.tanh,
        tanh,
        lambda dy, y, x: torch.where(x.abs() < 0.01, 2.0, 1.0) * tanh(dy, y, x),
    ),
    "wrong after element 1024": Spot(torch.tanh, tanh, _late),
    "overflow in float32 alone": Spot(
        softplus,
        lambda dy, y, x: dy * torch.sigmoid(x),
        lambda dy, y, x: dy * torch.exp(x) / (1 + torch.exp(x)),
    ),
    "second order detached": Spot(
        lambda x: x**3, lambda dy, y, x: dy * 3 * x * x, _detached
    ),
    "broadcast not reduced": Spot(
        lambda a, b: a * b,
        lambda dy, y, a, b: (dy * b, (dy * a).sum(0)),
        lambda dy, y, a, b: (dy * b, dy * a),
        (normal(3, 4), normal(4)),
    ),
}


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.filterwarnings("ignore:.*is not a double precision:UserWarning")
def test_torch_accepts_what_is_wrong(name):
    row, right, wrong = spot("torch", TORCH, name)
    assert (row.peer or gradcheck)(wrong, *row.inputs), "PyTorch finds it by now"
    assert gs.check(wrong, *row.inputs).verdict == GRADES.get(name, "wrong")
    report = gs.check(right, *row.inputs)
    assert report.ok, report


def log(dy: Any, y: Any, x: Any) -> Any:
    return dy / x


TORCH_RIGHT = {
    "three-way ties": (
        lambda x: x.amax(-1),
        lambda dy, y, x: dy[:, None] * _first(x == y[:, None]),
        np.array([[1.0, 1.0, 1.0, 0.5], [2.0, 3.0, 3.0, 3.0]]),
    ),
    "log at 1e-5": (torch.log, log, np.full(3, 1e-5)),
    "sqrt at 1e-6": (torch.sqrt, lambda dy, y, x: dy / (2 * y), np.full(3, 1e-6)),
    "square at 1e9": (lambda x: x * x, lambda dy, y, x: 2 * x * dy, np.full(3, 1e9)),
    "sin at 1e8": (torch.sin, sin, 1e8 + normal(3)),
}


@pytest.mark.parametrize("name", TORCH_RIGHT)
def test_torch_rejects_what_is_right(name):
    body, rule, x = TORCH_RIGHT[name]
    op = native("torch", body, rule)
    assert not gradcheck(op, x), "PyTorch accepts it by now"
    report = gs.check(op, x)
    assert report.ok, report


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.filterwarnings("ignore:.*is not a double precision:UserWarning")
def test_torch_rejects_the_sine_of_few_digits(dtype):
    op = native("torch", torch.sin, sin)
    dtype = getattr(torch, dtype)
    assert not gradcheck(op, normal(3, 4), dtype=dtype), "PyTorch accepts it by now"
    report = gs.check(op, torch.tensor(normal(3, 4), dtype=dtype))
    assert report.ok, report


# --- JAX: check_grads ----------------------------------------------------------------


def checked(op: Any, *xs: Any, modes: Any = ("rev",), order: int = 1) -> bool:
    """Whether JAX accepts it in float32, the default."""
    given = tuple(jnp.asarray(x, jnp.float32) for x in xs)
    try:
        check_grads(op, given, order=order, modes=list(modes))
    except AssertionError:
        return False
    return True


def jax_tanh(dy: Any, y: Any, x: Any) -> Any:
    return (dy * (1 - y * y),)


def jax_first(dy: Any, y: Any, x: Any) -> Any:
    tied = x == y[:, None]
    return (dy[:, None] * (tied & (jnp.cumsum(tied, -1) == 1)),)


def _jax_late(dy: Any, y: Any, x: Any) -> Any:
    dx = jnp.ravel(dy * (1 - y * y))
    return (jnp.where(jnp.arange(dx.size) < 1024, dx, 0).reshape(x.shape),)


def _jax_near_0(dy: Any, y: Any, x: Any) -> Any:
    return (jnp.where(jnp.abs(x) < 0.01, 2, 1) * dy * (1 - y * y),)


JAX = {
    "lower dtype": Spot(
        jnp.tanh, jax_tanh, lambda *a: (jax_tanh(*a)[0].astype(jnp.float16),)
    ),
    "ties counted twice": Spot(
        lambda x: jnp.max(x, -1),
        jax_first,
        lambda dy, y, x: (dy[:, None] * (x == y[:, None]),),
    ),
    "1e-6 of the wrong sign": Spot(
        lambda x: 1e-6 * jnp.tanh(x),
        lambda dy, y, x: (1e-6 * dy / jnp.cosh(x) ** 2,),
        lambda dy, y, x: (-1e-6 * dy / jnp.cosh(x) ** 2,),
    ),
    "wrong for x < 0": Spot(
        jnp.tanh,
        jax_tanh,
        lambda dy, y, x: (jnp.where(x < 0, 0.0, dy * (1 - y * y)),),
        (positive(3, 4),),
    ),
    "wrong for |x| < 0.01": Spot(jnp.tanh, jax_tanh, _jax_near_0),
    "wrong after element 1024": Spot(jnp.tanh, jax_tanh, _jax_late),
    "overflow in float32 alone": Spot(
        lambda x: jnp.logaddexp(x, 0.0),
        lambda dy, y, x: (dy * jax.nn.sigmoid(x),),
        lambda dy, y, x: (dy * jnp.exp(x) / (1 + jnp.exp(x)),),
    ),
    "second order detached": Spot(
        lambda x: x**3,
        lambda dy, y, x: (dy * 3 * x * x,),
        lambda dy, y, x: (dy * jax.lax.stop_gradient(3 * x * x),),
        (normal(3, 4) / 2,),
    ),
    "NaN where the value is NaN": Spot(
        jnp.log,
        lambda dy, y, x: (dy / x,),
        lambda dy, y, x: (dy / jnp.where(x < 0.2, jnp.nan, x),),
        (np.array([-1.0, 0.5, 2.0, 0.7]),),
    ),
    "zero where the value overflows": Spot(
        jnp.exp,
        lambda dy, y, x: (dy * y,),
        lambda dy, y, x: (jnp.where(x > 80, 0.0, dy * y),),
        (np.array([100.0, 0.5, 2.0], np.float32),),
    ),
}


@pytest.mark.parametrize("name", JAX)
def test_jax_accepts_what_is_wrong(name):
    row, right, wrong = spot("jax", JAX, name)
    assert (row.peer or checked)(wrong, *row.inputs), "JAX finds it by now"
    assert gs.check(wrong, *row.inputs).verdict == GRADES.get(name, "wrong")
    report = gs.check(right, *row.inputs)
    assert report.ok, report


def with_jvp(rule: Rule) -> Any:
    op = jax.custom_jvp(lambda x: jnp.sin(x))
    op.defjvp(lambda xs, dxs: (jnp.sin(xs[0]), rule(xs[0], dxs[0])))
    return op


@pytest.mark.parametrize("factor", [0, -1])
def test_jax_forward_mode_is_blind_at_30_x_30(factor):
    x = normal(30, 30).astype(np.float32)
    wrong = with_jvp(lambda x, dx: factor * jnp.cos(x) * dx)
    assert checked(wrong, x, modes=["fwd"]), "JAX finds it by now"
    assert gs.check(wrong, x).verdict == "wrong"
    report = gs.check(with_jvp(lambda x, dx: jnp.cos(x) * dx), x)
    assert report.ok, report


JAX_RIGHT = {
    "three-way ties": (
        lambda x: jnp.max(x, -1),
        jax_first,
        np.array([[1.0, 1.0, 1.0, 0.5], [2.0, 3.0, 3.0, 3.0]]),
    ),
    "square at 100": (
        lambda x: x * x,
        lambda dy, y, x: (2 * x * dy,),
        np.array([100.0, 300.0, 1000.0]),
    ),
}


@pytest.mark.parametrize("name", JAX_RIGHT)
def test_jax_rejects_what_is_right(name):
    body, rule, x = JAX_RIGHT[name]
    op = native("jax", body, rule)
    assert not checked(op, x), "JAX accepts it by now"
    report = gs.check(op, x)
    assert report.ok, report


# --- TensorFlow: compute_gradient ----------------------------------------------------


def compared(op: Any, *xs: np.ndarray, dtype: Any = tf.float64) -> bool:
    """Whether TensorFlow accepts it, by the recipe of its documentation."""
    given = [tf.constant(x, dtype) for x in xs]
    found, expected = tf.test.compute_gradient(op, given)
    pairs = zip(found, expected, strict=True)
    return all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)


def tf_tanh(dy: Any, y: Any, x: Any) -> Any:
    return dy * (1 - y * y)


def tf_first(dy: Any, y: Any, x: Any) -> Any:
    tied = tf.cast(x == y[:, None], x.dtype)
    return dy[:, None] * tied * tf.cast(tf.cumsum(tied, -1) == 1, x.dtype)


def _tf_near_0(dy: Any, y: Any, x: Any) -> Any:
    return tf.where(tf.abs(x) < 0.01, tf_tanh(2 * dy, y, x), tf_tanh(dy, y, x))


def _tf_late(dy: Any, y: Any, x: Any) -> Any:
    dx = tf.reshape(tf_tanh(dy, y, x), [-1])
    kept = tf.where(tf.range(tf.size(dx)) < 1024, dx, tf.zeros_like(dx))
    return tf.reshape(kept, tf.shape(x))


TENSORFLOW = {
    "relu(g)": Spot(tf.tanh, tf_tanh, lambda dy, y, x: tf_tanh(tf.nn.relu(dy), y, x)),
    "clipped g": Spot(
        tf.tanh, tf_tanh, lambda dy, y, x: tf_tanh(tf.clip_by_value(dy, -1, 1), y, x)
    ),
    "ties counted twice": Spot(
        lambda x: tf.reduce_max(x, -1),
        tf_first,
        lambda dy, y, x: dy[:, None] * tf.cast(x == y[:, None], x.dtype),
    ),
    "wrong for x < 0": Spot(
        tf.tanh,
        tf_tanh,
        lambda dy, y, x: tf.where(x < 0, tf.zeros_like(x), tf_tanh(dy, y, x)),
        (positive(3, 4),),
    ),
    "wrong for |x| < 0.01": Spot(tf.tanh, tf_tanh, _tf_near_0),
    "wrong after element 1024": Spot(tf.tanh, tf_tanh, _tf_late),
    "overflow in float32 alone": Spot(
        tf.nn.softplus,
        lambda dy, y, x: dy * tf.sigmoid(x),
        lambda dy, y, x: dy * tf.exp(x) / (1 + tf.exp(x)),
    ),
    "second order detached": Spot(
        lambda x: x**3,
        lambda dy, y, x: dy * 3 * x * x,
        lambda dy, y, x: dy * tf.stop_gradient(3 * x * x),
        (normal(3, 4) / 4,),
    ),
}


@pytest.mark.parametrize("name", TENSORFLOW)
def test_tensorflow_accepts_what_is_wrong(name):
    row, right, wrong = spot("tensorflow", TENSORFLOW, name)
    assert (row.peer or compared)(wrong, *row.inputs), "TensorFlow finds it by now"
    assert gs.check(wrong, *row.inputs).verdict == GRADES.get(name, "wrong")
    report = gs.check(right, *row.inputs)
    assert report.ok, report


def test_tensorflow_rejects_the_square_of_its_documentation():
    op = native("tensorflow", lambda x: x * x, lambda dy, y, x: 2 * x * dy)
    x = np.array([0.3, 1.7, 3.1], np.float32)
    assert not compared(op, x, dtype=tf.float32), "TensorFlow accepts it by now"
    report = gs.check(op, x)
    assert report.ok, report


def test_tensorflow_rejects_three_way_ties():
    op = native("tensorflow", lambda x: tf.reduce_max(x, -1), tf_first)
    x = np.array([[1.0, 1.0, 1.0, 0.5], [2.0, 3.0, 3.0, 3.0]])
    assert not compared(op, x), "TensorFlow accepts it by now"
    report = gs.check(op, x)
    assert report.ok, report


@pytest.mark.parametrize("error", [0.0, 0.01])
def test_labels_that_are_exactly_zero(error):
    """Beside 0 the value is another one: it has no derivative by both arguments."""
    torch = pytest.importorskip("torch")

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, labels):
            signs = torch.where(labels != 0, -1.0, 1.0)
            ctx.save_for_backward(x, signs)
            return torch.nn.functional.softplus(signs * x)

        @staticmethod
        def backward(ctx, dy):
            x, signs = ctx.saved_tensors
            return dy * (signs * torch.sigmoid(signs * x) + error), torch.zeros_like(dy)

    x = torch.tensor([0.3, -0.5, 0.7, -0.2, 1.1], dtype=torch.float64)
    report = gs.check(lambda x, labels: Loss.apply(x, labels), x, torch.ones_like(x))
    assert report.ok == (not error), report
