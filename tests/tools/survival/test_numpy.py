"""Verdicts in the embedded engine, on honest operations and on fakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.frameworks._transformations import GRADIENT, Row
from gradsmith.frameworks.numpy import transformations
from gradsmith.frameworks.numpy.transformations import ROWS
from gradsmith.tools.survival import Fate

X = np.array([0.5, 1.5, -2.0])

SURROGATE = gs.with_gradient(lambda x: x * x, lambda dy, y, x: dy)


@gs.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy


def rule_form(*, vjp, jvp):
    op = gs.operation(lambda x: x * x)
    if vjp:
        op.vjp(lambda dy, y, x: 2 * x * dy)
    if jvp:
        op.jvp(lambda dx, y, x: 2 * x * dx)
    return op


def verdicts(survival):
    return {outcome.verdict for outcome in survival.outcomes}


# --- a rule that equals the derivative is seen nevertheless --------------------------


@pytest.mark.parametrize(
    "op",
    [
        square,
        rule_form(vjp=True, jvp=False),
        rule_form(vjp=False, jvp=True),
        rule_form(vjp=True, jvp=True),
        gs.with_gradient(np.square, lambda dy, y, x: 2 * x * dy),
    ],
    ids=["closure", "vjp", "jvp", "both", "with_gradient"],
)
def test_ours_is_honoured_everywhere(op):
    survival = gs.survives(op, X)
    assert survival.ok
    assert verdicts(survival) == {Fate.HONOURED}
    names = [outcome.transformation for outcome in survival.outcomes]
    assert names == [row.name for row in ROWS][: len(names)]
    assert len(names) >= len(ROWS) - 1  # a ufunc can't be called by keyword


class Dropping(gs.Operation):
    """A fake that lets the body be differentiated."""

    def __call__(self, *args):
        return self.fn(*args)[0]


def test_a_dropped_rule_is_seen_even_if_it_is_right():
    op = Dropping(square.fn, closure=True)
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(op(x)))(X), 2 * X)
    survival = gs.survives(op, X, skip="keyword call")
    assert not survival.ok
    assert verdicts(survival) == {Fate.DROPPED}


class Half(gs.Operation):
    """Half of it is differentiated by the rule."""

    def __call__(self, *args):
        return super().__call__(*args) / 2 + self.fn(*args)[0] / 2


def test_a_rule_that_counts_in_part_is_wrong():
    survival = gs.survives(Half(square.fn, closure=True), X, only=["grad", "jvp"])
    assert verdicts(survival) == {Fate.WRONG}
    assert "a part of the result" in survival["grad"].detail


FAKES = {
    "dropped": lambda g: np.zeros_like(g),
    "wrong": lambda g: 2 * g,
    "none": lambda g: None,
    "refused": lambda g: 1 / 0,
}


def test_a_result_by_the_rule_may_still_be_wrong(monkeypatch):
    def fake(change):
        return lambda s: change(gs.grad(s.phi)(s.t))

    rows = [Row(name, GRADIENT, fake(change)) for name, change in FAKES.items()]
    monkeypatch.setattr(transformations, "ROWS", [ROWS[0], *rows])
    survival = gs.survives(square, X)
    assert survival["GradientTape"].verdict == "honoured"
    assert survival["dropped"].verdict == "dropped"
    assert "the result is zero; the rule gives" in survival["dropped"].detail
    assert survival["wrong"].verdict == "wrong"
    assert "; the rule gives" in survival["wrong"].detail
    assert survival["none"].verdict == "dropped"
    assert "the result is None" in survival["none"].detail
    assert survival["refused"].detail == "ZeroDivisionError: division by zero"


def test_not_a_number_is_wrong(monkeypatch):
    nan = Row("nan", GRADIENT, lambda s: np.nan * s.t)
    monkeypatch.setattr(transformations, "ROWS", [ROWS[0], nan])
    outcome = gs.survives(square, X)["nan"]
    assert (outcome.verdict, outcome.detail) == ("wrong", "the result is nan nan")


def test_a_drop_in_one_way_of_differentiating_alone_is_a_drop(monkeypatch):
    """PyTorch's compiler drops a rule only where its own argument is differentiated."""

    def run(s):
        if s.itself:
            s = s.with_op(lambda x: x * x)
        return gs.grad(s.phi)(s.t)

    monkeypatch.setattr(transformations, "ROWS", [ROWS[0], Row("odd", GRADIENT, run)])
    outcome = gs.survives(square, X)["odd"]
    assert outcome.verdict == "dropped"
    assert outcome.detail.endswith("where its own argument is differentiated by")


