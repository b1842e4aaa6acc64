"""Gradients that are meant to be another one, and those of solvers and series."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

from .helpers import native

RANDOM = np.random.default_rng(0)
X = torch.tensor(RANDOM.normal(size=4))
POSITIVE = torch.tensor(RANDOM.uniform(0.5, 3.0, size=5))


# --- implicit sampling


def sampled(distribution):
    def sample(a):
        torch.manual_seed(3)
        return distribution(a).rsample()

    return sample


def gamma(a):
    return torch.distributions.Gamma(a, torch.ones_like(a))


@pytest.mark.parametrize(
    "distribution",
    [gamma, torch.distributions.Dirichlet, torch.distributions.StudentT],  # no mean
)
@pytest.mark.parametrize("seeded", [True, False])
def test_a_sample_by_rejection_is_right_on_average(distribution, seeded):
    op = sampled(distribution) if seeded else lambda a: distribution(a).rsample()
    report = gs.check(op, POSITIVE)
    assert report.verdict == "surrogate", report
    assert "right on average" in str(report)


def test_a_wrong_gradient_of_a_sample_is_wrong():
    wrong = native("torch", torch.clone, lambda dy, y, x: (dy * (0.5 + y),))
    op = lambda a: torch.sin(wrong.apply(sampled(gamma)(a)))
    assert gs.check(op, POSITIVE).verdict == "wrong"


def test_rounding_is_nothing_that_is_drawn():
    """A sum may be rounded differently for each element of a batch."""

    def body(x):
        rows = x.reshape(-1, x.shape[-1])
        places = torch.arange(len(rows), dtype=x.dtype)[:, None]
        return (torch.sin(rows) * (1 + 1e-15 * places)).reshape(x.shape)

    op = native("torch", body, lambda dy, y, x: (1.001 * dy * torch.cos(x),))
    report = gs.check(lambda x: op.apply(x), torch.tensor(RANDOM.normal(size=(3, 4))))
    assert report.verdict == "wrong", report


def by_place(x, *, backwards=False):
    """Another factor for each row."""
    rows = x.reshape(-1, x.shape[-1])
    factors = torch.linspace(1, 2, len(rows), dtype=x.dtype)[:, None]
    factors = factors.flip(0) if backwards else factors
    return (factors * torch.ones_like(rows)).reshape(x.shape)


@pytest.mark.parametrize("seed", range(3))
def test_what_differs_by_its_place_is_nothing_that_is_drawn(seed):
    """A rule with the factors of other rows is right on average over all rows."""
    rule = lambda dy, y, x: (dy * torch.cos(x) * by_place(x, backwards=True),)
    op = native("torch", lambda x: torch.sin(x) * by_place(x), rule)
    x = torch.tensor(RANDOM.normal(size=(3, 4)))
    report = gs.check.options(seed=seed)(lambda x: op.apply(x), x)
    assert report.verdict == "wrong", report


# --- approximations

NODES, WEIGHTS = map(torch.tensor, np.polynomial.legendre.leggauss(8))


def integral(a, b):
    """Of sin(x) from a to b, to 15 digits if they are near each other."""
    half, middle = (b - a) / 2, (a + b) / 2
    return half * (torch.sin(middle + half * NODES[:, None]) * WEIGHTS[:, None]).sum(0)


def test_a_quadrature_with_few_nodes_is_right_at_its_scale():
    rule = lambda dy, y, a, b: (-dy * torch.sin(a), dy * torch.sin(b))
    report = gs.check(native("torch", integral, rule), X, 2 - X)
    assert report.verdict == "right, with limits", report
    assert "first order" in [limit.what for limit in report.limits]
    for seed in range(4):
        report = gs.check.options(seed=seed)(native("torch", integral, rule), X, X + 1)
        assert report.verdict == "right, with limits", report


def test_a_mistake_in_a_region_is_no_approximation():
    def rule(dy, y, a, b):
        return -dy * torch.sin(a), dy * torch.where(b > 2.8, 1.01, 1.0) * torch.sin(b)

    report = gs.check(native("torch", lambda a, b: a.cos() - b.cos(), rule), X, 2 - X)
    assert report.verdict == "wrong", report


# --- in the author's words


class Natural(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, dy):
        """The natural gradient, in the other parameters."""
        (x,) = ctx.saved_tensors
        return dy * (1 + x * x)


class Relevance(torch.autograd.Function):
    """Layer-wise relevance propagation, for a product."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dy):
        return dy / 3 * ctx.saved_tensors[0]


@pytest.mark.parametrize(
    ("op", "words"),
    [(Natural, "natural gradient"), (Relevance, "relevance propagation")],
)
def test_the_code_says_so(op, words):
    report = gs.check(op, X)
    assert report.verdict == "surrogate", report
    assert f"its code calls it {words!r}" in str(report)


# --- solvers


