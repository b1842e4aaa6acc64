"""What PyTorch's own mechanisms do with a rule."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.survival import survey

torch = pytest.importorskip("torch")

X = np.float32([0.5, 1.5, -2.0])


class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        return 2 * ctx.saved_tensors[0] * dy


class New(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        return 2 * ctx.saved_tensors[0] * dy


class OwnVmap(torch.autograd.Function):
    """Its vmap applies the class by its name."""

    forward, setup_context, backward = New.forward, New.setup_context, New.backward

    @staticmethod
    def vmap(info, in_dims, x):
        return OwnVmap.apply(x), in_dims[0]


@torch.library.custom_op("gradsmith_tests::square", mutates_args=())
def custom_square(x: torch.Tensor) -> torch.Tensor:
    return x * x


custom_square.register_fake(lambda x: torch.empty_like(x))
custom_square.register_autograd(
    lambda ctx, dy: 2 * ctx.saved_tensors[0] * dy,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def column(name):
    return dict(survey("torch").columns)[name]


def by_verdict(survival):
    found = {"honoured": [], "dropped": [], "refused": [], "wrong": [], "unclear": []}
    for outcome in survival.outcomes:
        found[outcome.verdict].append(outcome.transformation)
    return found


# --- autograd.Function ---------------------------------------------------------------


def test_a_function_with_both_rules():
    """pt#193279, #192985: the compiler drops it without a word; so does the export."""
    survival = column("autograd.Function")
    found = by_verdict(survival)
    assert found["dropped"] == [
        "compile(func.grad)",
        "compile(func.jvp)",
        "compile(func.vmap(grad))",
        "export, then backward",
    ]
    assert not found["refused"]
    assert len(found["honoured"]) == len(survival.outcomes) - 4 == 14
    assert survival["compile, then backward"].detail == "with a graph break"


def test_a_function_without_a_forward_rule():
    names = ["backward", "func.jvp", "dual numbers", "func.jacfwd", "compile(func.jvp)"]
    found = by_verdict(gs.survives(New.apply, X, only=names))
    assert found["honoured"] == ["backward"]
    assert found["refused"] == ["func.jvp", "dual numbers", "func.jacfwd"]
    assert found["dropped"] == ["compile(func.jvp)"]


def test_a_function_of_the_old_kind():
    names = ["backward", "func.grad", "func.vmap(grad)", "compile, then backward"]
    survival = gs.survives(Old, X, only=names)
    verdicts = [outcome.verdict for outcome in survival.outcomes]
    assert verdicts == ["honoured", "refused", "refused", "honoured"]
    assert "setup_context" in survival["func.grad"].detail


def test_a_vmap_that_applies_the_class_by_its_name():
    before = dict(vars(OwnVmap))
    survival = gs.survives(OwnVmap, X, only=["backward", "func.grad(vmap)"])
    assert survival.count("honoured") == 2, str(survival)
    assert dict(vars(OwnVmap)) == before