def test_a_rule_of_zero_shows_nothing():
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: 0 * dy))
    survival = gs.survives(op, X, only=["grad", "hessian"])
    assert verdicts(survival) == {Fate.UNCLEAR}
    assert survival.ok
    assert "shows nothing" in survival["grad"].detail


# --- what is refused -----------------------------------------------------------------


def test_a_refusal_keeps_the_first_line_of_its_error():
    @gs.custom_gradient(linear=False)
    def clipped(x):
        return x * x, lambda dy: np.clip(2 * x * dy, -1, 1)

    survival = gs.survives(clipped, X)
    assert survival.ok
    assert survival["grad"].verdict == "honoured"
    for name in ("jvp", "ForwardAccumulator"):
        assert survival[name].verdict == "refused"
        assert survival[name].detail.startswith(
            "NotDifferentiableError: operation 'clipped' has no forward mode"
        )


def test_a_rule_that_fails_is_refused_everywhere():
    @gs.custom_gradient
    def failing(x):
        def grad(dy):
            raise ValueError("mine")

        return x * x, grad

    survival = gs.survives(failing, X)
    assert verdicts(survival) == {Fate.REFUSED}
    assert survival["grad"].detail == "ValueError: mine"


# --- inputs and outputs --------------------------------------------------------------


class Pair(NamedTuple):
    z: object
    w: object


@dataclass
class Params:
    w: object
    name: str = "w"


@gs.custom_gradient
def everything(params, index, x, *, power=2, label="static"):
    """A dataclass, integers, a dict, static arguments; a named tuple with integers."""
    w, a = params.w, x["a"]
    rows = w[index]

    def grad(dys):
        dz, dw, _ = dys
        da = dz * rows * power * a ** (power - 1) + dw
        drows = np.zeros_like(w)
        np.add.at(drows, index, dz * a**power)
        return {"params": Params(drows, None), "index": None, "x": {"a": da}}

    return (rows * a**power, a + 1, index), grad


def test_trees_integers_keywords_and_several_outputs():
    w, a = np.array([2.0, 3.0, 4.0]), np.array([1.5, 0.5])
    index = np.array([2, 0])
    survival = gs.survives(
        everything, Params(w), index, {"a": a}, power=3, only=["grad", "jvp", "vjp"]
    )
    assert survival["grad"].verdict == "honoured"
    assert survival["vjp"].verdict == "honoured"


@gs.custom_gradient
def times(z, w):
    return z * w, lambda dy: (dy * np.conj(w), dy * np.conj(z))


@pytest.mark.parametrize(
    ("z", "w"),
    [
        (np.array([1 + 2j, 3 - 1j]), np.array([2.0 + 0j, 1j])),
        (np.float32([1.0, 2.0]), np.float32([3.0, 4.0])),
        (np.float16([1.0, 2.0]), np.float16([3.0, 4.0])),
        (np.array(3.0), np.array(2.0)),
        (3.0, 2.0),
        (gs.Tensor([1.0, 2.0]), gs.Variable([2.0, 3.0])),
    ],
    ids=["complex", "float32", "float16", "0-d", "numbers", "tensors"],
)
def test_dtypes_and_shapes(z, w):
    survival = gs.survives(times, z, w)
    assert verdicts(survival) == {Fate.HONOURED}, str(survival)


