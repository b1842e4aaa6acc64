import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.linearity import check_linearity

from .helpers import FRAMEWORKS, X, checked, kinds, native, ours, right

WRONG = {
    "upstream ignored": gnp.ones_like,
    "absolute upstream": gnp.abs,
    "rectified upstream": lambda dy: gnp.maximum(dy, 0),
    "upstream's sign only": gnp.sign,
    "clipped upstream": lambda dy: gnp.clip(dy, -1.5, 700.0),
}


BOUNDS_OF_RESULT = lambda dy: gnp.clip(dy, 0, 1)


def changed(change):
    return lambda dy, y, x: right(change(dy), y, x)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_done_to_the_upstream(framework, name):
    op = ours(changed(WRONG[name]))
    (finding,) = checked(check_linearity, op, X, framework=framework).reported
    assert (finding.what, finding.diagnosis) == ("linearity", name)


@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_of_a_framework_itself(framework):
    wrong = changed(WRONG["rectified upstream"])
    op = native(framework, gnp.tanh, lambda *args: (wrong(*args),))
    (finding,) = checked(check_linearity, op, X).reported
    assert finding.diagnosis == "rectified upstream"
    op = native(framework, gnp.tanh, lambda *args: (right(*args),))
    assert not checked(check_linearity, op, X).reported


def test_bounds_are_in_words():
    (finding,) = checked(
        check_linearity, ours(changed(WRONG["clipped upstream"])), X
    ).reported
    assert "clipped to -1.5 ... 700" in finding.message
    cut = ours(changed(lambda dy: gnp.minimum(dy, 3.0)))
    assert "cut above at 3" in checked(check_linearity, cut, X).reported[0].message


def test_clipped_by_its_norm():
    def change(dy):
        return dy / gnp.maximum(1.0, gnp.sqrt(gnp.sum(dy * dy)) / 2)

    (finding,) = checked(check_linearity, ours(changed(change)), X).reported
    assert finding.diagnosis == "clipped upstream"
    assert "norm of at most 2" in finding.message


@pytest.mark.parametrize("name", ["clipped upstream", "rectified upstream"])
def test_the_rest_of_a_rule_that_clips(name):
    """It has to be the derivative where nothing is clipped."""
    change = WRONG[name]
    meant = gs.check(ours(lambda dy, y, x: right(change(dy), y, x)), X)
    assert meant.verdict is gs.Verdict.SURROGATE
    wrong = gs.check(ours(lambda dy, y, x: change(dy) * (1 - y)), X)
    assert wrong.verdict is gs.Verdict.WRONG
    assert [each.what for each in wrong.findings] == ["linearity", "first order"]


def test_the_rest_of_a_rule_that_clips_by_its_norm():
    def change(dy):
        return dy / gnp.maximum(1.0, gnp.sqrt(gnp.sum(dy * dy)) / 2)

    assert gs.check(ours(changed(change)), X).verdict is gs.Verdict.SURROGATE
    wrong = ours(lambda dy, y, x: change(dy) * (1 - y))
    assert gs.check(wrong, X).verdict is gs.Verdict.WRONG


def normalized(axis=None, eps=0.0, order=2):
    """Divided by a norm, of all or of each row."""

    def change(dy):
        size = gnp.sum(gnp.abs(dy) ** order, axis=axis, keepdims=True) ** (1 / order)
        return dy / (size + eps)

    return change


@pytest.mark.parametrize("axis", [None, -1, 0])
@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("of_result", [False, True])
def test_the_rest_of_a_rule_that_normalizes(axis, eps, of_result):
    """It has to be the derivative but for its length."""
    change = normalized(axis, eps)

    def checked(slope):
        changed = lambda dy, y: change(dy * slope(y))
        plain = lambda dy, y: change(dy) * slope(y)
        rule = changed if of_result else plain
        return gs.check(ours(lambda dy, y, x: 0.5 * rule(dy, y)), X)

    meant = checked(lambda y: 1 - y * y)
    assert meant.verdict is gs.Verdict.SURROGATE, meant
    assert [each.diagnosis for each in meant.findings] == ["normalized upstream"]
    assert "multiples of an upstream gradient give the same" in str(meant)
    wrong = checked(lambda y: 1 - y)
    assert wrong.verdict is gs.Verdict.WRONG, wrong
    assert "is not the derivative, whatever its length" in str(wrong)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_rows_that_a_product_mixes_are_normalized(order):
    change = normalized(-1, order=order)
    weights = np.random.default_rng(1).normal(size=(4, 5))

    def product(wrong):
        op = gs.operation(lambda x, w: x @ w)
        op.vjp(lambda dy, y, x, w: (change(dy) @ w.T, (wrong * x).T @ change(dy)))
        return gs.check(op, X, weights).verdict

    assert product(1.0) is gs.Verdict.SURROGATE
    assert product(np.array([[1.0, 1.0, 1.0, 1.1]])) is gs.Verdict.WRONG


