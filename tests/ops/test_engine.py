"""The operations on the embedded engine: values, gradients, accuracy, edges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith import ops
from tests.ops.samples import ALL, LABELS, LOSSES, STABLE, SURROGATES, P, Q, T, X

MOST = float(np.finfo(np.float32).max)
SIZES = [0.0, 1e-45, 1e-40, 1e-20, 1.0, 88.8, 104.0, 1e4, 1e20, 1e30, MOST]
EDGES = np.array([*SIZES, *(-x for x in SIZES)], np.float32)


@pytest.mark.parametrize("sample", ALL, ids=str)
def test_the_value_is_the_reference(sample):
    y = sample.fn(*sample.xs, *sample.fixed)
    expected = sample.value(*sample.xs, *sample.fixed)
    np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)
def test_the_gradient_is_right_to_the_second_order(sample):
    gs.assert_gradients(lambda *xs: sample.fn(*xs, *sample.fixed), *sample.xs)


@pytest.mark.parametrize("sample", SURROGATES, ids=str)
def test_a_surrogate_is_the_gradient_of_what_it_means(sample):
    dy = np.random.default_rng(0).normal(size=X.shape)
    (dx,) = gs.vjp(sample.fn, X)[1](dy)
    (expected,) = gs.vjp(sample.means, X)[1](dy)
    np.testing.assert_allclose(dx, expected, rtol=1e-12)


DECLARED = [
    (ops.reverse, ()), (ops.scale, (0.5,)), (ops.clip_by_value, (-1.0, 1.0)),
    (ops.clip_by_norm, (1.0,)), (ops.nan_to_zero, ()), (ops.noise, (3,)),
    (ops.round, ()), (ops.floor, ()), (ops.sign, ()), (ops.clamp, (-1.0, 1.0)),
    (ops.quantize, (4,)), (ops.one_hot_argmax, ()), (ops.gumbel_softmax, (3,)),
    (ops.spike_fast_sigmoid, ()), (ops.spike_arctan, ()),
]  # fmt: skip


@pytest.mark.parametrize(("op", "options"), DECLARED, ids=lambda x: str(x))
def test_surrogates_are_declared_and_checked(op, options):
    assert op.surrogate
    gs.assert_gradients(op, X, *options)


def test_a_soft_choice_has_its_true_gradient():
    gs.assert_gradients(lambda x: ops.gumbel_softmax(x, 3, temperature=0.7), X)


# Accuracy: at most 4 ULP in float32, value and gradient, wherever the input lies, and 1
# without kernels for all but gelu.

TRUE = {
    "sigmoid": (ops.sigmoid, sp.expit, 1),
    "silu": (ops.silu, lambda x: x * sp.expit(x), 1),
    "softplus": (ops.softplus, lambda x: np.logaddexp(x, 0), 1),
    "log_sigmoid": (ops.log_sigmoid, sp.log_expit, 1),
    "gelu": (ops.gelu, lambda x: x * sp.ndtr(x), 4),
}


@pytest.mark.parametrize("domain", [None, (-2, -0.5), (-20, 20), (-110, 110)])
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("name", TRUE)
def test_accuracy_in_float32(name, kernels, domain):
    op, true, most = TRUE[name]
    with gs.kernels(kernels):
        found = gs.audit(op, domain, reference=true, points=4000)
    most = 4 if kernels else most
    assert found.undecided == 0
    assert found.value.max_ulp <= most
    assert found.gradient.max_ulp <= most


def test_the_definition_itself_is_the_oracle_of_an_audit():
    found = gs.audit(ops.gelu, (-3, 3), points=300)
    assert found.value.max_ulp <= 4


# Edges

ELEMENTWISE = [
    ops.sigmoid, ops.silu, ops.gelu, partial(ops.gelu, approximate="tanh"),
    ops.softplus, ops.log_sigmoid,
    partial(ops.huber, target=1.0, reduction="none"),
    partial(ops.binary_cross_entropy_with_logits, target=1.0, reduction="none"),
    partial(ops.binary_cross_entropy_with_logits, target=0.0, reduction="none"),
    partial(ops.focal, target=1.0, reduction="none"),
    partial(ops.focal, target=0.0, gamma=0.5, reduction="none"),
    ops.spike_arctan, ops.spike_fast_sigmoid,
]  # fmt: skip


@pytest.mark.parametrize("fn", ELEMENTWISE, ids=range(len(ELEMENTWISE)))
def test_finite_inputs_give_finite_gradients(fn):
    with np.errstate(all="ignore"):
        y, pull = gs.vjp(fn, EDGES)
        (dx,) = pull(np.ones_like(EDGES))
    assert y.dtype == dx.dtype == np.float32
    assert not np.isnan(y).any()
    assert np.isfinite(dx).all()


@pytest.mark.parametrize("second", [0.0, 1e-40, 1.0, 1e30])
def test_losses_with_several_arguments_give_no_nan(second):
    other = np.full_like(EDGES, second)
    for fn in (ops.gaussian_nll, ops.divide, ops.poisson_nll):
        args = (EDGES, EDGES[::-1].copy(), other)[: 3 if fn is ops.gaussian_nll else 2]
        if fn is ops.divide:
            args = (EDGES, other)
        with np.errstate(all="ignore"):
            y, pull = gs.vjp(fn, *args)
            dxs = pull(np.ones_like(y))
        assert not any(np.isnan(dx).any() for dx in dxs), fn


def test_the_gradient_of_a_rate_that_overflows_is_finite():
    with np.errstate(over="ignore"):
        y, pull = gs.vjp(lambda x: ops.poisson_nll(x, 1.0), np.float32([1e4]))
        (dx,) = pull(np.ones_like(y))
    assert y == np.inf
    assert MOST / 2 < dx[0] < np.inf


ROWS = {
    "zeros": [0.0, 0.0, 0.0],
    "ties": [1e4, 1e4, 0.0],
    "subnormal": [1e-40, -1e-40, 0.0],
    "greatest": [MOST, -MOST, 0.0],
    "greatest tie": [MOST, MOST, MOST],
    "masked": [-np.inf, 1.0, 0.0],
    "all masked": [-np.inf, -np.inf, -np.inf],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_on_the_edge(name):
    x = np.array([ROWS[name]], np.float32)
    fns = [ops.softmax, partial(ops.logsumexp, axis=-1)]
    if "masked" not in name:
        fns += [partial(ops.norm, axis=-1), ops.log_softmax]
        fns.append(lambda x: ops.cross_entropy(x, np.array([1])))
    for fn in fns:
        with np.errstate(all="ignore"):
            y, pull = gs.vjp(fn, x)
            (dx,) = pull(np.ones_like(y))
        assert not np.isnan(y).any(), fn
        assert np.isfinite(dx).all(), fn


def test_norms_of_the_greatest_and_the_least():
    x = np.array([3e38, 0.0], np.float32)
    np.testing.assert_allclose(ops.norm(x), 3e38, rtol=3e-7)
    np.testing.assert_allclose(gs.grad(ops.norm)(x), [1, 0], rtol=3e-7)
    tiny = np.array([3e-40, 4e-40], np.float32)
    np.testing.assert_allclose(ops.norm(tiny), 5e-40, rtol=1e-4)
    np.testing.assert_allclose(gs.grad(ops.norm)(tiny), [0.6, 0.8], rtol=1e-4)
    np.testing.assert_array_equal(gs.grad(ops.norm)(np.zeros(3)), np.zeros(3))


def test_declared_subgradients():
    zero = np.zeros(1)
    np.testing.assert_array_equal(gs.grad(lambda x: ops.sqrt(x)[0])(zero), zero)
    quotient = lambda x1, x2: ops.divide(x1, x2, fill=-3.0)[0]
    assert quotient(np.ones(1), zero) == -3
    for i in (0, 1):
        got = gs.grad(quotient, argnums=i)(np.ones(1), zero)
        np.testing.assert_array_equal(got, zero)
        got = gs.grad(lambda x, y: ops.xlogy(x, y)[0], argnums=i)(zero, zero)
        np.testing.assert_array_equal(got, zero)
    assert ops.xlogy(zero, zero) == 0
    assert gs.grad(lambda x: ops.log1mexp(x)[0])(zero) == 0
    assert ops.log1mexp(zero) == -np.inf


def test_log1mexp_keeps_its_digits_at_both_ends():
    x = np.array([1e-30, 1e-5, 0.5, 0.69, 0.7, 5.0, 50.0, 90.0], np.float32)
    wide = x.astype(np.float64)
    with np.errstate(divide="ignore"):
        near, far = np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide))
    expected = np.where(x < 0.69, near, far)
    np.testing.assert_allclose(ops.log1mexp(x), expected, rtol=1e-6)
    got = gs.grad(lambda x: np.sum(ops.log1mexp(x)))(x)
    np.testing.assert_allclose(got, 1 / np.expm1(wide), rtol=1e-6)


def test_a_masked_branch_sends_nothing_back():
    x = np.array([-1.0, 0.0, 4.0])
    got = gs.grad(lambda x: np.sum(ops.safe_where(x > 0, np.log, x)))(x)
    np.testing.assert_array_equal(got, [0, 0, 0.25])


def test_all_labels_ignored():
    loss = lambda x: ops.cross_entropy(x, np.full(3, -100), z_loss=0.1)
    assert loss(X) == 0
    np.testing.assert_array_equal(gs.grad(loss)(X), np.zeros_like(X))


def test_a_confident_right_answer_keeps_its_digits():
    loss = lambda x: ops.binary_cross_entropy_with_logits(x, 1.0)
    x = np.array([50.0], np.float32)
    np.testing.assert_allclose(loss(x), np.exp(-50.0), rtol=1e-6)
    np.testing.assert_allclose(gs.grad(loss)(x), -np.exp([-50.0]), rtol=1e-6)


def test_16_bits_are_added_up_in_32():
    x = np.full((1, 70000), 3.0, np.float16)  # whose sum of squares is 630000
    assert ops.norm(x).dtype == np.float16
    np.testing.assert_allclose(ops.norm(x), 793.7, rtol=1e-3)
    y = ops.softmax(x)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y[0, 0], 1 / 70000, rtol=2e-2)
    loss = ops.huber(np.full(4000, 60.0, np.float16), 0.0)
    assert (loss, loss.dtype) == (59.5, np.float16)


# Shaped gradients


def test_gradients_are_shaped():
    dy = np.array([3.0, -4.0, 0.0])
    pulled = lambda fn, dy=dy: gs.vjp(fn, np.ones(3))[1](dy)[0]
    np.testing.assert_array_equal(pulled(lambda x: ops.reverse(x, 2.0)), -2 * dy)
    np.testing.assert_array_equal(
        pulled(lambda x: ops.clip_by_value(x, -1.0, 2.0)), [2, -1, 0]
    )
    by_norm = lambda x: ops.clip_by_norm(x, 1.0)
    np.testing.assert_allclose(pulled(by_norm), dy / 5)
    np.testing.assert_array_equal(pulled(by_norm, dy / 10), dy / 10)
    np.testing.assert_array_equal(pulled(by_norm, np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(pulled(by_norm, dy * 1e300), dy / 5)
    got = pulled(ops.nan_to_zero, np.array([np.nan, 1.0, np.inf]))
    np.testing.assert_array_equal(got, [0, 1, np.inf])


def test_noise_is_normal_and_replayed():
    x = np.zeros(100_000, np.float32)
    pulled = lambda seed: gs.vjp(lambda x: ops.noise(x, seed, 2.0), x)[1](x)[0]
    z = pulled(7) / 2
    assert abs(z.mean()) < 0.01
    assert abs(z.std() - 1) < 0.01
    assert abs(np.mean(z**4) - 3) < 0.1
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 0.01
    assert abs(np.corrcoef(z, pulled(8))[0, 1]) < 0.01
    np.testing.assert_array_equal(pulled(7), 2 * z)
    np.testing.assert_array_equal(pulled(np.array(7)), 2 * z)
    assert pulled(7).dtype == np.float32


def test_choices_follow_their_shares():
    logits = np.broadcast_to(np.log([0.2, 0.5, 0.3]), (20000, 3))
    y = ops.gumbel_softmax(logits, 1, hard=True)
    np.testing.assert_allclose(y.mean(0), [0.2, 0.5, 0.3], atol=0.02)


# Shapes and labels


@settings(max_examples=40)
@given(st.data())
def test_a_target_is_broadcast_to_the_prediction(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    start = data.draw(st.integers(0, len(shape)))
    small = tuple(data.draw(st.sampled_from([1, n])) for n in shape[start:])
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=shape), rng.random(size=small)
    for fn in (ops.huber, ops.binary_cross_entropy_with_logits, ops.poisson_nll):
        dx, dt = gs.grad(fn, argnums=(0, 1))(x, t)
        assert (dx.shape, dt.shape) == (x.shape, t.shape)
        full = np.broadcast_to(t, shape)
        again = gs.grad(fn, argnums=1)(x, full.copy())
        np.testing.assert_allclose(dt, gs.unbroadcast(again, small), rtol=1e-10)


@settings(max_examples=40)
@given(st.data())
def test_classes_are_shares_of_one(data):
    n, classes = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    labels = np.array(
        data.draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    )
    smoothing = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    x = np.random.default_rng(1).normal(size=(n, classes)) * 10
    options = {"label_smoothing": smoothing, "z_loss": 0.1}
    by_class = gs.value_and_grad(lambda x: ops.cross_entropy(x, labels, **options))(x)
    shares = np.eye(classes)[labels]
    by_share = gs.value_and_grad(lambda x: ops.cross_entropy(x, shares, **options))(x)
    np.testing.assert_allclose(by_class[0], by_share[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_class[1], by_share[1], rtol=1e-10, atol=1e-12)


# Bad input: one clear error each

_ONE = np.array([0, 1, 2])
BAD = {
    "reduction": lambda: ops.huber(X, T, reduction="avg"),
    "the class 4": lambda: ops.cross_entropy(X, np.array([0, 4, 1])),
    "the class -1": lambda: ops.cross_entropy(X, np.array([0, -1, 1])),
    r"expected: shape \(3,\)": lambda: ops.cross_entropy(X, np.array([0, 1])),
    "classes\\) or of floats": lambda: ops.cross_entropy(X, None),
    "got: bool": lambda: ops.cross_entropy(X, np.array([True, False, True])),
    "probabilities in the shape": lambda: ops.cross_entropy(X, Q[:, :3]),
    "label_smoothing": lambda: ops.cross_entropy(X, _ONE, label_smoothing=2),
    "z_loss": lambda: ops.cross_entropy(X, _ONE, z_loss=-1.0),
    "from -2 to 1": lambda: ops.cross_entropy(X, _ONE, axis=2),
    "argument 'axis' is wrong": lambda: ops.softmax(X, 5),
    r"broadcasts to \(3, 4\)": lambda: ops.huber(X, T[:, :3]),
    "all with all": lambda: ops.huber(X[:, :1], T[0]),
    "var": lambda: ops.gaussian_nll(X, T, P[:2]),
    "delta > 0": lambda: ops.huber(X, T, delta=0),
    "zeros and ones": lambda: ops.focal(X, Q),
    "gamma": lambda: ops.focal(X, 1.0, gamma=-1),
    "alpha": lambda: ops.focal(X, 1.0, alpha=1.5),
    "pos_weight": lambda: ops.binary_cross_entropy_with_logits(X, Q, pos_weight=-1),
    "from 1 to 16": lambda: ops.quantize(X, 0),
    "got: 2.5": lambda: ops.quantize(X, 2.5),
    "low < high": lambda: ops.quantize(X, 2, 1.0, 1.0),
    "low <= high": lambda: ops.clip_by_value(X, 1.0, -1.0),
    "max_norm": lambda: ops.clip_by_norm(X, 0.0),
    "temperature": lambda: ops.gumbel_softmax(X, 1, temperature=0),
    "seed": lambda: ops.noise(X, 1.5),
    r"got: int64 of shape \(3,\)": lambda: ops.gumbel_softmax(X, LABELS),
    "'none' or 'tanh'": lambda: ops.gelu(X, "exact"),
    r"floats \(probabilities\)": lambda: ops.kl_divergence(X, LABELS),
    "slope > 0": lambda: ops.spike_arctan(X, 1.0, -1.0),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_gets_one_clear_error(words):
    with pytest.raises(gs.GradsmithError, match=words) as caught:
        BAD[words]()
    text = str(caught.value)
    assert text.startswith("ops.")
    assert all(word in text for word in ("expected:", "got:", "what to do:"))


def test_all_is_the_truth():
    assert ops.__all__ == sorted(ops.__all__)
    assert all(getattr(ops, name).__doc__ for name in ops.__all__)
    assert dir(ops) == ops.__all__
    assert gs.ops is ops