def test_large_arrays_are_not_made_into_matrices():
    survival = gs.survives(square, np.linspace(1, 2, 20_000), only=["hessian", "grad"])
    assert verdicts(survival) == {Fate.HONOURED}


def test_a_surrogate_has_a_second_derivative_of_its_own():
    through = gs.with_gradient(
        np.round, lambda dy, y, x: dy * y, surrogate="straight-through"
    )
    survival = gs.survives(through, np.array([1.3, 2.2]))
    assert verdicts(survival) == {Fate.HONOURED}


def test_forward_and_reverse_rules_may_differ():
    op = gs.operation(lambda x: x * x)
    op.vjp(lambda dy, y, x: 2 * x * dy)
    op.jvp(lambda dx, y, x: 7 * dx)
    outcome = gs.survives(op, X, only="jvp")["jvp"]
    assert outcome.verdict == "honoured"
    assert "no transpose" in outcome.detail


# --- what is left behind -------------------------------------------------------------


def test_the_same_result_each_time():
    assert gs.survives(square, X) == gs.survives(square, X)


def test_inputs_and_operation_are_left_as_they_were():
    x = X.copy()
    before = dict(vars(square))
    gs.survives(square, x)
    np.testing.assert_array_equal(x, X)
    assert vars(square) == before


def test_a_plain_function_is_compared_with_differences():
    through = gs.with_gradient(np.round, lambda dy, y, x: dy, surrogate="through")

    def wrapped(x):
        return through(x) + x**2

    survival = gs.survives(wrapped, np.array([0.3, 1.7]), only=["grad", "jvp"])
    assert "can't be silenced" in survival.note
    assert verdicts(survival) == {Fate.HONOURED}  # the surrogate can be told apart
    survival = gs.survives(lambda x: square(x), X, only=["grad", "jvp"])
    assert verdicts(survival) == {Fate.UNCLEAR}  # a right rule can't
    assert "note: " in str(survival)


def test_a_plain_function_that_drops_its_surrogate(monkeypatch):
    def op(x):
        return SURROGATE(x) if op.honest else x**2

    op.honest = True

    def dishonest(s):
        op.honest = False
        try:
            return gs.grad(s.phi)(s.t)
        finally:
            op.honest = True

    monkeypatch.setattr(
        transformations, "ROWS", [ROWS[0], Row("fake", GRADIENT, dishonest)]
    )
    survival = gs.survives(op, X)
    assert survival["GradientTape"].verdict == "honoured"
    assert survival["fake"].verdict == "dropped"


def test_a_gradient_that_is_not_finite_tells_nothing():
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: dy / np.zeros_like(x)))
    with np.errstate(all="ignore"), pytest.raises(gs.GradsmithError, match="finite"):
        gs.survives(op, X)


def test_arguments_without_a_gradient_are_left_alone():
    @gs.custom_gradient
    def loss(labels, logits):
        def grad(dy):
            return gs.not_differentiable("they are data"), dy * (logits - labels)

        return np.sum((logits - labels) ** 2) / 2, grad

    survival = gs.survives(loss, np.array([1.0, 0.0]), np.array([0.7, 0.2]))
    assert verdicts(survival) == {Fate.HONOURED}, str(survival)


def test_none_for_the_first_argument():
    op = gs.custom_gradient(lambda a, x: (a * x, lambda dy: (None, dy * a)))
    assert verdicts(gs.survives(op, X, X + 3)) == {Fate.HONOURED}


def test_nothing_is_differentiable():
    op = gs.custom_gradient(lambda x: (x, lambda dy: gs.not_differentiable("no")))
    assert verdicts(gs.survives(op, X)) == {Fate.REFUSED}


def test_methods():
    class Scale:
        factor = 3.0

        @gs.custom_gradient
        def scaled(self, x):
            return self.factor * x, lambda dy: self.factor * dy

    survival = gs.survives(Scale().scaled, X)
    assert survival.operation == "scaled"
    assert not survival.note
    assert verdicts(survival) == {Fate.HONOURED}
