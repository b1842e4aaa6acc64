"""The parts `observe` and `residuals`: the same meaning in every framework."""

from contextlib import suppress

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.core.hooks import BODY, CALL, RULE


@pytest.fixture(params=["numpy", "tensorflow", "jax", "torch"])
def framework(request):
    pytest.importorskip(request.param)
    return FRAMEWORKS[request.param]


class Log:
    """An observer that keeps what it is told."""

    def __init__(self, backward=True):
        self.arguments, self.events, self.entered, self.ys = [], [], 0, []
        self.backward = backward

    def argument(self, operand):
        self.arguments.append(operand)

    def enter(self):
        self.entered += 1

    def event(self, event):
        self.events.append(event)

    def outputs(self, outputs):
        self.ys = outputs
        return self.backward

    def of(self, name, phase):
        return [e for e in self.events if name in e.operation and e.phase == phase]


def observed(framework, fn, x, **options):
    log = Log(**options)
    x = framework.arrays.array(np.array(x, np.float32))
    return log, framework.observe.observe(fn, (x,), {}, [("x", x)], log)


def values(framework, operands):
    return [framework.arrays.floats(operand.x).tolist() for operand in operands]


def root(x):
    return gnp.exp(x) * 2.0


def test_each_operation_forward_and_backward(framework):
    log, gradients = observed(framework, root, [0.0, 0.0])
    assert [argument.name for argument in log.arguments] == ["x"]
    assert values(framework, log.ys) == [[2.0, 2.0]]
    [forward] = log.of("exp", "forward") or log.of("Exp", "forward")
    [backward] = log.of("exp", "backward") or log.of("Exp", "backward")
    assert forward.place.source == backward.place.source == "return gnp.exp(x) * 2.0"
    assert forward.elementwise
    assert backward.encloses
    assert [operand.name for operand in forward.inputs] == ["x"]
    assert values(framework, forward.outputs) == [[1.0, 1.0]]
    assert backward.inputs[0].name == "dy"
    assert [(dx.name, framework.arrays.floats(dx.x).tolist()) for dx in gradients] == [
        ("x", [2.0, 2.0])
    ]


def test_a_value_has_one_key(framework):
    log, _ = observed(framework, lambda x: gnp.exp(x) * x, [1.0, 2.0])
    exp = (log.of("exp", "forward") or log.of("Exp", "forward"))[0]
    product = (log.of("mul", "forward") or log.of("Mul", "forward"))[0]
    assert exp.inputs[0].key == log.arguments[0].key
    assert exp.outputs[0].key in [operand.key for operand in product.inputs]


def test_no_gradient(framework):
    _, gradients = observed(framework, lambda x: gnp.zeros_like(x), [1.0])
    assert gradients is None


def test_the_observer_ends_it_before_the_backward_pass(framework):
    log, gradients = observed(framework, root, [1.0], backward=False)
    assert gradients == []
    assert {event.phase for event in log.events} == {"forward"}


def test_lines_of_a_rule(framework):
    @gs.custom_gradient
    def double(x):
        def grad(dy):
            return gnp.sqrt(dy) * 2.0

        return x + x, grad

    log, _ = observed(framework, double, [1.0])
    sources = [e.place.source for e in log.events if e.place and e.phase == "backward"]
    assert "return gnp.sqrt(dy) * 2.0" in sources


def test_nothing_is_left_behind(framework):
    def fail(x):
        raise KeyError("mine")

    for fn in (root, fail):
        with suppress(KeyError):
            observed(framework, fn, [1.0])
        assert CALL.wrappers == BODY.wrappers == RULE.wrappers == ()


def test_residuals(framework):
    x = framework.arrays.array(np.zeros(1000, np.float32))
    found = framework.residuals.residuals(lambda x: gnp.sum(gnp.exp(x)), (x,), {})
    [residual] = [each for each in found if each.nbytes >= 1000]
    assert residual.nbytes == 4000
    assert "exp" in residual.operation.lower()
    assert "gnp.exp(x)" in residual.place.source
