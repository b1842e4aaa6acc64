"""Functions of several arguments, and of vectors."""

import ast

import numpy as np
import pytest
from scipy import special

import gradsmith as gs
from gradsmith.tools.audit.arguments import Argument
from gradsmith.tools.audit.formats import FORMATS
from gradsmith.tools.audit.sampling import samples, upstreams

FLOAT32 = FORMATS["float32"]


def length(x, y):
    return np.sqrt(x * x + y * y)


def shares(x):
    e = np.exp(x)
    return e / np.sum(e)


def loss(p, t):
    return np.mean((p - t) ** 2)


def test_arguments_have_gradients_of_their_own():
    report = gs.audit(np.hypot, {"x1": (0.1, 9), "x2": (1, 2)}, points=1000)
    assert report.arguments == ("x1", "x2")
    assert list(report.gradients) == ["x1", "x2"]
    assert report.gradient in report.gradients.values()
    worst = max(one.max_ulp for one in report.gradients.values())
    assert report.gradient.max_ulp == worst
    assert report.ok
    assert "gradient of x2" in str(report)


def test_worst_inputs_are_exact_literals():
    worst = gs.audit(np.hypot, (0.1, 9), points=500).value.worst_inputs[0]
    x1, x2 = (float(part.partition("=")[2]) for part in worst.split(", "))
    assert np.float32(x1) == pytest.approx(x1, rel=1e-7)
    assert 0.1 <= x2 <= 9


def test_bounds_of_what_tells_points_apart():
    found = gs.audit(length, points=4000).value.regions
    overflow = next(region for region in found if region.kind == "overflow")
    assert overflow.where.startswith("max(|x|, |y|) >= 1.")
    assert overflow.where.endswith("e+19")
    line = length.__code__.co_firstlineno + 1
    assert overflow.cause in [
        f"overflow in `{text}`, line {line}" for text in ("x * x", "y * y")
    ]


def test_softmax_is_one_of_vectors():
    report = gs.audit(special.softmax, points=200)
    assert report.points == 200
    worst = report.value.worst_inputs[0]
    assert len(ast.literal_eval(worst.partition("=")[2])) == 10
    assert "dy=[" in report.gradient.worst_inputs[0]


def test_a_function_of_a_whole_vector_is_recognised():
    report = gs.audit(shares, points=100)
    region = report.value.regions[0]
    assert region.kind == "nan"
    assert region.where.startswith(("max(x) >= 8", "max(x) >= 9"))
    assert region.cause.startswith("overflow in `np.exp(x)`")


def test_a_loss_of_two_vectors():
    report = gs.audit(loss, points=50)
    assert report.arguments == ("p", "t")
    assert report.value.judged == 50
    assert report.ok


def test_inputs_say_what_is_a_vector_and_what_is_constant():
    @gs.operation
    def scaled(x, k):
        return x * k

    @scaled.vjp
    def _(dy, y, x, k):
        return dy * k, None

    report = gs.audit(scaled, inputs=(gs.spec((4,), low=1, high=2), 3), points=100)
    assert report.arguments == ("x",)
    values = ast.literal_eval(report.value.worst_inputs[0].partition("=")[2])
    assert len(values) == 4
    assert all(1 <= x <= 2 for x in values)
    assert report.gradient.max_ulp == 0


def test_examples_of_an_operation_are_its_inputs():
    @gs.custom_gradient
    def norm(x):
        y = np.sqrt(np.sum(x * x))
        return y, lambda dy: dy * x / y

    @norm.example
    def _():
        return gs.spec((3,), low=1, high=4)

    worst = gs.audit(norm, points=40).value.worst_inputs[0]
    assert len(ast.literal_eval(worst.partition("=")[2])) == 3


def test_units_of_sums_are_those_of_their_terms():
    # With an upstream gradient of ones the true gradient is 0, and terms cancel
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    from gradsmith.tools.audit.runner import Runner
    from gradsmith.tools.audit.task import AuditTask, Points

    def last(x):
        return special.softmax(x, axis=-1)

    task = AuditTask(Runner(last, elementwise=False), last, "float32")
    _, dx = task.errors(Points([x], np.ones((6, 4), np.float32)))
    assert dx.ulp.max() < 4


def test_samples_are_within_domains_and_of_all_sizes():
    arguments = [Argument("x"), Argument("y"), Argument("v", (5,))]
    domains = {"x": (1, 2), "y": (0, 1e9), "v": (-3, 3)}
    x, y, v = samples(arguments, domains, FLOAT32, 500, seed=1)
    assert x.min() >= 1
    assert x.max() <= 2
    assert y.max() > 1e6
    assert y[y > 0].min() < 1e-6
    assert v.shape == (500, 5)
    assert np.abs(v).max() <= 3


def test_upstream_gradients_are_ones_units_and_signed():
    dy = upstreams((60, 4), FLOAT32, seed=0)
    units = np.sum(dy != 0, axis=1) == 1
    assert units.sum() == 30
    assert (dy == 1).all(axis=1).sum() == 10
    assert (dy < 0).any()


def test_sampling_is_repeatable():
    one, two = (gs.audit(np.hypot, (0, 9), points=300, seed=s) for s in (3, 3))
    assert one.value == two.value
    other = gs.audit(np.hypot, (0, 9), points=300, seed=4)
    assert one.value.worst_inputs != other.value.worst_inputs


def test_a_gradient_of_which_nothing_is_known_is_not_called_accurate():
    """The value has no derivative that could be certified: it stops gradients."""
    report = gs.audit(gs.ops.logsumexp, points=40)
    assert (report.gradient.judged, report.gradient.undecided) == (0, 40)
    assert report.value.ok
    assert report.is_open
    assert not report.ok
    assert str(report).startswith("? logsumexp")
    assert "reference=" in str(report)
    assert report.document().verdict == "could not tell"
    known = gs.audit(gs.ops.logsumexp, points=40, reference=special.logsumexp)
    assert known.gradient.judged
    assert not known.is_open
    half = gs.custom_gradient(lambda x: (np.tanh(x), lambda dy: dy), surrogate="half")
    through = gs.audit(half, points=40)
    assert not through.gradient.judged  # on purpose
    assert (through.is_open, through.ok) == (False, through.value.ok)