def root(x, error=0.0):
    """y with y^3 + y = x by Newton's method to 8 digits, and an implicit rule."""

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.zeros_like(x)
            while torch.max(torch.abs(y**3 + y - x)) > 1e-8:
                y = y - 0.7 * (y**3 + y - x) / (3 * y**2 + 1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensors
            return dy * (1 + error) / (3 * y**2 + 1)

    return Root.apply(x)


def test_what_a_solver_leaves_is_a_limit():
    report = gs.check(root, X)
    assert report.verdict == "right, with limits", report
    assert "agrees to" in str(report)
    assert gs.check(lambda x: root(x, 1e-3), X).verdict == "wrong"


# --- what a rule is given beside the value


@pytest.mark.parametrize("connected", [False, True])
def test_an_argument_for_the_rule_alone(connected):
    """As a logarithm whose slope is that at a moving average."""

    class SlopeAt(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, average):
            ctx.save_for_backward(average)
            return torch.log(x)

        @staticmethod
        def backward(ctx, dy):
            (average,) = ctx.saved_tensors
            return dy / average, torch.zeros_like(average) if connected else None

    report = gs.check(SlopeAt, POSITIVE, POSITIVE.flip(0))
    assert report.verdict == "surrogate", report
    assert "the value does not depend on average" in str(report)


def test_an_argument_that_the_value_uses_is_not_for_the_rule_alone():
    wrong = native("torch", torch.mul, lambda dy, y, x, w: (dy * w * w, dy * x))
    assert gs.check(wrong, POSITIVE, X[:1]).verdict == "wrong"


def test_a_rule_that_says_what_it_leaves_out():
    class Fractional(torch.autograd.Function):
        """Lets gradients flow through unchanged: they are those of real space."""

        @staticmethod
        def forward(ctx, x):
            return x @ BOX

        @staticmethod
        def backward(ctx, dy):
            return dy

    report = gs.check(Fractional, torch.tensor(RANDOM.normal(size=(4, 3))))
    assert report.verdict == "surrogate", report


def test_a_rule_that_says_that_it_is_an_estimator():
    class Mask(torch.autograd.Function):
        """STE for the scores of a mask."""

        @staticmethod
        def forward(ctx, x, scores):
            return x * scores

        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    report = gs.check(Mask, POSITIVE, POSITIVE.flip(0))
    assert report.verdict == "surrogate", report


BOX = torch.tensor(2 * np.eye(3) + 0.3 * RANDOM.normal(size=(3, 3)))


# --- quantizers with a step that is learned


def quantizer(of_step):
    def rule(dy, y, x, s):
        q = x / s
        inside = (q > -8) & (q < 7)
        partial = torch.where(inside, torch.round(q) - q, torch.clamp(q, -8, 7))
        return dy * inside, of_step(dy * partial, s)

    value = lambda x, s: torch.clamp(torch.round(x / s), -8, 7) * s
    return native("torch", value, rule)


OF_CHANNELS = torch.tensor(RANDOM.normal(size=(4, 20))), torch.full((4, 1), 0.15)
OF_ALL = OF_CHANNELS[0], torch.tensor(0.15)


@pytest.mark.parametrize(
    ("of_step", "args", "verdict"),
    [
        (lambda d, s: d.sum(), OF_ALL, "surrogate"),
        (lambda d, s: d.sum() / 30, OF_ALL, "surrogate"),  # as Esser et al. do
        (lambda d, s: d.sum(-1, keepdim=True), OF_CHANNELS, "surrogate"),
        (lambda d, s: d.sum().expand(s.shape), OF_CHANNELS, "wrong"),
    ],
)
def test_the_step_of_a_quantizer(of_step, args, verdict):
    report = gs.check(quantizer(of_step).apply, *args)
    assert report.verdict == verdict, report
    if verdict == "surrogate":
        assert "right where both are scaled alike" in " ".join(str(report).split())


def test_a_wrong_rule_of_a_solver_is_not_tried_on_thousands_of_copies():
    rows = []

    def solve(x):
        rows.append(x.numel())
        return torch.sin(x)

    op = native("torch", solve, lambda dy, y, x: (1.3 * dy * torch.sin(x + 1),))
    assert gs.check(op, X).verdict == "wrong"
    assert max(rows) <= 64 * X.numel()


@pytest.mark.parametrize("seed", range(4))
def test_a_spike_whose_chance_hardly_depends_on_its_argument(seed):
    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.bernoulli(torch.sigmoid(x / 100))

        @staticmethod
        def backward(ctx, dy):
            return dy

    torch.manual_seed(seed)
    assert gs.check(Spike.apply, torch.linspace(-1, 1, 10)).verdict == "surrogate"


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_a_loop(seed):
    """What iterates is not tried far from the given inputs; its steps are seen."""

    @tf.custom_gradient
    def spikes(x):
        counted = lambda i, v: (i + 1, v + tf.floor(x * 4.0) / 40.0)
        y = tf.while_loop(lambda i, v: i < 10, counted, (0, 0.0 * x))[1]
        return y, lambda dy: dy

    x = tf.constant([0.36, 1.62, 1.12, 0.62])  # 10 % less or more change nothing
    report = gs.check.options(seed=seed)(tf.function(lambda x: spikes(x)), x)
    assert report.verdict == "surrogate", report


@pytest.mark.parametrize("bound", [1.0, 5.0, 100.0])
@pytest.mark.parametrize("shape", [(), (4,)])
def test_bounds_that_are_not_reached_are_no_steps(bound, shape):
    """Their gradients are in proportion to each other, and none of them is right."""

    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.shape = low.shape
            return torch.minimum(torch.maximum(x, low), high)

        @staticmethod
        def backward(ctx, dy):
            bounds = dy if ctx.shape else dy.sum()
            return dy, bounds, bounds

    high = torch.full(shape, bound, dtype=torch.float64)
    x = torch.tensor([0.1, -0.6, 0.4, -0.2], dtype=torch.float64)
    report = gs.check(Clamp, x, -high, high)
    assert report.verdict == "wrong", report
