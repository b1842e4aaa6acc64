"""The contract has the same words in every framework, eager and while tracing."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

from .portable import ALL, ENGINE, FOREIGN

pytestmark = pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")


@dataclass
class Params:
    w: object
    b: object


def returning(make):
    """An operation `op(x, b)` whose gradient is what `make(dy, x, b)` returns."""

    @gs.custom_gradient
    def op(x, b):
        return x * 1, lambda dy: make(dy, x, b)

    return op


def cast(x, like):
    """An array of a shape and dtype in the framework of another one."""
    return gnp.asarray(x, like=like)


# What a gradient returns for x of shape (4, 3) and b of shape (3,), both float32.
BROKEN = {
    "missing sum": lambda dy, x, b: (dy, dy),
    "transposed": lambda dy, x, b: (cast(np.ones((3, 4), "f4"), dy), None),
    "scalar": lambda dy, x, b: (cast(np.ones((), "f4"), dy), None),
    "number": lambda dy, x, b: (2.0, None),
    "other array": lambda dy, x, b: (dy, cast(np.ones(7, "f4"), dy)),
    "half": lambda dy, x, b: (cast(np.ones((4, 3), "f2"), dy), None),
    "whole": lambda dy, x, b: (cast(np.ones((4, 3), "i4"), dy), None),
    "complex": lambda dy, x, b: (cast(np.ones((4, 3), "c8"), dy), None),
    "too few": lambda dy, x, b: (dy,),
    "too many": lambda dy, x, b: (dy, None, None),
    "unknown name": lambda dy, x, b: {"x": dy, "bias": None},
    "missing name": lambda dy, x, b: {"b": None},
    "a string": lambda dy, x, b: ("dx", None),
    "a function": lambda dy, x, b: (lambda dy: dy, None),
    "a list": lambda dy, x, b: ([1.0, 2.0], None),
}


def total(y):
    return gnp.sum(y)


def message_of(framework, case, compiled):
    op = returning(BROKEN[case])
    x = framework.array(np.ones((4, 3)), "float32")
    b = framework.array(np.ones(3), "float32")

    def loss(x, b):
        return total(op(x, b))

    if compiled:
        run = framework.compiled_gradients(loss)
    else:
        run = lambda x, b: framework.gradients(loss, x, b)
    with pytest.raises(gs.GradientContractError) as info:
        run(x, b)
    return str(info.value)


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_same_words_as_the_engine(framework, case):
    assert message_of(framework, case, False) == message_of(ENGINE, case, False)


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("framework", FOREIGN[:2], ids=lambda f: f.name)
def test_same_words_at_trace_time(framework, case):
    assert message_of(framework, case, True) == message_of(ENGINE, case, False)


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_a_tree_of_another_structure(framework):
    def message(framework):
        @gs.custom_gradient
        def op(p):
            return p["w"] * p["b"], lambda dy: {"w": dy * p["b"], "c": dy}

        def loss(w, b):
            return total(op({"w": w, "b": b}))

        xs = [framework.array([1.0, 2.0], "float32") for _ in "wb"]
        with pytest.raises(gs.GradientContractError) as info:
            framework.gradients(loss, *xs)
        return str(info.value)

    assert message(framework) == message(ENGINE)


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_not_differentiable_raises_only_if_it_is_asked_for(framework):
    @gs.custom_gradient
    def op(x, labels):
        why = gs.not_differentiable("the labels are data")
        return x * labels, lambda dy: (dy * labels, why)

    x, labels = (framework.array([1.0, 2.0], "float32") for _ in "xl")
    (dx,) = framework.gradients(lambda x: total(op(x, labels)), x)
    np.testing.assert_array_equal(framework.plain(dx), [1, 2])
    with pytest.raises(gs.NotDifferentiableError, match="the labels are data"):
        framework.gradients(lambda x, labels: total(op(x, labels)), x, labels)


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_the_tangent_is_checked_too(framework):
    def message(framework):
        @gs.operation
        def op(x):
            return x * 2

        @op.jvp
        def _(dx, y, x):
            return dx[0]

        x = framework.array([1.0, 2.0], "float32")
        with pytest.raises(gs.GradientContractError) as info:
            framework.tangent(op, (x,), (x,))
        return str(info.value)

    assert message(framework) == message(ENGINE)


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_forward_mode_of_what_is_not_linear_is_refused(framework):
    @gs.custom_gradient(linear=False)
    def op(x):
        return x * 2, lambda dy: dy * 2

    x = framework.array([1.0, 2.0], "float32")
    with pytest.raises(gs.NotDifferentiableError, match="has no forward mode"):
        framework.tangent(op, (x,), (x,))


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_an_operation_without_rules_is_refused(framework):
    @gs.operation
    def op(x):
        return x * 2

    x = framework.array(2.0, "float32")
    with pytest.raises(gs.UnsupportedOperationError, match="has no gradient yet"):
        framework.gradients(op, x)


# Rules whose `return` was forgotten, with their first line


def _closure():
    @gs.custom_gradient
    def op(x):
        def grad(dy):
            dy * 2

        return x * 2, grad

    return op


def _rule(kind):
    @gs.operation
    def op(x):
        return x * 2

    @getattr(op, kind)
    def rule(d, y, x):
        d * 2

    return op


FORGOTTEN = {"gradient": _closure, "vjp": lambda: _rule("vjp")}
each = pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("what", FORGOTTEN)
@each
def test_a_gradient_that_returns_nothing(framework, what, compiled):
    op, x = FORGOTTEN[what](), framework.array([1.0, 2.0], "float32")
    words = (
        rf"the {what} of operation 'op' returned nothing[\s\S]*"
        rf"forgotten `return` in (grad|rule) \(.*{re.escape(__file__)}:\d+\)"
    )
    run = lambda x: framework.gradients(lambda x: total(op(x)), x)
    if compiled:
        run = framework.compiled_gradients(lambda x: total(op(x)))
    # torch.compile(fullgraph=True) words it in an error of its own
    theirs = compiled and framework.name == "torch"
    error = Exception if theirs else gs.GradientContractError
    with pytest.raises(error, match=words):
        run(x)


@pytest.mark.parametrize("mode", ["forward", "reverse", "compiled"])
@each
def test_a_tangent_that_is_nothing(framework, mode):
    op, x = _rule("jvp"), framework.array([1.0, 2.0], "float32")
    run = {
        "forward": lambda: framework.tangent(op, (x,), (x,)),
        "reverse": lambda: framework.gradients(lambda x: total(op(x)), x),
        "compiled": lambda: framework.compiled_gradients(lambda x: total(op(x)))(x),
    }[mode]
    with pytest.raises(Exception, match="the jvp of operation 'op' returned nothing"):
        run()


@each
def test_zero_is_said(framework):
    op = gs.custom_gradient(lambda x: (x * 2, lambda dy: gs.zero))
    x = framework.array([1.0, 2.0], "float32")
    (dx,) = framework.gradients(lambda x: total(op(x)), x)
    assert framework.plain(dx).tolist() == [0, 0]


@gs.custom_gradient
def labelled(labels, x):
    return (x - labels) * 2, lambda dy: (None, dy * 2)


def _labels_of(framework, compiled):
    """The gradients of labels and x, as the framework's own tape gives them."""
    labels, x = (framework.array([1.0, 2.0], "float32") for _ in "lx")
    op = framework.compiled(labelled) if compiled else labelled
    if framework.name == "torch":
        labels.requires_grad_(), x.requires_grad_()
        op(labels, x).sum().backward()
        return labels.grad, x.grad
    module = gs if framework is ENGINE else framework.module
    labels, x = map(module.Variable, (labels, x))
    with module.GradientTape() as tape:
        y = op(labels, x)
    return tape.gradient(y, [labels, x])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["numpy", "tensorflow", "torch"])
def test_none_for_one_argument_stays_none(name, compiled):
    framework = next(f for f in ALL if f.name == name)
    dlabels, dx = _labels_of(framework, compiled)
    assert dlabels is None
    assert framework.plain(dx).tolist() == [2, 2]
