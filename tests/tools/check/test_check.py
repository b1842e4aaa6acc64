"""What `check` says of right and of wrong gradients, in the embedded engine."""

import json

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.check import GradientError

X = np.random.default_rng(0).normal(size=(3, 4))


def op(f, rule, **options):
    made = gs.operation(f, **options)
    made.vjp(rule)
    return made


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


RIGHT = {
    "tanh": op(np.tanh, lambda dy, y, x: dy * (1 - y * y)),
    "relu": op(lambda x: np.maximum(x, 0), lambda dy, y, x: np.where(x > 0, dy, 0.0)),
    "relu with slope 1 at 0": op(
        lambda x: np.maximum(x, 0), lambda dy, y, x: np.where(x >= 0, dy, 0.0)
    ),
    "abs": op(np.abs, lambda dy, y, x: dy * np.sign(x)),
    "softmax": op(
        softmax, lambda dy, y, x: y * (dy - np.sum(dy * y, -1, keepdims=True))
    ),
    "log": op(np.log, lambda dy, y, x: dy / x),
    "sqrt": op(np.sqrt, lambda dy, y, x: dy / (2 * y)),
    "maximum of rows": op(
        lambda x: np.max(x, -1),
        lambda dy, y, x: dy[:, None] * _first(x == y[:, None]),
    ),
    "tiny": op(lambda x: 1e-9 * x * x, lambda dy, y, x: 2e-9 * x * dy),
}  # fmt: skip

WRONG = {
    "a factor of 1 + 1e-8": op(np.tanh, lambda dy, y, x: dy * (1 - y * y) * (1 + 1e-8)),
    "zero": op(np.tanh, lambda dy, y, x: 0 * dy),
    "one element": op(np.tanh, lambda dy, y, x: _flipped(dy * (1 - y * y))),
    "where x < 0": op(
        np.tanh, lambda dy, y, x: np.where(x < 0, -1, 1) * dy * (1 - y * y)
    ),
    "near 0": op(
        np.tanh, lambda dy, y, x: np.where(abs(x) < 0.01, 2, 1) * dy * (1 - y * y)
    ),
    "beyond a threshold": op(
        np.tanh, lambda dy, y, x: np.where(x > 5.25, 2, 1) * dy * (1 - y * y)
    ),
    "the wrong axis": op(
        softmax, lambda dy, y, x: y * (dy - np.sum(dy * y, 0, keepdims=True))
    ),
    "tiny and of wrong sign": op(
        lambda x: 1e-9 * x * x, lambda dy, y, x: -2e-9 * x * dy
    ),
    "from element 1024 on": op(
        np.tanh, lambda dy, y, x: _without_late(dy * (1 - y * y))
    ),
}  # fmt: skip

LIMITED = {
    "ties counted twice": op(
        lambda x: np.max(x, -1), lambda dy, y, x: dy[:, None] * (x == y[:, None])
    ),
    "NaN at 0": op(lambda x: np.abs(x), lambda dy, y, x: dy * x / y),
    "NaN for large values": op(
        lambda x: np.logaddexp(0, x), lambda dy, y, x: dy * np.exp(x) / (1 + np.exp(x))
    ),
}  # fmt: skip


def _first(tied):
    return tied & (np.cumsum(tied, -1) == 1)


def _flipped(g):
    return np.where(np.arange(g.size).reshape(g.shape) == 5, -g, g)


def _without_late(g):
    return np.where(np.arange(g.size).reshape(g.shape) < 1024, g, 0)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", range(3))
def test_right(name, seed):
    x = np.abs(X) if name in ("log", "sqrt") else X
    report = gs.check.options(seed=seed)(RIGHT[name], x)
    assert report.ok, report
    assert report.resolution < 1e-8


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    report = gs.check(WRONG[name], np.abs(X) + 0.1)
    assert report.verdict == "wrong", report
    assert report.findings[0].argument == "x"


@pytest.mark.parametrize("name", LIMITED)
def test_right_with_limits(name):
    report = gs.check(LIMITED[name], np.abs(X) + 0.1)
    assert report.verdict == "right, with limits", report
    assert {"not finite", "first order"} & {limit.what for limit in report.limits}
    assert report.ok
    assert not gs.check.options(strict=True)(LIMITED[name], np.abs(X) + 0.1).ok


@pytest.mark.parametrize("seed", range(10))
def test_few_digits_are_no_mistake(seed):
    # 1 + tanh(x) of a very negative x has few digits: differences agree by chance.
    tail = op(
        lambda x: (1 + np.tanh(x)) * x,
        lambda dy, y, x: dy * (2 / (1 + np.exp(-2 * x)) + x / np.cosh(x) ** 2),
    )
    report = gs.check.options(seed=seed)(tail, np.linspace(-18.5, -14, 200))
    assert report.verdict != "wrong", report


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_equal_values_is_right(seed):
    # The middle one of three equal values: its gradient is not between the one-sided
    # derivatives along a direction, and valid all the same.
    def rule(dy, y, x):
        g = np.zeros_like(dy)
        np.put_along_axis(g, np.argsort(x, -1, kind="stable"), dy, -1)
        return g

    report = gs.check.options(seed=seed)(op(lambda x: np.sort(x, -1), rule), X)
    assert report.ok, report


def test_a_wrong_subgradient_of_a_sum():
    total = op(
        lambda x: np.sum(np.maximum(x, 0), -1),
        lambda dy, y, x: dy[:, None] * (np.where(x == 0, 5, x > 0).astype(x.dtype)),
    )
    report = gs.check(total, X)
    assert report.limits[0].what == "first order", report
    x = np.where(X < 0, 0, X)  # zeros that are among the inputs count
    assert gs.check(total, x).verdict == "wrong"


