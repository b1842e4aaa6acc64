"""What users give: numbers, two dtypes, NumPy's scalars, empty arrays, extremes."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

X = np.array([1.0, 2.0], np.float32)


def by_numpy(f, *args):
    return gs.grad(lambda *args: np.sum(f(*args)), tuple(range(len(args))))(*args)


def by_torch(f, *args):
    torch = pytest.importorskip("torch")
    args = [torch.tensor(x, requires_grad=True) for x in args]
    return torch.autograd.grad(f(*args).sum(), args, allow_unused=True)


def by_jax(f, *args):
    jax = pytest.importorskip("jax")
    gradient = jax.grad(lambda *args: f(*args).sum(), tuple(range(len(args))))
    return jax.jit(gradient)(*args)


def by_tensorflow(f, *args):
    tf = pytest.importorskip("tensorflow")
    args = [tf.constant(x) for x in args]
    with tf.GradientTape() as tape:
        tape.watch(args)
        y = f(*args)
    return tape.gradient(y, args)


FRAMEWORKS = (by_numpy, by_torch, by_jax, by_tensorflow)


@pytest.mark.parametrize("derived", FRAMEWORKS)
def test_one_operand_may_be_a_number(derived):
    cases = [
        (lambda x: ops.divide(2.0, x), -2 / X**2),
        (lambda x: ops.divide(x, 2.0), [0.5, 0.5]),
        (lambda x: ops.xlogy(2.0, x), 2 / X),
        (lambda x: ops.xlogy(x, 2.0), np.log([2.0, 2.0])),
    ]
    for f, expected in cases:
        (found,) = derived(f, X)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize("derived", FRAMEWORKS)
@pytest.mark.parametrize("op", [ops.divide, ops.xlogy])
def test_two_dtypes_give_each_its_own_gradient(derived, op):
    half = X.astype(np.float16)
    found = [np.asarray(x) for x in derived(op, half, X)]
    assert [x.dtype for x in found] == [np.float16, np.float32]
    expected = by_numpy(op, X, X)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("derived", FRAMEWORKS)
def test_an_option_that_is_an_array(derived):
    strength = np.array(2.0, np.float32)
    found = derived(lambda x, s: ops.reverse(x, s), X, strength)
    np.testing.assert_array_equal(np.asarray(found[0]), [-2, -2])
    assert found[1] is None or np.asarray(found[1]) == 0


@pytest.mark.parametrize("op", [ops.gumbel_softmax, ops.one_hot_argmax])
def test_a_temperature_has_a_gradient(op):
    x, t, h = np.array([0.3, 1.0, -0.5]), np.array(1.5), 1e-6
    weights = np.array([1.0, 2.0, 4.0])
    option = {"seed": 3} if op is ops.gumbel_softmax else {"axis": -1}

    def loss(t):
        return np.sum(weights * op(x, temperature=t, **option))

    soft = loss if op is ops.gumbel_softmax else lambda t: weights @ ops.softmax(x / t)
    expected = (soft(t + h) - soft(t - h)) / (2 * h)
    assert gs.grad(loss)(t) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "op", [ops.sigmoid, ops.silu, ops.softplus, ops.log_sigmoid, ops.log1mexp, ops.gelu]
)
def test_scalars_of_numpy_keep_their_dtype(op):
    assert gs.grad(op)(np.float32(1)).dtype == np.float32
    assert gs.grad(lambda x: op(np.sum(x)))(X).dtype == np.float32


def test_whole_numbers_of_numpy_are_whole_numbers():
    np.testing.assert_array_equal(ops.softmax(X, np.int64(0)), ops.softmax(X, 0))
    np.testing.assert_array_equal(ops.quantize(X, np.int64(3)), ops.quantize(X, 3))
    np.testing.assert_array_equal(ops.noise(X, np.int64(3)), X)


SEEDS = (0, -1, 5, 2**40 + 5, -(2**40), 2**31)


def test_seeds_differ_and_are_the_same_as_arrays():
    x = np.zeros(4)
    found = [ops.gumbel_softmax(x, seed) for seed in SEEDS]
    assert len({row.tobytes() for row in found}) == len(SEEDS)
    for seed, row in zip(SEEDS, found, strict=True):
        np.testing.assert_array_equal(ops.gumbel_softmax(x, np.array(seed)), row)
        if -(2**31) <= seed < 2**31:
            short = np.array(seed, np.int32)
            np.testing.assert_array_equal(ops.gumbel_softmax(x, short), row)


SHAPED = {
    "clip_by_norm": lambda x: ops.clip_by_norm(x, 1.0),
    "clip_by_value": lambda x: ops.clip_by_value(x, -1.0, 1.0),
    "nan_to_zero": ops.nan_to_zero,
    "noise": lambda x: ops.noise(x, 3),
}


@pytest.mark.parametrize("name", SHAPED)
def test_forward_mode_is_of_the_value(name):
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    f = SHAPED[name]
    np.testing.assert_array_equal(gs.jvp(f, (X,), (X,))[1], X)
    x = torch.tensor(X)
    np.testing.assert_array_equal(torch.func.jvp(f, (x,), (x,))[1], X)
    np.testing.assert_array_equal(jax.jvp(f, (X,), (X,))[1], X)


def test_empty_arrays():
    none = np.zeros(0)
    assert ops.norm(none) == 0
    assert ops.logsumexp(none) == -np.inf
    assert ops.softmax(np.zeros((2, 0))).shape == (2, 0)
    assert gs.grad(lambda x: np.sum(ops.clip_by_norm(x, 1.0)))(none).shape == (0,)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_norms_keep_their_digits_at_the_ends_of_float64(scale):
    x = np.array([3.0, 4.0]) * scale
    rel = 1e-2 if scale < 1e-308 else 1e-14
    assert ops.norm(x) == pytest.approx(5 * scale, rel=rel, abs=0)
    np.testing.assert_allclose(gs.grad(ops.norm)(x), [0.6, 0.8], rtol=rel)


def test_norms_of_rows_of_all_sizes_in_each_framework():
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    x = np.float32([[3e38, 0], [3e-30, 4e-30], [3, 4], [0, 0], [3e25, 4e25]])
    expected = [3e38, 5e-30, 5, 0, 5e25]
    slopes = [[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 0], [0.6, 0.8]]
    norm = lambda x: ops.norm(x, -1)
    np.testing.assert_allclose(norm(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(norm)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(ops.norm)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(norm(torch.tensor(x)), expected, rtol=1e-6)
    for derived in FRAMEWORKS:
        (found,) = derived(norm, x)
        np.testing.assert_allclose(np.asarray(found), slopes, rtol=1e-6)


def test_where_x_is_0_xlogy_is_too():
    y = np.array([-1.0, np.inf, 0.0, 2.0, np.nan])
    np.testing.assert_array_equal(ops.xlogy(np.zeros(5), y), [0, 0, 0, 0, np.nan])
    dx, dy = by_numpy(ops.xlogy, np.zeros(3), np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_allclose(dx, [0, 0, np.log(2)])
    np.testing.assert_array_equal(dy, [0, 0, 0])


def test_second_derivatives_of_gelu_far_out():
    x = np.array([1e20, -1e20, 1e200, 1.0])
    found = gs.hvp(lambda x: np.sum(ops.gelu(x)), (x,), (np.ones(4),))
    assert found[-1] == pytest.approx(np.exp(-0.5) / np.sqrt(2 * np.pi))
    np.testing.assert_array_equal(found[:-1], 0)


def test_second_derivatives_of_binary_cross_entropy_at_0():
    def loss(x):
        t = np.array([0.0, 0.3, 1.0])
        return np.sum(
            ops.binary_cross_entropy_with_logits(x, t, pos_weight=2.0, reduction="none")
        )

    found = gs.hvp(loss, (np.zeros(3),), (np.ones(3),))
    np.testing.assert_allclose(found, [0.25, 0.25 * 1.3, 0.5])


def test_losses_stay_in_range():
    certain = np.array([np.inf, -np.inf])
    truth = np.array([1.0, 0.0])
    assert ops.binary_cross_entropy_with_logits(certain, truth) == 0
    found = gs.grad(ops.binary_cross_entropy_with_logits)(certain, truth)
    np.testing.assert_array_equal(found, [0, 0])

    labels = np.array([0, -100])
    x = np.array([[1.0, 2.0], [np.nan, 1.0]])
    found = gs.grad(lambda x: ops.cross_entropy(x, labels))(x)
    np.testing.assert_array_equal(found[1], [0, 0])

    large = np.array([[1e20, 0.0]], np.float32)
    value = ops.cross_entropy(large, np.array([0]), z_loss=1e-4)
    assert value == pytest.approx(1e36, rel=1e-6)

    v = np.array([1e10], np.float32)
    far, zero = np.array([1e20], np.float32), np.zeros(1, np.float32)
    found = gs.grad(lambda v: ops.gaussian_nll(far, zero, v))(v)
    np.testing.assert_allclose(found, -5e19, rtol=1e-5)


def test_levels_stay_within_their_range():
    x = np.array([0.099], np.float32)
    twice = lambda x: gnp.sum(ops.quantize(ops.quantize(x, 2, 0.0, 0.1), 2, 0.0, 0.1))
    np.testing.assert_array_equal(gs.grad(twice)(x), [1])


def test_losses_of_lists_and_numbers():
    assert ops.huber([1.0, 3.0], [0.0, 0.0]) == pytest.approx(1.5)
    assert ops.huber(3.0, 0.0) == pytest.approx(2.5)
    assert ops.binary_cross_entropy_with_logits(0.0, 1.0) == pytest.approx(np.log(2))
    row = np.array([1.0, 3.0, 2.0])
    expected = np.log(np.sum(np.exp(row - 3)))
    assert ops.cross_entropy(row, np.argmax(row)) == pytest.approx(expected)
    with pytest.raises(gs.GradsmithError, match="'ignore_index' is wrong"):
        ops.cross_entropy(row, np.argmax(row), ignore_index=None)


def test_smoothing_over_classes_whose_number_a_graph_leaves_open():
    tf = pytest.importorskip("tensorflow")
    x, labels = np.float32([[1, 2], [3, 0], [0, 1]]), np.array([2, 0])

    def loss(x, labels):
        return ops.cross_entropy(x, labels, axis=0, label_smoothing=0.2)

    signature = [tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([2], tf.int64)]

    @tf.function(input_signature=signature)
    def gradient(x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x, labels)
        return tape.gradient(y, x)

    expected = gs.grad(lambda x: loss(x, labels))(x)
    np.testing.assert_allclose(gradient(x, labels), expected, rtol=1e-5)
