"""A wrong gradient and an inaccurate one are told apart."""

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def wrong(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y)


@gs.custom_gradient
def inaccurate(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


@gs.operation
def square(x):
    return x * x


@square.vjp
def _(dy, y, x):
    return dy * np.where(x < 0, -2 * x, 2 * x)


@gs.custom_gradient
def nothing(x):
    return np.sin(x), lambda dy: 0 * dy


@gs.custom_gradient
def opaque(x):
    """A rule that can't run on balls."""
    kept = np.array(x)
    return x * x, lambda dy: dy * kept * 3


@gs.operation(surrogate="straight-through rounding")
def rounding(x):
    return np.floor(x)


@rounding.vjp
def _(dy, y, x):
    return dy


@gs.custom_gradient
def shares(x):
    e = np.exp(x - np.max(x))
    y = e / np.sum(e)
    return y, lambda dy: y * (1 - y) * dy


@gs.custom_gradient
def right_shares(x):
    e = np.exp(x - np.max(x))
    y = e / np.sum(e)
    return y, lambda dy: y * (dy - np.sum(dy * y))


def test_a_wrong_formula():
    found = gs.audit(wrong, (-3, 3), points=2000).gradient
    assert found.wrong
    assert found.regions[0].kind == "wrong"
    assert "the formula itself is off by" in found.regions[0].text
    assert not gs.audit(wrong, (-3, 3), points=2000).value.wrong


def test_an_inaccurate_formula_is_not_wrong():
    found = gs.audit(inaccurate, (-20, 20), points=2000).gradient
    assert found.max_ulp > 1e6
    assert not found.wrong
    assert {region.kind for region in found.regions} == {"underflow", "lost"}


def test_wrong_on_one_side():
    (region,) = gs.audit(square, (-9, 9), points=2000).gradient.regions
    assert region.kind == "wrong"
    assert region.where == "x < 0"
    assert "off by 200 %" in region.text


def test_a_gradient_of_zeros_is_wrong():
    (region,) = gs.audit(nothing, (-1, 1), points=1000).gradient.regions
    assert region.text.startswith("gradient is wrong everywhere")


def test_in_every_precision():
    for dtype in ("float16", "float64"):
        assert gs.audit(wrong, (0.5, 3), dtype, points=500).gradient.wrong
        assert not gs.audit(inaccurate, (0.5, 30), dtype, points=500).gradient.wrong


def test_a_rule_that_takes_no_balls_is_run_in_two_precisions():
    def double(x):
        return x * x

    found = gs.audit(opaque, (1, 9), points=500, reference=double).gradient
    assert found.wrong
    assert "off by 50 %" in found.regions[0].text


def test_a_surrogate_is_not_compared():
    report = gs.audit(rounding, (-3, 3), points=500)
    assert report.gradient.judged == 0
    assert report.gradient.regions == ()
    assert report.ok
    assert "straight-through rounding" in report.notes[0]
    assert "not compared" in str(report)


def test_vectors():
    found = gs.audit(shares, points=60).gradient
    assert found.wrong
    assert "the formula itself" in found.regions[0].text
    right = gs.audit(right_shares, points=60).gradient
    assert not right.wrong
    assert "cancellation in `dy - np.sum(dy * y)`" in right.regions[0].text