def test_saved_intermediates_make_double_backward_wrong():
    """pt#58509: silently wrong, since what forward computed is a constant."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            squared = x * x
            ctx.save_for_backward(squared)
            return squared * x

        @staticmethod
        def backward(ctx, dy):
            return 3 * ctx.saved_tensors[0] * dy

    survival = gs.survives(Cube, X, only=["backward", "double backward"])
    assert survival["backward"].verdict == "honoured"
    assert survival["double backward"].verdict == "wrong"


def test_several_inputs_static_ones_integers_and_outputs():
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index, factor, w):
            ctx.save_for_backward(x, w)
            ctx.factor = factor
            ctx.mark_non_differentiable(index)
            return factor * x * w, x + 1, index

        @staticmethod
        def backward(ctx, dz, dw, _):
            x, w = ctx.saved_tensors
            return ctx.factor * w * dz + dw, None, None, ctx.factor * x * dz

    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    survival = gs.survives(
        Op, x, torch.tensor([1, 0]), 2.0, w, only=["backward", "double backward"]
    )
    assert survival.count("honoured") == 2, str(survival)
    assert x.grad is None


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "complex64"])
def test_dtypes(dtype):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * ctx.saved_tensors[0].conj() * dy

    x = torch.tensor([0.5, 1.5, -2.0], dtype=getattr(torch, dtype))
    survival = gs.survives(Square, x, only=["backward", "double backward"])
    assert survival.count("honoured") == 2, str(survival)


def test_an_argument_that_is_not_used_does_not_break_the_export():
    @torch.library.custom_op("gradsmith_tests::first", mutates_args=())
    def first(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x * x

    first.register_fake(lambda x, index: torch.empty_like(x))
    first.register_autograd(
        lambda ctx, dy: (2 * ctx.saved_tensors[0] * dy, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    survival = gs.survives(first, X, np.array([1]), only="export, then backward")
    assert survival["export, then backward"].verdict == "honoured", str(survival)


# --- library.custom_op ---------------------------------------------------------------


def test_a_custom_op_drops_its_rule_in_forward_mode():
    found = by_verdict(column("custom_op"))
    forward = ["func.jvp", "dual numbers", "func.jacfwd", "compile(func.jvp)"]
    assert found["dropped"] == forward
    assert "func.grad" in found["refused"]  # pt#168393
    for name in ("backward", "double backward", "export, then backward"):
        assert name in found["honoured"]


def test_a_tangent_of_zero_is_a_drop():
    survival = gs.survives(custom_square, X, only=["func.jvp"])
    assert "the result is zero; the rule gives" in survival["func.jvp"].detail


def test_a_custom_op_by_its_registered_name():
    op = torch.ops.gradsmith_tests.square
    for each in (op, op.default):
        survival = gs.survives(each, X, only=["backward"])
        assert survival["backward"].verdict == "honoured"
        assert survival.operation == "gradsmith_tests::square"


def test_a_custom_op_without_a_rule():
    @torch.library.custom_op("gradsmith_tests::bare", mutates_args=())
    def bare(x: torch.Tensor) -> torch.Tensor:
        return x * x

    survival = gs.survives(bare, X, only=["backward", "func.jvp"])
    assert "register_autograd" in survival.note
    assert survival["backward"].verdict == "refused"
    assert "no autograd formula" in survival["backward"].detail


# --- what is left behind -------------------------------------------------------------


def test_the_rule_is_put_back_also_after_an_exception():
    rule = custom_square._backward_fn
    with pytest.raises(KeyboardInterrupt):
        gs.survives(Interrupting(), X)
    gs.survives(custom_square, X, only=["backward", "func.grad", "func.jvp"])
    assert custom_square._backward_fn is rule

    def interrupting(ctx, dy):
        raise KeyboardInterrupt

    custom_square._backward_fn = interrupting
    try:
        with pytest.raises(KeyboardInterrupt):
            gs.survives(custom_square, X, only=["backward"])
        assert custom_square._backward_fn is interrupting
    finally:
        custom_square._backward_fn = rule


class Interrupting(torch.nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt


def test_compiled_functions_of_the_caller_stay_compiled():
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    double = torch.compile(lambda x: 2 * x, backend=backend)
    double(torch.ones(3))
    for _ in range(2):  # more often than the compiler compiles one code again
        found = gs.survives(New, X, only=["compile, then backward", "backward"])
        assert found["compile, then backward"].detail == ""  # as a whole
    double(torch.ones(3))
    assert len(compiled) == 1


def test_a_module_is_pytorchs_and_cannot_be_silenced():
    class Layer(torch.nn.Module):
        def forward(self, x):
            return 3 * New.apply(x)

    survival = gs.survives(Layer(), X, only=["backward", "func.jvp"])
    assert survival.framework == "PyTorch"
    assert [o.verdict for o in survival.outcomes] == ["unclear", "refused"]