def symmetric_eigenvalues(factor):
    def rule(dy, y, a):
        _, v = np.linalg.eigh(a)
        return factor * (v * dy) @ v.T

    return op(np.linalg.eigvalsh, rule)


def test_a_symmetric_argument():
    a = X.T @ X + np.eye(4)
    report = gs.check(symmetric_eigenvalues(1.0), a)
    assert report.ok, report
    assert "one triangle" in str(report)
    assert gs.check(symmetric_eigenvalues(2.0), a).verdict == "wrong"


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_many_waves_in_a_step(factor):
    wave = op(np.sin, lambda dy, y, x: factor * dy * np.cos(x))
    assert gs.check(wave, 1e3 * X).ok is (factor == 1)


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_an_operation_of_float32_alone(factor):
    def body(x):
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return np.sin(x)

    report = gs.check(
        op(body, lambda dy, y, x: factor * dy * np.cos(x)), X.astype(np.float32)
    )
    assert report.ok is (factor == 1), report
    assert "does not take float64" in str(report)


def test_the_argument_is_named():
    product = op(lambda a, b: a * b, lambda dy, y, a, b: (dy * b, dy * a * 1.001))
    (finding,) = gs.check(product, X, X + 1).findings
    assert finding.argument == "b"


def test_the_same_seed_gives_the_same_report():
    reports = [
        gs.check.options(seed=7)(WRONG["the wrong axis"], X).as_dict() for _ in range(2)
    ]
    for report in reports:
        report.pop("seconds")
    assert reports[0] == reports[1]


def test_assert_gradients():
    assert gs.assert_gradients(RIGHT["tanh"], X).ok
    with pytest.raises(GradientError, match="the gradient is wrong") as caught:
        gs.assert_gradients(WRONG["zero"], X)
    assert str(caught.value) == str(caught.value.report)
    assert isinstance(caught.value, AssertionError)


def test_json_and_html():
    report = gs.check(WRONG["zero"], X)
    assert json.loads(report.to_json())["verdict"] == "wrong"
    named = op(np.tanh, lambda dy, y, x: 0 * dy)
    named.name = "<script>"
    assert "<script>" not in gs.check(named, X)._repr_html_()


def test_a_surrogate_is_not_compared_with_the_derivative():
    through = op(np.round, lambda dy, y, x: dy, surrogate="straight-through")
    report = gs.check(through, X)
    assert report.ok
    assert "straight-through" in str(report)


def test_an_argument_without_a_gradient_is_held():
    power = op(
        lambda x, n: x**n,
        lambda dy, y, x, n: (dy * n * x ** (n - 1), gs.not_differentiable("a degree")),
    )
    report = gs.check(power, np.abs(X), np.full((3, 4), 2.0))
    assert report.ok, report
    assert "a degree" in str(report)


# --- what can't be checked ------------------------------------------------------------


def test_an_operation_that_raises():
    def fails(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        gs.check(op(fails, lambda dy, y, x: dy), X)
    assert "called with the given inputs" in "".join(caught.value.__notes__)


def test_a_rule_that_raises():
    def fails(dy, y, x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gs.check(op(np.tanh, fails), X)


def test_a_rule_that_breaks_the_contract():
    report = gs.check(op(np.tanh, lambda dy, y, x: dy[0]), X)
    assert report.verdict == "wrong"
    assert "shape (3, 4)" in str(report)


def test_nan_everywhere():
    report = gs.check(op(lambda x: x * np.nan, lambda dy, y, x: dy), X)
    assert report.verdict == "could not tell"
    assert "no output is finite" in str(report)


def test_a_random_operation():
    fresh = np.random.default_rng  # without a seed: nothing to rewind
    noisy = op(lambda x: x * fresh().random(x.shape), lambda dy, y, x: dy)
    report = gs.check(noisy, X)
    assert report.verdict == "could not tell"
    assert "random" in str(report)


def test_no_output_with_a_gradient():
    report = gs.check(op(lambda x: np.argmax(x), lambda dy, y, x: x), X)
    assert report.verdict == "could not tell"
    assert "no gradient is needed" in str(report)


def test_no_inputs():
    with pytest.raises(gs.GradsmithError, match="has no examples"):
        gs.check(op(lambda *xs: 1.0, lambda dy, y, *xs: None))


@pytest.mark.parametrize("inputs", [(1,), (np.arange(3),)])
def test_no_input_of_floating_numbers(inputs):
    with pytest.raises(gs.GradsmithError, match="needs inputs"):
        gs.check(op(lambda *xs: 1.0, lambda dy, y, *xs: None), *inputs)


def test_what_is_no_operation():
    with pytest.raises(gs.GradsmithError, match=r"check\(\) needs an operation"):
        gs.check(3, X)


def test_a_rule_that_fails_on_empty_arrays():
    def rule(dy, y, x):
        return dy / float(np.max(np.ones(x.shape)))

    report = gs.check(op(lambda x: x * 1.0, rule), X)
    assert report.ok
    assert "the rule fails on arrays with no elements" in str(report)
    assert "empty arrays" in str(gs.check(RIGHT["tanh"], X))


@pytest.mark.parametrize("size", [100, 10_000])
def test_one_wrong_element_of_many(size):
    place = size * 2 // 3

    def rule(dy, y, x):
        g = dy * (1 - y * y)
        return np.where(np.arange(size) == place, -g, g) if x.size == size else g

    x = np.random.default_rng(0).normal(size=size)
    finding = gs.check(op(np.tanh, rule), x).findings[0]
    assert f"[{place}]" in finding.elements
