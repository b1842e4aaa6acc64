"""The operations in TensorFlow, JAX and PyTorch are what they are in the engine."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from tests.frameworks.portable import ENGINE, FOREIGN
from tests.ops.samples import ALL, LABELS, LOSSES, STABLE, P, Q, X

# PyTorch's own, while it compiles
pytestmark = pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")
EACH = pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)


@pytest.fixture(scope="module", autouse=True)
def in_64_bits():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def _weighted(framework, sample):
    """A scalar of the operation: its value times weights that are all different."""
    fixed = [framework.array(x) for x in sample.fixed]
    shape = np.shape(sample.fn(*sample.xs, *sample.fixed))
    weights = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    weights = framework.array(weights)
    return lambda *xs: gnp.sum(sample.fn(*xs, *fixed) * weights)


@cache
def _by_engine(sample):
    loss = _weighted(ENGINE, sample)
    return loss(*sample.xs), ENGINE.gradients(loss, *sample.xs)


def _close(framework, got, expected):
    np.testing.assert_allclose(framework.plain(got), expected, rtol=1e-9, atol=1e-12)


@pytest.fixture
def fresh_compiler():
    """PyTorch compiles a function for few closures, and then no more."""
    import torch

    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
@EACH
@pytest.mark.parametrize("sample", ALL, ids=str)
def test_value_and_compiled_gradient_are_the_engines(framework, sample):
    value, gradients = _by_engine(sample)
    loss, xs = _weighted(framework, sample), [*map(framework.array, sample.xs)]
    _close(framework, framework.quickly(loss)(*xs), value)
    for got, expected in zip(
        framework.compiled_gradients(loss)(*xs), gradients, strict=True
    ):
        _close(framework, got, expected)


@EACH
@pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)
def test_forward_mode_is_the_transpose(framework, sample):
    _, gradients = _by_engine(sample)
    xs = [*map(framework.array, sample.xs)]
    dxs = [np.sin(np.arange(x.size)).reshape(x.shape) for x in sample.xs]
    loss = _weighted(framework, sample)
    tangent = framework.quickly(lambda xs, dxs: framework.tangent(loss, xs, dxs))
    expected = sum(np.sum(dx * g) for dx, g in zip(dxs, gradients, strict=True))
    got = tangent(xs, [*map(framework.array, dxs)])
    np.testing.assert_allclose(framework.plain(got), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)
def test_torch_agrees_with_differences_to_the_second_order(sample):
    torch = FOREIGN[2]
    fixed = [torch.array(x) for x in sample.fixed]
    fn = lambda *xs: sample.fn(*xs, *fixed)
    gs.assert_gradients(fn, *map(torch.array, sample.xs))


@EACH
@pytest.mark.parametrize("name", ["gelu", "cross_entropy-all", "norm-axis"])
def test_second_order_is_the_engines(framework, name):
    (sample,) = [each for each in ALL if str(each) == name]
    direction = np.cos(np.arange(sample.xs[0].size)).reshape(sample.xs[0].shape)

    def second(framework):
        loss, v = _weighted(framework, sample), framework.array(direction)
        along = lambda x: gnp.sum(framework.gradients(loss, x)[0] * v)
        grad = lambda x: framework.gradients(along, x)[0]
        return framework.quickly(grad)(framework.array(sample.xs[0]))

    _close(framework, second(framework), second(ENGINE))


@pytest.mark.usefixtures("fresh_compiler")
@EACH
@pytest.mark.parametrize("label", [-1, -8, 9])
def test_a_label_that_is_no_class_is_never_the_last_one(framework, label):
    """Compiled code can't look at labels before: it raises, or the loss is NaN."""
    x = framework.array(np.eye(4, 8))
    labels = framework.array(np.array([0, label, 2, 3]), "int32")
    loss = framework.compiled(lambda x, labels: ops.cross_entropy(x, labels))
    raises = framework.name in ("tensorflow", "torch")
    refused = pytest.raises(Exception, match=r"bounds|is not in \[0, 8\)")
    with refused if raises else nullcontext():
        assert np.isnan(framework.plain(loss(x, labels)))


