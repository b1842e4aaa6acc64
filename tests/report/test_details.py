"""What the page shows beside the check: differences, time."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.command.details import timing as time
from gradsmith.command.details.parts import details
from gradsmith.tools._inputs import info_of
from gradsmith.tools.check import samples as comparison
from gradsmith.tools.check.inputs import inputs_for
from gradsmith.tools.check.problem import problem_for
from tests.report.sample import cube, product, twice_too_much

X = np.array([-1.5, -0.25, 0.5, 2.0])


def samples(*args):
    return comparison.samples(*args).as_dict()


def timing(given):
    return time.timing(given).as_dict()


def problem(op, *args, framework=None):
    return problem_for(op, inputs_for(op, args, {}, seed=0)[0], framework)


def test_a_right_gradient_agrees_with_differences():
    found = samples(problem(cube, X), 0)
    assert found["kind"] == "curve"
    assert found["beyond"] == 0
    assert (min(found["x"]), max(found["x"])) == (-1.5, 2.0)
    assert sum(found["given"]) == 4
    x, g = np.array(found["x"]), np.array(found["analytic"])
    np.testing.assert_allclose(g, 3 * x**2, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["low"], g, rtol=1e-5, atol=1e-5)


def test_a_wrong_one_does_not():
    found = samples(problem(twice_too_much, X), 0)
    assert found["beyond"] > 0.9 * len(found["gap"])
    np.testing.assert_allclose(found["gap"][-1], 1.0, rtol=1e-4)


def test_a_wrong_element_is_found_among_others():
    @gs.custom_gradient
    def matmul(a, b):
        return a @ b, lambda dy: (dy @ b.T, 1.01 * a.T @ dy)

    a = np.arange(1.0, 7.0).reshape(2, 3)
    right, wrong = (samples(problem(op, a, a.T), 0) for op in (product, matmul))
    assert right["kind"] == wrong["kind"] == "elements"
    assert right["beyond"] == 0
    assert right["argument"] == ["a"] * 6 + ["b"] * 6
    assert right["place"][1] == "a[0, 1]"
    assert wrong["beyond"] == 6


def test_kinks_and_numbers_are_shown():
    @gs.custom_gradient
    def relu(x):
        return gnp.maximum(x, 0.0), lambda dy: dy * (x > 0)

    found = samples(problem(relu, np.array([-1.0, 0.0, 1.0])), 0)
    assert found["beyond"] == 0
    at = found["x"].index(0.0)
    assert (found["low"][at], found["high"][at]) == (0.0, 1.0)
    assert len(samples(problem(cube, np.array(0.5)), 0)["x"]) > 50


def test_a_surrogate_is_said_to_be_one():
    step = gs.with_gradient(np.sign, lambda dy, y, x: dy, surrogate="through")
    assert "declared surrogate" in samples(problem(step, X), 0)["note"]


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax", "tensorflow"])
def test_time_beside_autodiff_of_the_body(framework):
    pytest.importorskip(framework)
    found = timing(problem(cube, X, framework=framework))
    assert found["without"] == ""
    assert [row["inputs"] for row in found["rows"]] == [
        "x (4,) float64",
        "x (4200,) float64",
    ]
    for row in found["rows"]:
        assert 0 < row["rule"] < 1
        assert 0 < row["autodiff"] < 1
        assert row["runs"] >= 5


def test_a_slow_rule_is_slow():
    def slowly(dy, y, x):
        for _ in range(2000):
            y = np.exp(-np.abs(y))
        return dy * np.cos(x) + 0 * y

    slow = gs.with_gradient(np.sin, slowly)
    row = timing(problem(slow, X))["rows"][0]
    assert row["rule"] > 3 * row["autodiff"]


def test_why_there_is_no_autodiff():
    torch = pytest.importorskip("torch")

    @gs.custom_gradient
    def detached(x):
        return x.detach() * 2, lambda dy: 2 * dy

    found = timing(problem(detached, torch.tensor(X)))
    assert "finds no gradient" in found["without"]
    assert found["rows"][0]["autodiff"] is None


def test_bodies_of_native_operations():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    tf = pytest.importorskip("tensorflow")

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

    @jax.custom_vjp
    def double(x):
        return 2 * x

    @tf.custom_gradient
    def triple(x):
        return 3 * x, lambda dy: 3 * dy

    assert info_of(Cube.apply, "torch").body(2.0) == 8.0
    assert info_of(Square.apply, "torch").body(3.0) == 9.0
    assert info_of(double, "jax").body(2.0) == 4.0
    assert float(info_of(triple, "tensorflow").body(2.0)) == 6.0
    assert info_of(np.sin, "numpy").body is None


def test_one_part_that_fails_is_left_out_with_its_reason(monkeypatch):
    def fails(*_):
        raise ValueError("no luck\nat all")

    monkeypatch.setattr("gradsmith.command.details.parts.timing", fails)
    todo = details(
        cube,
        inputs_for(cube, (X,), {}, seed=0)[0],
        framework=None,
        seed=0,
        thorough=False,
    )
    assert todo["timing"]().skipped == "ValueError: no luck"
    assert todo["samples"]().beyond == 0
    assert "survival" not in todo


def test_the_audit_is_of_numbers_within_the_bounds_of_the_example():
    pytest.importorskip("flint")

    @gs.custom_gradient
    def logit(p):
        return np.log(p / (1 - p)), lambda dy: dy / (p * (1 - p))

    examples = gs.spec("n", low=0.0, high=1.0)
    found = details_of(logit, examples)["audit"]().as_dict()
    assert found["domain"] == [0.0, 1.0]
    assert found["arguments"] == ["p"]
    assert found["value"]["max_ulp"] > 1000  # at 1/2
    assert len(found["value"]["curve"]["x"]) > 100

    @gs.custom_gradient
    def times(a, b):
        return a * b, lambda dy: (dy * b, dy * a)

    assert details_of(times, X, X)["audit"]().arguments == ("a", "b")


def details_of(op, *args):
    chosen = inputs_for(op, args, {}, seed=0)[0]
    return details(op, chosen, framework=None, seed=0, thorough=False)
