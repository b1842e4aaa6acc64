"""What shows in several arguments at once, or in some sizes and scales alone."""

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.diagnosis.case import Case

from .helpers import FRAMEWORKS
from .wrong_gradients import compared, normal, operation


def larger(a, b):
    return gnp.maximum(a, b)


def twice(dy, y, a, b):
    return gnp.where(a >= b, dy, 0 * dy), gnp.where(b >= a, dy, 0 * dy)


def shared(dy, y, a, b):
    half = gnp.where(a == b, 0.5 * dy, 0 * dy)
    return gnp.where(a > b, dy, half), gnp.where(b > a, dy, half)


def to_one(dy, y, a, b):
    return gnp.where(a >= b, dy, 0 * dy), gnp.where(b > a, dy, 0 * dy)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_equal_elements_of_two_arguments_counted_twice(framework):
    op = operation(larger, twice)
    report = gs.check.options(framework=framework)(op, normal(3, 4), normal(3, 4) - 1)
    (finding,) = report.findings
    assert finding.argument == "a and b"
    assert "ties" in finding.message


@pytest.mark.parametrize("rule", [shared, to_one])
@pytest.mark.parametrize("seed", range(3))
def test_any_share_of_a_tie_is_right(rule, seed):
    x = normal(3, 4)
    for other in (normal(3, 4) - 1, x):
        assert gs.check.options(seed=seed)(operation(larger, rule), x, other).ok


def polynomial(x, c):
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]))


def polynomial_rule(dy, y, x, c):
    dc = [gnp.sum(dy * x**k) for k in range(4)]
    late = np.arange(int(np.prod(x.shape))).reshape(x.shape) >= 1024
    dx = dy * (c[1] + x * (2 * c[2] + x * 3 * c[3]))
    return gnp.where(gnp.asarray(late, like=dx), 0 * dx, dx), gnp.stack(dc)


def test_a_length_that_is_another_by_chance():
    """c has four elements whatever x is; so has a row of x."""
    (finding,) = gs.check(
        operation(polynomial, polynomial_rule), normal(3, 4), normal(4)
    ).findings
    assert finding.elements == "from element 1024 on (flat)"


def squares(dy, y, a, b):
    r = gnp.sqrt(gnp.where(y > 0, a * a + b * b, gnp.ones_like(y)))
    return dy * a / r, dy * b / r


def length(dy, y, a, b):
    r = gnp.where(y > 0, y, gnp.ones_like(y))
    return dy * (a / r), dy * (b / r)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_squares_that_overflow(framework):
    """Its gradient is the same at each scale, and zero in float32 at this one."""
    a, b = np.abs(normal(3, 4)) + 1, np.abs(normal(3, 4)) + 1
    op = operation(lambda a, b: gnp.hypot(a, b), squares)
    report = gs.check.options(framework=framework)(op, a, b)
    assert not report.findings
    (limit,) = [each for each in report.limits if each.what == "precision"]
    assert "float32" in limit.message


def test_a_scale_is_not_too_large_for_a_right_rule():
    a, b = np.abs(normal(3, 4)) + 1, np.abs(normal(3, 4)) + 1
    assert gs.check(operation(lambda a, b: gnp.hypot(a, b), length), a, b).ok


def neighbours(x):
    return x + gnp.roll(x, 1, axis=0)


@pytest.mark.parametrize("seed", range(20))
def test_an_output_of_two_elements_is_never_taken_for_elementwise(seed):
    point, comparison, _ = compared(
        operation(neighbours, lambda dy, y, x: 2 * dy), normal(3)
    )
    case = Case(point, comparison.part, np.random.default_rng(seed))
    assert not case.elementwise


@pytest.mark.parametrize("seed", range(6))
def test_a_small_wave_on_something_steep_is_no_mistake(seed):
    def waved(x, y):
        return x * y + gnp.sin(x), y**2

    def rule(dy, outputs, x, y):
        return dy[0] * (y + gnp.cos(x)), dy[0] * x + dy[1] * 2 * y

    x, y = np.random.default_rng(seed).normal(size=(2, 3, 4))
    gs.assert_gradients.options(seed=seed)(operation(waved, rule), x, y)
