"""Where a gradient is wrong: which elements, and for which values."""

import tracemalloc

import numpy as np
import pytest

import gradsmith.numpy as gnp
from gradsmith.tools.check.diagnosis import explain
from gradsmith.tools.check.diagnosis.border import simplest
from gradsmith.tools.check.diagnosis.locate import describe_elements
from gradsmith.tools.check.flat import Part

from .wrong_gradients import (
    compared,
    explained,
    normal,
    only,
    operation,
    softmax,
    softmax_rule,
)

X = np.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (X >= 0, "all 12 elements"),
        (X == 7, "element [1, 3]"),
        (X // 4 == 2, "row 2"),
        (X % 4 == 0, "column 0"),
        (X % 2 == 0, "every second element"),
        (X % 3 == 1, "every third element, from element 1 on"),
        (X >= 5, "from element 5 on (flat)"),
        (X <= 5, "up to element 5 (flat)"),
        ((X > 2) & (X < 6), "elements 3 to 5 (flat)"),
        ((X == 1) | (X == 6), "2 of 12 elements: [0, 1], [1, 2]"),
        (
            np.isin(X, [0, 1, 3, 7, 8]),
            "5 of 12 elements: [0, 0], [0, 1], [0, 3], [1, 3], ...",
        ),
    ],
)
def test_elements_in_words(wrong, words):
    assert describe_elements(Part("x", 0, (3, 4)), wrong.ravel()) == words


def test_real_and_imaginary_part_are_one_element():
    part = Part("z", 0, (2, 2), is_complex=True)
    assert describe_elements(part, np.arange(8) == 5) == "element [1, 0]"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2.49, 2.52, "2.5"),
        (-1e-3, 1e-3, "0"),
        (0.00996, 0.0101, "0.01"),
        (99, 103, "1e+02"),
    ],
)
def test_the_simplest_number_of_an_interval(low, high, words):
    assert simplest(low, high) == words


# --- elements


def cube(x):
    return x * x * x


def cube_rule(dy, y, x):
    return 3 * x * x * dy


