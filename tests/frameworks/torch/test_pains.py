"""What is broken in PyTorch's own mechanisms today, and right in ours.

Each test first asserts PyTorch's wrong result, so that a repaired one is noticed. The
numbers are those of public issues in pytorch/pytorch.
"""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch.func import grad, jacrev, jvp, vmap

import gradsmith as gs

from .operations import CANARIES, canary, closure, forward_canary, point

pytestmark = [
    # PyTorch about itself
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
]
X = point()
ONES = torch.ones_like(X)


class Canary(torch.autograd.Function):
    """x**4 with 10 x**3 as its derivative, in the style that torch.func wants."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**4

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 10 * dy * x**3


class ForwardCanary(Canary):
    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        return 10 * dx * x**3


@torch.library.custom_op("gradsmith_tests::fourth", mutates_args=())
def custom_op(x: torch.Tensor) -> torch.Tensor:
    return x**4


def _backward(ctx, dy):
    (x,) = ctx.saved_tensors
    return 10 * dy * x**3


custom_op.register_autograd(
    _backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


def compiled(f):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager")


def gradient(f, x=X, **options):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x, **options)[0]


def test_compiling_torch_func_grad_drops_the_rule():
    """#193279, LIVE in 2.13."""
    f = lambda op: grad(lambda x: op(x).sum())
    torch.testing.assert_close(f(Canary.apply)(X), 10 * X**3)
    torch.testing.assert_close(compiled(f(Canary.apply))(X), 4 * X**3)  # wrong
    for op in CANARIES:
        torch.testing.assert_close(compiled(f(op))(X), 10 * X**3)


def test_compiling_vmap_of_grad_drops_the_rule():
    torch.testing.assert_close(compiled(vmap(grad(Canary.apply)))(X), 4 * X**3)  # wrong
    for op in CANARIES:
        torch.testing.assert_close(compiled(vmap(grad(op)))(X), 10 * X**3)


def test_compiling_jvp_drops_the_rule():
    """#192985."""
    f = lambda op: lambda x: jvp(op, (x,), (ONES,))[1]
    torch.testing.assert_close(f(ForwardCanary.apply)(X), 10 * X**3)
    torch.testing.assert_close(compiled(f(ForwardCanary.apply))(X), 4 * X**3)  # wrong
    for op in CANARIES:
        torch.testing.assert_close(compiled(f(op))(X), 10 * X**3)


def test_a_function_with_a_jvp_is_not_compiled():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="custom jvp"):
        gradient(compiled(ForwardCanary.apply))
    torch.testing.assert_close(gradient(compiled(forward_canary)), 10 * X**3)


def test_export_drops_the_rule():
    def exported(op):
        class Net(torch.nn.Module):
            def forward(self, x):
                return op(x)

        return torch.export.export(Net(), (X,)).module()

    torch.testing.assert_close(gradient(exported(Canary.apply)), 4 * X**3)  # wrong
    torch.testing.assert_close(gradient(exported(canary)), 10 * X**3)


def test_forward_mode_of_a_custom_op_is_zero():
    """PR #131116, closed."""
    assert jvp(custom_op, (X,), (ONES,))[1].tolist() == [0, 0, 0]  # wrong
    torch.testing.assert_close(jvp(canary, (X,), (ONES,))[1], 10 * X**3)


def test_torch_func_of_a_custom_op_raises():
    """#179652, #168393, #170834."""
    for transform in (grad, jacrev):
        with pytest.raises(RuntimeError, match=r"functorch|setup_context"):
            transform(lambda x: custom_op(x).sum())(X)
        found = transform(lambda x: canary(x).sum())(X)
        torch.testing.assert_close(found, 10 * X**3)


def test_forward_over_forward_is_zero():
    twice = lambda op: jvp(lambda x: jvp(op, (x,), (ONES,))[1], (X,), (ONES,))[1]
    assert twice(ForwardCanary.apply).tolist() == [0, 0, 0]  # wrong
    for op in CANARIES:
        torch.testing.assert_close(twice(op), 30 * X**2)


def test_double_backward_through_what_was_saved():
    """#58509, #76185, #104040: the saved cube counts as a constant."""

    class Fourth(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            cube = x**3
            ctx.save_for_backward(cube)
            return cube * x

        @staticmethod
        def backward(ctx, dy):
            (cube,) = ctx.saved_tensors
            return 4 * dy * cube

    def second(f):
        x = torch.tensor(4.0, requires_grad=True)
        (dx,) = torch.autograd.grad(f(x) * x / 4, x, create_graph=True)
        return torch.autograd.grad(dx, x)[0]

    truth = 5 * 4**3  # (x**5 / 4)''
    assert second(lambda x: x**4) == truth
    assert second(Fourth.apply) != truth  # wrong
    assert second(closure) == truth


def test_a_gradient_of_the_wrong_shape_is_summed():
    """#78355."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * torch.ones(4, 3)

        @staticmethod
        def backward(ctx, dy):
            return dy

    x = torch.ones(3)
    assert gradient(Wrong.apply, x).tolist() == [4, 4, 4]  # by luck
    op = gs.custom_gradient(lambda x: (x * torch.ones(4, 3), lambda dy: dy))
    with pytest.raises(gs.GradientContractError, match=r"not summed over .* axis 0"):
        gradient(op, x)


def test_a_gradient_of_the_wrong_dtype_is_cast():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return dy.half()

    assert gradient(Wrong.apply).dtype == torch.float64
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: dy.half()))
    with pytest.raises(gs.GradientContractError, match="has the wrong dtype"):
        gradient(op)


def test_dicts_are_not_tracked():
    """#144159, #55509."""

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p):
            return p["x"] * 2

        @staticmethod
        def backward(ctx, dy):
            return {"x": 10 * dy}

    x = point(requires_grad=True)
    assert not Scale.apply({"x": x}).requires_grad  # wrong
    op = gs.custom_gradient(lambda p: (p["x"] * 2, lambda dy: {"x": 10 * dy}))
    assert gradient(lambda x: op({"x": x})).tolist() == [10, 10, 10]


def test_an_output_on_the_context_leaks():
    """#5569, #52140."""

    class Leaky(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = torch.exp(x)
            return ctx.y

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.y

    def lives_on(f):
        x = point(requires_grad=True)
        y = f(x)
        y.sum().backward()
        found = weakref.ref(x)
        del x, y
        return found() is not None

    @gs.custom_gradient
    def exp(x):
        y = torch.exp(x)
        return y, lambda dy: dy * y

    gc.collect()
    gc.disable()
    try:
        assert lives_on(Leaky.apply)
        assert not lives_on(exp)
    finally:
        gc.enable()


def test_old_style_functions_are_refused_by_torch_func():
    """state-spaces/mamba#239, flatironinstitute/pytorch-finufft#95."""

    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return dy

    with pytest.raises(RuntimeError, match="setup_context"):
        vmap(grad(Old.apply))(X)
    for op in CANARIES:
        torch.testing.assert_close(vmap(grad(op))(X), 10 * X**3)
