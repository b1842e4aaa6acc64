import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check import Finding
from gradsmith.tools.check.second_order import check_second_order

from .helpers import FRAMEWORKS, X, checked, kinds, native, ours, right

stop = gnp.stop_gradient


def detached(dy, y, x):
    return dy * (1 - stop(y * y))


def half_detached(dy, y, x):
    return dy * (1 - stop(gnp.tanh(x)) * gnp.tanh(x))


def without_upstream(dy, y, x):
    return stop(dy) * (1 - gnp.tanh(x) ** 2)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("rule", [detached, half_detached, without_upstream])
def test_detached(framework, rule):
    (finding,) = checked(
        check_second_order, ours(rule), X, framework=framework
    ).reported
    assert (finding.what, finding.diagnosis) == (
        "second order",
        "detached second order",
    )
    assert ("upstream" in finding.message) == (rule is without_upstream)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_right(framework):
    session = checked(check_second_order, ours(right), X, framework=framework)
    assert not session.reported
    assert session.checks[0].resolution < 1e-7


@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_of_a_framework_itself(framework):
    op = native(framework, gnp.tanh, lambda *args: (right(*args),))
    assert not checked(check_second_order, op, X).reported
    op = native(framework, gnp.tanh, lambda *args: (detached(*args),))
    assert kinds(checked(check_second_order, op, X)) == ["second order"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_argument_of_two(framework):
    @gs.operation
    def times(x, w):
        return x * w

    times.vjp(lambda dy, y, x, w: (dy * stop(w), dy * x))
    (finding,) = checked(
        check_second_order, times, X, X + 3, framework=framework
    ).reported
    assert finding.argument == "w"  # whose change is not seen in the gradient of x


def test_kinks_are_no_matter():
    relu = ours(lambda dy, y, x: gnp.where(x > 0, dy, 0 * dy), lambda x: abs(x) + x)
    relu.vjp(lambda dy, y, x: gnp.where(x > 0, 2 * dy, 0 * dy))
    x = np.array([[-1.0, 0.0, 2.0, 1e-9]])
    assert not checked(check_second_order, relu, x).reported


def test_refused_is_noted():
    torch = pytest.importorskip("torch")
    from torch.autograd.function import once_differentiable

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            return 3 * ctx.saved_tensors[0] ** 2 * dy

    session = checked(check_second_order, Once, X)
    assert not session.findings
    assert "once_differentiable" in session.reported[0].message


def test_saved_behind_the_frameworks_back():
    torch = pytest.importorskip("torch")

    class Hidden(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.slope = 3 * x**2
            return x**3

        @staticmethod
        def backward(ctx, dy):
            return ctx.slope * dy

    (finding,) = checked(check_second_order, Hidden, X).reported
    assert "is zero, and the gradient does change" in finding.message


def test_not_for_surrogates():
    op = ours(lambda dy, y, x: dy, gnp.sign, surrogate="straight through")
    session = checked(check_second_order, op, X)
    assert not session.reported
    assert not session.checks


def test_what_is_wrong_in_first_order_is_not_said_twice():
    def check(session, problem, scenario):
        session.found(Finding("first order", "wrong"))
        check_second_order(session, problem, scenario)

    assert kinds(checked(check, ours(detached), X)) == ["first order"]
