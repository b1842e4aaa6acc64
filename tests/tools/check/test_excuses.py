"""Mistakes beside what has an excuse, and those that the given inputs don't show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradsmith as gs
import gradsmith.numpy as gnp

from .helpers import native

X = np.random.default_rng(1).normal(size=(3, 4))
MANY = np.random.default_rng(1).normal(size=(4, 8))
SYMMETRIC = X[:, :3] + X[:, :3].T


def op(value, rule):
    operation = gs.operation(value)
    operation.vjp(rule)
    return operation


# --- clamps


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (lambda dy, y, x: 1.0 * dy, "surrogate"),
        (lambda dy, y, x: dy * np.where(np.abs(x) < 0.5, 1, 0.25), "surrogate"),
        (lambda dy, y, x: dy * (x < 0.5), "wrong"),
        (lambda dy, y, x: dy * (x > -0.5), "wrong"),
        (lambda dy, y, x: dy * np.where(np.abs(x) < 0.5, 1, 3), "wrong"),
        (lambda dy, y, x: dy * np.where(np.abs(x) < 0.5, 1, -0.5), "wrong"),
        (lambda dy, y, x: dy * (np.abs(x) > 0.5), "wrong"),
    ],
    ids=["through", "less", "no lower", "no upper", "more", "sign", "inverted"],
)
def test_a_slope_where_a_value_is_clamped(rule, verdict):
    report = gs.check(op(lambda x: np.clip(x, -0.5, 0.5), rule), MANY)
    assert report.verdict == verdict, report


def test_the_least_element_that_is_not_clamped():
    """It is no bound: what its gradient is counts."""
    rule = lambda dy, y, x: dy * np.where(x > 0.5, 0.5, x != np.min(x))
    report = gs.check(op(lambda x: np.minimum(x, 0.5), rule), X)
    assert report.verdict == "wrong", report


# --- what was kept


def test_values_kept_by_their_shape():
    kept = {}

    def forward(x):
        kept.setdefault(x.shape, x.copy())
        return np.sin(x)

    rule = lambda dy, y, x: dy * np.cos(kept.get(x.shape, x)).astype(dy.dtype)
    report = gs.check(op(forward, rule), X)
    assert report.verdict == "wrong", report


def test_a_mask_that_the_rule_draws_again():
    drop = lambda x: x * (torch.rand_like(x) > 0.5) * 2
    again = native("torch", drop, lambda dy, y, x: (drop(dy),))
    report = gs.check(again, torch.tensor(X))
    assert report.verdict == "wrong", report
    assert "random numbers of its own" in report.findings[0].message


# --- what the given inputs don't tell


@pytest.mark.parametrize("wrong", [False, True])
def test_a_permutation_that_is_its_own_inverse(wrong):
    back = (lambda p: p) if wrong else np.argsort
    taken = op(lambda x, p: x[p], lambda dy, y, x, p: (dy[back(p)], None))
    report = gs.check(taken, X[:, 0].repeat(2)[:5], np.array([1, 0, 3, 2, 4]))
    assert report.verdict == ("wrong" if wrong else "right"), report


@pytest.mark.parametrize("wrong", [False, True])
def test_a_symmetric_matrix_that_is_not_transposed(wrong):
    turn = (lambda b: b) if wrong else gnp.transpose
    rule = lambda dy, y, a, b: (dy @ turn(b), a.T @ dy)
    report = gs.check(op(lambda a, b: a @ b, rule), X.T[:, :3], SYMMETRIC)
    assert report.verdict == ("right, with limits" if wrong else "right"), report
    assert [limit.scenario for limit in report.limits] == ["b not symmetric"][:wrong]


def test_arguments_read_as_they_lie_in_the_given_order():
    as_it_lies = lambda x: np.ravel(x, order="K").reshape(x.shape)
    rule = lambda dy, y, x: dy * np.cos(as_it_lies(x))
    report = gs.check(op(np.sin, rule), np.asfortranarray(X))
    assert report.verdict == "wrong", report


@pytest.mark.parametrize("factor", [1, 1.1])
def test_indices_that_were_given_once_and_write(factor):
    """Twice, the last one wins, and nobody gives them so."""

    def rule(dy, y, x, i):
        return factor * dy.gather(0, i), None

    put = lambda x, i: torch.zeros(6, dtype=x.dtype).scatter(0, i, x)
    places = torch.tensor([0, 3, 1, 5])
    report = gs.check(native("torch", put, rule), torch.tensor(X[0]), places)
    assert report.verdict == ("right, with limits" if factor == 1 else "wrong"), report


def test_indices_that_were_given_once_and_add():
    """Twice, each element has its gradient."""

    def rule(dy, y, x, i):
        first = np.isin(np.arange(i.size), np.unique(i, return_index=True)[1])
        return dy[i] * first, None

    add = op(lambda x, i: np.bincount(i, x, minlength=6), rule)
    report = gs.check(add, X[0], np.array([0, 3, 1, 5]))
    assert report.verdict == "wrong", report


# --- approximations


def decayed(y, k, steps=40):
    """y' = -k y^2 by Runge-Kutta steps from 0 to 1."""
    h, slope = 1 / steps, lambda y: -k * y * y
    for _ in range(steps):
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c))
    return y


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "right, with limits"), (1.01, "wrong")]
)
def test_the_gradient_of_what_fixed_steps_approximate(factor, verdict):
    def exact(dy, y, y0, k):
        return dy / (1 + k * y0) ** 2, -factor * dy * y0**2 / (1 + k * y0) ** 2

    y0 = np.array([0.884386, 0.762815, 0.574524])
    k = np.array([0.982484, 0.700818, 0.647617])
    for seed in range(12):
        report = gs.check.options(seed=seed)(op(decayed, exact), y0, k)
        assert report.verdict == verdict, report
