import time

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.numerics import precision_of
from gradsmith.tools.check.precision import check_precision

from .helpers import FRAMEWORKS, X, checked, native, ours, right


def softplus(x):
    return gnp.maximum(x, 0) + gnp.log1p(gnp.exp(-gnp.abs(x)))


def overflowing(dy, y, x):
    e = gnp.exp(x)
    return dy * e / (1 + e)


def stable(dy, y, x):
    e = gnp.exp(-gnp.abs(x))
    return dy * gnp.where(x > 0, 1 + 0 * e, e) / (1 + e)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_overflow_in_float32(framework):
    op = ours(overflowing, softplus)
    (finding,) = checked(check_precision, op, X, framework=framework).reported
    assert (
        "in float32 the gradient is NaN though the value is finite" in finding.message
    )
    assert "at x = 90" in finding.message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_right_in_all(framework):
    for op in (ours(stable, softplus), ours(right)):
        session = checked(check_precision, op, X, framework=framework)
        assert not session.reported
        dtypes = {check.what.split()[1] for check in session.checks}
        others = {"bfloat16"} if framework != "numpy" else set()
        assert dtypes == {"float32", "float16"} | others


def test_overflow_at_the_inputs_given():
    op = ours(overflowing, softplus)
    (finding, *_) = checked(check_precision, op, 100 * np.abs(X)).reported
    assert finding.argument == "x"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_all_digits_lost(framework):
    op = ours(lambda dy, y, x: (dy + 1e9 * x) - 1e9 * x, lambda x: 1 * x)
    found = checked(check_precision, op, X, framework=framework).reported
    assert any(
        "in float32 no digit of the gradient is right" in f.message for f in found
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_float64_gradient_computed_in_less(framework, dtype):
    if (framework, dtype) == ("numpy", "bfloat16"):
        return  # which NumPy does not have

    def rule(dy, y, x):
        return gnp.astype(gnp.astype(right(dy, y, x), cast[dtype]), x.dtype)

    cast = {
        "float32": gnp.float32,
        "float16": gnp.float16,
        "bfloat16": bfloat16(framework),
    }
    (finding, *_) = checked(
        check_precision, ours(rule), X, framework=framework
    ).reported
    assert finding.diagnosis == "precision lost"
    assert f"only the digits of {dtype}" in finding.message


@pytest.mark.parametrize(
    ("f", "rule"),
    [
        (lambda x: gnp.where(x > 0, x, 0.1 * x), lambda dy, y, x: dy * leaky(x)),
        (lambda x: 1 / (2 + gnp.abs(x)), lambda dy, y, x: -dy * y**2 * gnp.sign(x)),
        (lambda x: gnp.exp(-(x**2)), lambda dy, y, x: -2 * dy * y * x),
    ],
)
def test_a_backward_pass_in_half_the_bits(f, rule):
    """Its result has all digits, most of them wrong, beside a value as large."""

    def short(x):
        return gnp.astype(gnp.astype(x, gnp.float32), x.dtype)

    op = ours(lambda dy, y, x: rule(short(dy), short(y), short(x)), f)
    for seed in range(3):
        check = gs.check.options(seed=seed)
        report = check(op, X)
        assert report.verdict == "wrong", report
        assert "only to the digits of float32" in str(report)
        report = check(op, X.astype("float32"))
        assert report.verdict == "right, with limits", report
        assert any("agrees to " in limit.message for limit in report.limits)


def leaky(x):
    return gnp.where(x > 0, 1.0 + 0 * x, 0.1 + 0 * x)


def bfloat16(framework):
    if framework == "torch":
        import torch

        return torch.bfloat16
    if framework == "jax":
        import jax

        return jax.numpy.bfloat16
    if framework == "tensorflow":
        import tensorflow

        return tensorflow.bfloat16
    return None


def test_dtypes_that_the_operation_does_not_take():
    op = gs.operation(lambda x: np.linalg.inv(x))
    op.vjp(lambda dy, y, x: -y.T @ dy @ y.T)
    session = checked(check_precision, op, X[:, :3] + 3 * np.eye(3))
    assert not session.reported
    assert "precision float16" not in [check.what for check in session.checks]


@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_of_a_framework_itself(framework):
    op = native(framework, softplus, lambda *args: (overflowing(*args),))
    assert checked(check_precision, op, X).reported
    op = native(framework, softplus, lambda *args: (stable(*args),))
    assert not checked(check_precision, op, X).reported


def test_few_digits_by_nature():
    identity = ours(lambda dy, y, x: dy, lambda x: 1 * x)
    assert not checked(check_precision, identity, X).reported
    assert precision_of(np.array([0.0, 1.0, 2.0, -0.5])) is None
    assert precision_of(np.array([1.1, 2.3, 3.7], np.float32)) == "float32"


def test_a_mask_that_depends_on_the_dtype_is_no_loss_of_digits():
    """As that of a layer whose seed is one of its variables: small inputs differ."""
    x = np.array([0.02, 0.03, 0.025, 1.0, 0.01, 0.015], "float32")

    @gs.custom_gradient
    def dropped(x):
        kept = [1, 1, 1, 1, 0, 0] if x.dtype == np.float32 else [0, 0, 0, 1, 1, 1]
        mask = np.array(kept, x.dtype)
        return x * mask, lambda dy: dy * mask

    assert gs.check(dropped, x).ok


@pytest.mark.parametrize("seconds", [0.0, 1.2])
def test_what_takes_long_to_compile_is_not_compiled_for_other_dtypes(seconds):
    left = [seconds]

    def sine(x):
        end = time.process_time() + left.pop() if left else 0.0
        while time.process_time() < end:
            pass
        return np.sin(x)

    checks = [each.what for each in gs.check(sine, X).checks]
    assert ("precision float32" in checks) == (seconds == 0)


def test_what_rounding_leaves_of_zero_has_few_digits():
    """The key's bias of an attention changes no output."""
    x, shift = np.random.default_rng(1).normal(size=(12, 4)), np.zeros((12, 1))
    torch = pytest.importorskip("torch")
    op = lambda x, b: torch.softmax(x + b, -1)
    report = gs.check(op, torch.tensor(x).float(), torch.tensor(shift + 0.3).float())
    assert report.verdict == "right", report