@EACH
def test_randomness_is_the_same_everywhere(framework):
    def drawn(framework, dtype):
        x = framework.array(np.zeros((5, 7), dtype))
        grad = lambda seed: framework.gradients(
            lambda x: gnp.sum(ops.noise(x, seed, 2.0)), x
        )[0]
        by_number = framework.plain(grad(12))
        by_array = framework.plain(grad(framework.array(np.array(12, np.int32))))
        np.testing.assert_array_equal(by_number, by_array)
        choice = framework.compiled(lambda x: ops.gumbel_softmax(x, 12, hard=True))
        return by_number, framework.plain(choice(x))

    noise, choice = drawn(framework, np.float32)
    expected_noise, expected_choice = drawn(ENGINE, np.float32)
    np.testing.assert_allclose(noise, expected_noise, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(choice, expected_choice)


@EACH
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_stay(framework, dtype):
    x = gnp.astype(framework.array(X.astype(np.float32)), dtype)
    p = gnp.astype(framework.array(P.astype(np.float32)), dtype)
    labels = framework.array(LABELS)
    fns = [
        ops.sigmoid, ops.silu, ops.gelu, ops.softplus, ops.log_sigmoid, ops.softmax,
        ops.log_softmax, ops.logsumexp, ops.norm, ops.round, ops.one_hot_argmax,
        ops.spike_arctan, lambda x: ops.quantize(x, 4), lambda x: ops.noise(x, 1),
        lambda x: ops.clip_by_norm(x, 1.0), lambda x: ops.gumbel_softmax(x, 1),
        lambda x: ops.cross_entropy(x, labels, label_smoothing=0.1, z_loss=0.1),
        lambda x: ops.huber(x, p), lambda x: ops.gaussian_nll(x, p, p),
        lambda x: ops.binary_cross_entropy_with_logits(x, 1.0),
        lambda x: ops.xlogy(x, p), lambda x: ops.divide(x, p),
    ]  # fmt: skip
    for fn in fns:
        y = fn(x)
        (dx,) = framework.gradients(lambda x, fn=fn: gnp.sum(fn(x)), x)
        assert (y.dtype, dx.dtype) == (x.dtype, x.dtype), fn


@EACH
def test_edges_of_float32(framework):
    most = float(np.finfo(np.float32).max)
    numbers = np.array([0, 1e-40, 88.8, 1e4, 1e30, most], np.float32)
    numbers = framework.array(np.concatenate([numbers, -numbers]))
    rows = np.array([[0, 0, 0], [most, -most, 0], [1e4, 1e4, 0]], np.float32)
    masked = np.array([[-np.inf] * 3, [-np.inf, 1, 0]], np.float32)
    labels = framework.array(np.array([1, 1, -100]))
    fns = [
        *[(fn, numbers) for fn in (ops.sigmoid, ops.silu, ops.gelu, ops.softplus)],
        (ops.log_sigmoid, numbers),
        (lambda x: ops.gelu(x, "tanh"), numbers),
        (lambda x: ops.safe_where(x > 0, gnp.sqrt, x), numbers),
        (lambda x: ops.binary_cross_entropy_with_logits(x, 1.0), numbers),
        (lambda x: ops.focal(x, 1.0, gamma=0.5, reduction="none"), numbers),
        *[(fn, framework.array(rows)) for fn in (ops.log_softmax, ops.logsumexp)],
        (lambda x: ops.norm(x, -1), framework.array(rows)),
        (lambda x: ops.cross_entropy(x, labels), framework.array(rows)),
        *[(fn, framework.array(masked)) for fn in (ops.softmax, ops.logsumexp)],
    ]
    for fn, x in fns:
        y = framework.plain(fn(x))
        (dx,) = framework.gradients(lambda x, fn=fn: gnp.sum(fn(x)), x)
        assert not np.isnan(y).any(), (fn, y)
        assert np.isfinite(framework.plain(dx)).all(), (fn, dx)


@pytest.mark.usefixtures("fresh_compiler")
@EACH
def test_a_variance_is_held_before_its_logarithm_is_taken(framework):
    variances = np.array([-1.0, 0.0, 1e-9, 1e-6, 2.0, np.nan], np.float32)
    loss = lambda v: ops.gaussian_nll(0 * v, 0 * v + 1, v, reduction="none")
    got = framework.compiled(loss)(framework.array(variances))
    expected = loss(variances)
    np.testing.assert_allclose(framework.plain(got), expected, rtol=4e-7)
    assert np.isnan(expected).tolist() == [False] * 5 + [True]
    x = framework.array(np.ones(3, np.float32))
    with_eps = lambda v, eps: ops.gaussian_nll(x, 0 * x, v, eps=eps)
    got = framework.compiled(with_eps)(0 * x, x / 2)  # an array, too
    np.testing.assert_allclose(framework.plain(got), 1 + np.log(np.pi) / 2, rtol=4e-7)


@EACH
def test_labels_are_looked_at_where_they_can_be(framework):
    x = framework.array(X)
    for labels in ([0, 4, 1], [0, -1, 1]):
        with pytest.raises(gs.GradsmithError, match="expected: classes from 0 to 3"):
            ops.cross_entropy(x, framework.array(np.array(labels)))
    with pytest.raises(gs.GradsmithError, match="shape"):
        ops.cross_entropy(x, framework.array(Q[:2]))
    loss = lambda x, labels: ops.cross_entropy(x, labels)
    y = framework.compiled(loss)(x, framework.array(LABELS))
    np.testing.assert_allclose(framework.plain(y), ops.cross_entropy(X, LABELS))


def test_a_batch_of_open_length():
    tf = FOREIGN[0].module

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 4], tf.float64),
            tf.TensorSpec([None], tf.int64),
        ]
    )
    def run(x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.cross_entropy(x, labels, label_smoothing=0.1)
            y += gnp.sum(ops.noise(ops.one_hot_argmax(ops.gelu(x)), 3))
            y += ops.huber(ops.softmax(x), 0.5) + gnp.sum(ops.norm(x, -1))
        return tape.gradient(y, x)

    got = run(tf.constant(X), tf.constant(LABELS))
    loss = lambda x: (
        ops.cross_entropy(x, LABELS, label_smoothing=0.1)
        + gnp.sum(ops.noise(ops.one_hot_argmax(ops.gelu(x)), 3))
        + ops.huber(ops.softmax(x), 0.5)
        + gnp.sum(ops.norm(x, -1))
    )
    np.testing.assert_allclose(got.numpy(), gs.grad(loss)(X), rtol=1e-6)


def test_vmap_and_a_step_as_the_seed():
    jax = FOREIGN[1].module
    step = jax.jit(lambda x, i: jax.grad(lambda x: gnp.sum(ops.noise(x, i)))(x))
    first, second = (step(jax.numpy.zeros(4), i) for i in (1, 2))
    assert not np.allclose(first, second)
    batched = jax.vmap(jax.grad(lambda x: gnp.sum(ops.softmax(x)[..., 0])))(X)
    np.testing.assert_allclose(
        batched, gs.grad(lambda x: np.sum(ops.softmax(x)[..., 0]))(X), rtol=1e-9
    )
