"""What fails where: the words, the bounds, the operation to blame."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.audit.ranges import boundary, is_symmetric, ranges
from gradsmith.tools.audit.task import AuditTask


@gs.operation
def softplus(x):
    e = np.exp(x)
    return np.log(1 + e)


@softplus.vjp
def _(dy, y, x):
    e = np.exp(x)
    return dy * e / (1 + e)


@gs.custom_gradient
def tanh(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


@gs.custom_gradient
def safe_root(x):
    y = np.sqrt(np.abs(x) + 1)
    return y, lambda dy: dy * np.abs(x) / x / (2 * y)


def versine(x):
    return 1 - np.cos(x)


def kinds(accuracy):
    return [region.kind for region in accuracy.regions]


def test_an_overflow_has_its_exact_bound_and_its_line():
    report = gs.audit(softplus, (-200, 200))
    region = report.value.regions[0]
    assert region.kind == "overflow"
    assert region.where == "x > 88.7228"
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(region.low)))
        below = np.nextafter(np.float32(region.low), np.float32(0))
        assert np.isfinite(np.exp(below))
    assert region.cause.startswith("overflow in `np.exp(x)`, line ")
    assert region.text.startswith("value overflows to inf for x > 88.7228 (overflow")


def test_a_nan_of_the_gradient():
    report = gs.audit(softplus, (-200, 200))
    (region,) = report.gradient.regions
    assert region.kind == "nan"
    assert region.text.startswith("gradient is NaN for x > 88.7228 (overflow in")
    assert report.gradient.max_ulp == np.inf
    assert not report.gradient.wrong


def test_a_single_input_is_named():
    (region,) = gs.audit(safe_root, (-5, 5), points=2000).gradient.regions
    assert region.where == "x = 0"
    assert region.text.startswith("gradient is NaN for x = 0")
    assert region.low == region.high == 0


def test_cancellation_is_found_in_its_line_on_both_sides_of_0():
    found = gs.audit(versine, (-1, 1), points=4000).value.regions
    assert [region.kind for region in found[:2]] == ["underflow", "lost"]
    assert "underflows to 0 for " in found[0].text
    assert "|x| < 0.000244141, where the true value is up to 2.98e-08" in found[0].text
    line = versine.__code__.co_firstlineno + 1
    assert found[0].cause == f"cancellation in `1 - np.cos(x)`, line {line}"
    assert found[1].text.startswith("value loses up to 2")
    assert found[1].low == -found[1].high


def test_cancellation_in_a_rule():
    found = gs.audit(tanh, (-20, 20), points=4000).gradient.regions
    line = tanh.fn.__code__.co_firstlineno + 3
    causes = {region.cause for region in found[:2]}
    assert causes == {f"cancellation in `1 - y * y`, line {line}"}
    assert kinds(gs.audit(tanh, (-1, 1), points=2000).gradient) == []


def test_regions_of_16_bits_are_of_all_inputs():
    region = gs.audit(softplus, (-100, 100), dtype="float16").value.regions[0]
    with np.errstate(over="ignore"):
        x = np.arange(0, 100, 1 / 128).astype(np.float16)
        first = x[np.isinf(np.exp(x))][0]
    assert region.low == first


def test_errors_here_and_there_make_one_region():
    points = np.arange(1000)
    assert len(ranges(points, points % 10 == 0)) == 100
    assert len(ranges(points, points % 2 == 0)) == 1
    found = gs.audit(tanh, (-1.8, 1.8), points=4000).gradient.regions
    assert len(found) <= 2
    assert all("here and there" in r.text or r.points >= 8 for r in found)


def test_a_bound_is_found_among_exceptions():
    assert boundary(0, 2**40, lambda codes: codes >= 12345) == (12344, 12345)
    assert boundary(9, -(2**40), lambda codes: codes <= -7) == (-6, -7)
    noisy = boundary(0, 10**6, lambda c: (c > 500_000) ^ (c % 7 == 0))
    assert abs(noisy[1] - 500_000) < 200_000


def test_symmetry_is_that_of_shares():
    codes = np.arange(-1000, 1001)
    assert is_symmetric(codes, np.abs(codes) > 500, 100)
    assert not is_symmetric(codes, codes > 500, 100)


def test_shares_and_points_of_regions_add_up():
    value = gs.audit(softplus, (-200, 200)).value
    points = sum(region.points for region in value.regions)
    assert points == round(value.beyond * value.judged)
    assert sum(region.share for region in value.regions) == pytest.approx(value.beyond)


@pytest.mark.parametrize("domain", [None, (-90.0, 88.9)])
def test_bounds_are_looked_for_inside_of_the_domain(domain, monkeypatch):
    """Beyond the largest number there are infinity and NaN, which warn in casts."""
    errors, low, high = AuditTask.errors, *(domain or (-np.inf, np.inf))
    seen = []

    def watched(self, points):
        seen.append(points.xs[0].astype(float))
        return errors(self, points)

    monkeypatch.setattr(AuditTask, "errors", watched)
    assert gs.audit(softplus, domain, points=2000).value.regions
    x = np.concatenate(seen)
    assert np.all(np.isfinite(x) & (x >= low) & (x <= high))
