import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.forward_mode import check_forward_mode

from .helpers import FRAMEWORKS, X, checked, kinds, native, ours, right


def with_both(factor):
    op = gs.operation(lambda x: gnp.tanh(x))
    op.vjp(lambda dy, y, x: dy * (1 - y * y))
    op.jvp(lambda dx, y, x: factor * dx * (1 - y * y))
    return op


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_modes_that_differ(framework):
    op = with_both(1 + 1e-9)
    assert kinds(checked(check_forward_mode, op, X, framework=framework)) == [
        "forward mode"
    ]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("op", [with_both(1.0), ours(right)])
def test_modes_that_agree(framework, op):
    session = checked(check_forward_mode, op, X, framework=framework)
    assert not session.reported
    assert session.checks[0].resolution < 1e-12


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_refused_is_noted(framework):
    op = native(framework, gnp.tanh, lambda *args: (right(*args),))
    session = checked(check_forward_mode, op, X)
    assert not session.findings
    assert session.reported[0].limit.startswith("forward mode: refused: ")


def test_a_wrong_small_element_among_large_ones():
    op = gs.operation(lambda x: gnp.exp(x))
    op.vjp(lambda dy, y, x: dy * y)
    op.jvp(lambda dx, y, x: dx * gnp.where(x < -30, -y, y))
    x = X.copy()
    x[1, 2] = -40.0  # the gradient there is 4e-18
    assert kinds(checked(check_forward_mode, op, x)) == ["forward mode"]


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_torch_function_with_a_jvp(factor):
    torch = pytest.importorskip("torch")

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, dy):
            return 3 * ctx.saved_tensors[0] ** 2 * dy

        @staticmethod
        def jvp(ctx, dx):
            return factor * 3 * ctx.saved_tensors[0] ** 2 * dx

    assert bool(checked(check_forward_mode, Cube, X).reported) == (factor != 1)


def test_jax_operation_with_a_jvp_alone():
    jax = pytest.importorskip("jax")
    op = jax.custom_jvp(lambda x: jax.numpy.tanh(x))
    op.defjvp(lambda x, dx: (gnp.tanh(x[0]), dx[0] * (1 - gnp.tanh(x[0]) ** 2)))
    session = checked(check_forward_mode, op, X)
    assert not session.reported
    assert session.checks


def test_tangents_that_the_framework_loses_are_noted():
    torch = pytest.importorskip("torch")
    library = "gradsmith_check_forward::cube"

    @torch.library.custom_op(library, mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    cube.register_autograd(
        lambda ctx, dy: 3 * ctx.saved_tensors[0] ** 2 * dy, setup_context=setup_context
    )
    session = checked(check_forward_mode, cube, X)
    assert not session.findings
    assert "dropped" in session.reported[0].message


def test_a_rule_that_gives_no_tangent_is_wrong():
    op = with_both(0.0)
    assert kinds(checked(check_forward_mode, op, X)) == ["forward mode"]


def test_forward_mode_that_is_not_by_the_rule_is_a_limit():
    """TensorFlow's follows the operations inside, and has no rule of its own."""
    tf = pytest.importorskip("tensorflow")

    @tf.custom_gradient
    def square(x):
        return tf.stop_gradient(x) * x, lambda dy: 2 * x * dy

    session = checked(check_forward_mode, square, X)
    assert not session.findings
    assert "not by the rule" in session.reported[0].limit
    report = gs.check(square, tf.constant(X))
    assert report.verdict == "right, with limits", report
