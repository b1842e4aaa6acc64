"""A new framework is a folder and a row: tools run on it with no edit elsewhere."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import frameworks
from gradsmith.core.arrays import framework_of, unregister
from gradsmith.frameworks._protocol import Framework
from tests.frameworks.toy import Array

TOY = Framework(
    "toy",
    "Toy",
    arrays="Array",
    example="toy.Array(x)",
    package="tests.frameworks.toy",
    module="tests.frameworks.toy",
    roots=("tests",),
    cannot={"observe": "it tells nobody what it computes"},
)
X = np.array([0.5, -1.25, 2.0])


@pytest.fixture(autouse=True)
def toy():
    frameworks.add(TOY)
    yield TOY
    unregister(TOY)


def cube(factor):
    @gs.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * x**2 * factor

    return cube


@gs.operation
def product(x, y):
    return x * y


@product.vjp
def _(dy, z, x, y):
    return dy * y, dy * x


def test_its_arrays_are_known():
    assert framework_of(Array(X)) == "toy"
    assert isinstance(cube(3)(Array(X)), Array)


@pytest.mark.parametrize("inputs", [(X,), (Array(X),)])
def test_a_right_rule_is_found_right(inputs):
    report = gs.check.options(framework="toy")(cube(3), *inputs)
    assert report.ok, report
    assert (report.framework, report.version) == ("Toy", "1.0")
    assert gs.check(product, Array(X), Array(X + 1)).ok


def test_a_wrong_rule_is_refuted():
    report = gs.check(cube(2), Array(X))
    assert report.verdict.value == "wrong"
    assert "multiply the gradient by 3/2" in str(report)


def test_the_contract_holds():
    @gs.custom_gradient
    def short(x):
        return x * x, lambda dy: Array(dy.value[:1])

    report = gs.check(short, Array(X))
    assert not report.ok
    assert "wrong shape" in str(report)


def test_a_part_that_is_not_there_is_said_in_words():
    with pytest.raises(gs.UnsupportedOperationError, match="Toy has no observe") as e:
        gs.find_nan(cube(3), Array(X))
    assert "it tells nobody what it computes" in str(e.value)
    with pytest.raises(gs.UnsupportedOperationError, match="Toy has no"):
        gs.survives(cube(3), Array(X))


def test_a_thorough_check_notes_what_is_not_there():
    report = gs.check.options(thorough=True)(cube(3), Array(X))
    assert report.ok, report
    assert any("Toy has no transformations" in note for note in report.notes)


def test_it_is_forgotten():
    unregister(TOY)
    try:
        assert framework_of(Array(X)) is None
    finally:
        frameworks.add(TOY)