@pytest.mark.parametrize(
    ("forward", "rule"), [(cube, cube_rule), (softmax, softmax_rule)]
)
@pytest.mark.parametrize(
    ("where", "words", "diagnosis"),
    [
        (lambda i: i == 6, "element [1, 2]", "factor of one element"),
        (lambda i: i // 4 == 1, "row 1", "region"),
        (lambda i: i % 4 == 3, "column 3", "region"),
        (lambda i: i >= 7, "from element 7 on (flat)", "region"),
        (lambda i: i % 2 == 0, "every second element", "region"),
    ],
)
def test_small_arguments(forward, rule, where, words, diagnosis):
    found = explained(operation(forward, only(where, rule)), normal(3, 4))
    assert (found.elements, found.diagnosis) == (words, diagnosis)


@pytest.mark.parametrize("shape", [(40, 50), (2000,)])
@pytest.mark.parametrize(
    ("forward", "rule"), [(cube, cube_rule), (softmax, softmax_rule)]
)
def test_from_element_1024_on(shape, forward, rule):
    op = operation(forward, only(lambda i: i >= 1024, rule))
    found = explained(op, normal(*shape))
    assert found.elements == "from element 1024 on (flat)"
    assert found.diagnosis == "region"


@pytest.mark.parametrize(
    ("forward", "rule", "most"), [(cube, cube_rule, 20), (softmax, softmax_rule, 100)]
)
def test_one_wrong_element_in_a_million(forward, rule, most):
    calls = []

    def counted(x):
        calls.append(x.shape)
        return forward(x)

    op = operation(counted, only(lambda i: i == 654_321, rule))
    point, comparison, session = compared(op, normal(1000, 1000))
    calls.clear()
    found = explain(point, comparison, session)
    assert sum(shape == (1000, 1000) for shape in calls) < most
    assert found.elements == "element [654, 321]"
    assert found.diagnosis == "factor of one element"


def test_elements_that_matter_tell_where_wrong_ones_begin():
    """Of a row of the product, all but the first few elements change nothing."""

    def rule(dy, y, x):
        sums = gnp.flip(gnp.cumsum(gnp.flip(dy * y, axis=1), axis=1), axis=1)
        return sums / x

    op = operation(
        lambda x: gnp.cumprod(x, axis=1), only(lambda i: i >= 1024, rule, 0.0)
    )
    found = explained(op, normal(4, 1100) * 0.5)
    assert found.elements == "from element 1024 on (flat)"
    assert found.diagnosis == "region"


def test_memory_is_linear():
    op = operation(softmax, only(lambda i: i == 54_321, softmax_rule))
    x = normal(300, 300)
    point, comparison, session = compared(op, x)
    tracemalloc.start()
    explain(point, comparison, session)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * x.nbytes  # a Jacobian would be 90,000 times as large


def test_a_large_argument_is_diagnosed_on_a_small_problem():
    op = operation(softmax, lambda dy, y, x: y * dy)
    found = explained(op, normal(60, 70))
    assert found.diagnosis == "dropped term"
    assert found.elements == "all 4200 elements"


def test_a_large_argument_of_one_shape_only_is_diagnosed_on_some_elements():
    weights = normal(30, 30, seed=5)
    op = operation(
        lambda x: gnp.tanh(x @ gnp.asarray(weights, like=x)),
        lambda dy, y, x: -(dy * (1 - y * y)) @ gnp.asarray(weights.T, like=x),
    )
    assert explained(op, 0.1 * normal(20, 30)).diagnosis == "sign"


# --- values


REGIONS = {
    "where x < 0": lambda x: x < 0,
    "where x > 2.5": lambda x: x > 2.5,
    "where x < -0.7": lambda x: x < -0.7,
    "where |x| < 0.01": lambda x: gnp.abs(x) < 0.01,
    "where |x| > 3": lambda x: gnp.abs(x) > 3,
}


def row_sums(x):
    return gnp.sum(gnp.sin(x) + x * x, axis=1)


def row_sums_rule(dy, y, x):
    return (gnp.cos(x) + 2 * x) * gnp.expand_dims(dy, 1)


@pytest.mark.parametrize("words", REGIONS)
@pytest.mark.parametrize(
    ("forward", "rule"), [(cube, cube_rule), (row_sums, row_sums_rule)]
)
@pytest.mark.parametrize("spread", [1.0, 0.002, 5.0])
def test_regions_in_words(words, forward, rule, spread):
    holds = REGIONS[words]

    def wrong(dy, y, x):
        dx = rule(dy, y, x)
        return gnp.where(holds(x), 0.5 * dx, dx)

    x = spread * normal(3, 4, seed=7)
    if not np.any(holds(x)):
        x.flat[5] = {"where x > 2.5": 3.0, "where x < -0.7": -1.5}.get(words, 0.005)
        if words == "where |x| > 3":
            x.flat[5] = -4.5
    found = explained(operation(forward, wrong), x)
    assert found.diagnosis == "region", found
    assert words in found.message


def test_a_region_with_all_of_the_few_elements_inside():
    def rule(dy, y, a, b):
        da = gnp.sum(dy * b, axis=1)
        near = gnp.abs(a) < 0.01
        return gnp.where(near, 0.5 * da, da), gnp.sum(dy * a[:, None], axis=0)

    op = operation(lambda a, b: a[:, None] * b, rule)
    a = np.array([1e-4, -3e-3, 2e-5])
    for seed in range(10):
        found = explained(op, a, normal(4), argument="a", seed=seed)
        assert found.diagnosis == "region", seed
        assert "where |a| < 0.01" in found.message


def test_wrong_at_one_value():
    op = operation(
        cube, lambda dy, y, x: gnp.where(x == 0, gnp.ones_like(x), 3 * x * x) * dy
    )
    found = explained(op, np.array([0.0, 1.0, -2.0, 0.5]))
    assert found.diagnosis == "region"
    assert "at x = 0" in found.message


def test_ties_counted_twice():
    def rule(dy, y, x):
        hit = x == gnp.expand_dims(y, 1)
        return gnp.where(hit, gnp.ones_like(x), 0 * x) * gnp.expand_dims(dy, 1)

    op = operation(lambda x: gnp.max(x, axis=1), rule)
    x = np.array([[1.0, 1.0, 0.0], [0.5, 2.0, 2.0]])
    found = explained(op, x)
    assert found.diagnosis == "ties counted twice"


def test_a_term_that_is_missing_in_a_region_is_named():
    op = operation(
        lambda x: gnp.where(x > 0, x, gnp.exp(gnp.minimum(x, 0)) - 1),
        lambda dy, y, x: dy * gnp.where(x > 0, gnp.ones_like(x), y),
    )
    found = explained(op, normal(3, 4))
    assert found.diagnosis == "dropped term"
    assert found.message == "where x < 0, the term dy is missing"


def test_the_smaller_ones_of_pairs_are_no_region():
    """Wrong ones are smaller than right ones, but there is no border."""

    def rule(dy, y, x):
        high = gnp.where(x == gnp.max(x, axis=1, keepdims=True), 1 + 0 * x, 0 * x)
        return high * gnp.expand_dims(dy, 1)

    op = operation(lambda x: gnp.max(x, axis=1) - gnp.min(x, axis=1), rule)
    assert explained(op, normal(3, 4)).diagnosis == "dropped term"
