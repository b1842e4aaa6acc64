"""How public packages write gradients: right ones are called right, for all that."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.check import first_order
from gradsmith.tools.check.budget import OutOfTimeError

X = np.random.default_rng(0).normal(size=(4, 5))
SYMMETRIC = X @ X.T - 4 * np.eye(4)


def op(value, rule):
    operation = gs.operation(value)
    operation.vjp(rule)
    return operation


# --- bounds that are arguments


def bounded(x, low, high):
    return np.maximum(np.minimum(x, high), low)


def within_bounds(dy, y, x, low, high):
    above, below = x > low, x < high
    return dy * above * below, np.sum(dy * ~above), np.sum(dy * ~below)


@pytest.mark.parametrize(("low", "high"), [(-0.7, 0.9), (0.2, 0.9)])
def test_bounds_in_the_order_that_was_given(low, high):
    report = gs.check(op(bounded, within_bounds), X, np.array(low), np.array(high))
    assert report.verdict == "right, with limits", report
    assert "high" in str(report)


def test_bounds_in_the_other_order_if_they_were_given_so():
    report = gs.check(op(bounded, within_bounds), X, np.array(0.9), np.array(0.2))
    assert report.verdict == "wrong", report


# --- a weight of ones, a small number in the denominator


MOST = 120


def attention(small):
    """Each row of q attends to the keys before it, and to itself."""

    def weights(q, k):
        scores = np.where(np.tri(len(q)) > 0, np.exp(q @ k.T), 0.0)
        return scores / np.sum(scores, -1, keepdims=True)

    def value(q, k, v, mask):
        if len(q) > MOST:
            raise ValueError("too long")  # or the check takes its time
        return (weights(q, k) * mask) @ v

    def rule(dy, y, q, k, v, mask):
        p = weights(q, k)
        dp = dy @ v.T
        ds = p / (1 + small) * (dp * mask - np.sum(dp * mask * p, -1, keepdims=True))
        ds = ds + small * p * dp * mask
        return ds @ k, ds.T @ q, (p * mask).T @ dy, np.sum(p * dp, axis=0)

    return op(value, rule)


@pytest.mark.parametrize("rows", [4, MOST])
@pytest.mark.parametrize(("small", "verdict"), [(1e-10, "right"), (1e-2, "wrong")])
def test_a_small_number_in_the_denominator(rows, small, verdict):
    """Of the first row the derivative is zero, and what is left of 1e-10 is not."""
    random = np.random.default_rng(1)
    q, k, v = (random.normal(size=(rows, 3)).astype(np.float32) for _ in range(3))
    report = gs.check(attention(small), q, k, v, np.ones(rows, np.float32))
    assert report.verdict.value.split(",")[0] == verdict, report


def by_its_weight(x, w):
    return np.sum(w * x**2) / np.sum(w)


def quotient_rule(dy, y, x, w):
    total = np.sum(w)
    if total == 0:  # the value is defined as zero there
        return 0 * x, 0 * w
    return dy * 2 * w * x / total, dy * (x**2 - y) / total


def test_ones_are_no_reason_to_make_all_arguments_zero():
    mean = op(
        lambda x, w: by_its_weight(x, w) if np.any(w) else np.sum(x + w),
        quotient_rule,
    )
    report = gs.check(mean, X[0], np.ones(5))
    assert report.verdict == "right, with limits", report
    assert gs.check(mean, X[0], np.zeros(5)).verdict == "wrong"


# --- clamped values


LIMIT = 1 - 1e-6


def clamped_atanh(x):
    return np.arctanh(np.clip(x, -LIMIT, LIMIT))


def test_what_is_clamped_to_its_domain_is_judged_inside():
    inverse = op(
        clamped_atanh, lambda dy, y, x: dy / (1 - np.clip(x, -LIMIT, LIMIT) ** 2)
    )
    x = np.random.default_rng(2).uniform(-0.9, 0.9, 8)
    report = gs.check(inverse, x)
    assert report.verdict == "right, with limits", report
    assert gs.check(inverse, 2 * x).verdict == "wrong"  # given beyond, too


def slope_outside(dy, y, x):
    return dy * np.where((x > 0) & (x < 3), 1.0, np.exp(-((2 * x / 3 - 1) ** 2)))


def test_a_clamp_with_a_slope_of_its_own_outside():
    x = np.random.default_rng(3).uniform(-3, 6, (3, 5))
    report = gs.check(op(lambda x: np.clip(x, 0, 3), slope_outside), x)
    assert report.verdict == "surrogate", report
    assert "the gradient is not zero where it is" in str(report)
    twice = op(lambda x: np.clip(x, 0, 3), lambda *args: 2 * slope_outside(*args))
    assert gs.check(twice, x).verdict == "wrong"


def test_a_single_number_is_not_clamped():
    wrong = op(lambda x: np.clip(np.exp(x), 0, 99), lambda dy, y, x: 1.1 * dy * y)
    assert gs.check(wrong, np.array(0.5)).verdict == "wrong"


# --- symmetric matrices


def eigenvectors(a):
    w, v = np.linalg.eigh((a + a.T) / 2)
    return w, v * np.sign(v[0])


def not_symmetric(dy, y, a):
    """Right along symmetric directions; nothing makes it symmetric."""
    (dw, dv), (w, v) = dy, y
    gaps = w - w[:, None] + np.eye(len(w))
    return v @ (np.diag(dw) + (1 / gaps - np.eye(len(w))) * (v.T @ dv)) @ v.T


@pytest.mark.parametrize(("factor", "verdict"), [(1, "right"), (1.001, "wrong")])
def test_the_symmetric_part_of_a_matrix(factor, verdict):
    rule = lambda dy, y, a: factor * not_symmetric(dy, y, a)
    report = gs.check(op(eigenvectors, rule), SYMMETRIC)
    assert report.verdict.value.split(",")[0] == verdict, report


def powers(a):
    """Of a symmetric matrix the powers; of another something else."""
    return np.array([np.trace(a), np.sum(a * a), np.trace(a @ a @ a)])


def of_symmetric(dy, y, a):
    return (
        dy[0] * np.eye(len(a))
        + 2 * dy[1] * a.T
        + 3 * dy[2] * np.tril(a @ a) * (2 - np.eye(len(a)))
    )


def test_right_along_symmetric_directions():
    report = gs.check(op(powers, of_symmetric), SYMMETRIC)
    assert report.verdict == "right, with limits", report
    assert "in which a stays symmetric" in str(report)


def test_right_along_symmetric_directions_if_no_time_is_left(monkeypatch):
    def explain(*args):
        raise OutOfTimeError

    monkeypatch.setattr(first_order, "explain", explain)
    report = gs.check(op(powers, of_symmetric), SYMMETRIC)
    assert report.verdict == "right, with limits", report


def test_a_transposed_gradient_of_a_symmetric_matrix_is_wrong():
    product = op(lambda a, x: a @ x, lambda dy, y, a, x: (np.outer(x, dy), a.T @ dy))
    report = gs.check(product, SYMMETRIC, X[:, 0].copy())
    assert report.verdict == "wrong", report
    assert report.findings[0].diagnosis == "transposed"


# --- what the report says


def test_advice_for_what_is_not_linear_fits_the_framework():
    torch = pytest.importorskip("torch")

    class State(torch.autograd.Function):  # hands its state on as a gradient
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return dy + 1

    report = gs.check(State.apply, torch.tensor([0.5, -1.0, 2.0]))
    assert report.verdict == "wrong"
    assert "gradsmith_ignore" in str(report)
    assert "custom_gradient" not in str(report)


def test_a_repair_names_axes_or_none():
    rows = op(lambda x: x**2, lambda dy, y, x: 2 * x * dy + 1e-3 * np.sum(dy * x))
    report = gs.check(rows, X[0])
    assert report.verdict == "wrong"
    assert "axis  of" not in str(report)