BOUNDS = np.linspace(1.0, 3.0, X.size).reshape(X.shape)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda dy: gnp.clip(dy, -BOUNDS, BOUNDS), "bounds of its own: 3 at most"),
        (
            lambda dy: dy / gnp.maximum(1, normalized_rows(dy) / 2),
            "scaled to a norm of at most 2, along axis 1",
        ),
        (
            lambda dy: gnp.clip(dy, 0, 1),
            "negative elements of the upstream gradient are treated as zero, and the "
            "others cut above at 1",
        ),
        (lambda dy: gnp.minimum(dy, 0), "positive elements of the upstream"),
    ],
)
def test_words_are_true(change, words):
    report = gs.check(ours(changed(change)), X)
    assert report.verdict is gs.Verdict.SURROGATE, report
    assert words in " ".join(report.findings[0].message.split())


def normalized_rows(dy):
    return gnp.sqrt(gnp.sum(dy * dy, axis=-1, keepdims=True))


@pytest.mark.parametrize("change", [WRONG["rectified upstream"], BOUNDS_OF_RESULT])
def test_what_comes_out_may_be_clipped(change):
    """Where a slope is negative, other upstream gradients are lost than elsewhere."""
    slope = lambda x: gnp.cos(3 * x)
    body = lambda x: gnp.sin(3 * x) / 3
    meant = gs.check(ours(lambda dy, y, x: change(dy * slope(x)), body), X)
    assert meant.verdict is gs.Verdict.SURROGATE, meant
    wrong = gs.check(ours(lambda dy, y, x: change(dy * (slope(x) - 1)), body), X)
    assert wrong.verdict is gs.Verdict.WRONG, wrong


def test_small_departures_without_a_name():
    shifted = ours(changed(lambda dy: dy + 1e-9))
    assert checked(check_linearity, shifted, X).reported[0].diagnosis is None
    divided = ours(changed(lambda dy: dy / gnp.max(gnp.abs(dy))))
    assert "NaN" in checked(check_linearity, divided, X).reported[0].message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_right_rules_are_right(framework):
    session = checked(check_linearity, ours(right), X, framework=framework)
    assert not session.reported
    assert session.checks[0].resolution < 1e-13


def test_cancellation_is_no_departure():
    op = ours(lambda dy, y, x: (1e9 * dy + dy) - 1e9 * dy, lambda x: x)
    assert not checked(check_linearity, op, X).reported


def test_declared():
    op = ours(changed(WRONG["clipped upstream"]), linear=False)
    session = checked(check_linearity, op, X)
    assert not kinds(session)
    assert "declared" in session.notes[0]


@pytest.mark.parametrize("name", ["clipped upstream", "rectified upstream"])
def test_of_a_single_output(name):
    """Where an upstream gradient of one sign is the usual case."""
    op = ours(
        lambda dy, y, x: WRONG[name](dy) * gnp.cos(x), lambda x: gnp.sum(gnp.sin(x))
    )
    for seed in range(8):
        assert checked(check_linearity, op, X, seed=seed).reported[0].diagnosis == name


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_lower_precision_is_another_matter(dtype):
    low = getattr(gnp, dtype)
    op = ours(lambda dy, y, x: gnp.astype(gnp.astype(right(dy, y, x), low), x.dtype))
    assert not checked(check_linearity, op, X).reported


@pytest.mark.parametrize("sure", [6.0, 10.0, 12.0])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_rule_adds_and_takes_away_again_is_rounding(sure, seed):
    # Of a share that is nearly 1, dy - sum(dy y) has lost most of its digits: in half
    # precision all of them, which is said, and is no other mistake
    x = np.random.default_rng(seed).normal(size=4)
    x[seed] = sure
    found = gs.check.options(seed=seed)(gs.ops.softmax, x).findings
    assert {finding.what for finding in found} <= {"precision"}


def test_a_random_choice_is_right():
    x = np.array([-2.0, -0.5, 0.3, 4.0])
    assert gs.check(gs.ops.gumbel_softmax, x, 3).ok
