"""Births in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

torch = pytest.importorskip("torch")


def entropy(p):
    logs = torch.log(p)
    return -(p * logs).sum()


def masked(x):
    roots = torch.sqrt(x)
    return torch.where(x > 0, roots, 0.0).sum()


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        half = x * 0.5
        return dy / half


@gs.custom_gradient
def root(x):
    y = gnp.sqrt(x)

    def grad(dy):
        slope = 2 * y
        return dy / slope

    return y, grad


def test_forward():
    report = gs.find_nan(entropy, torch.tensor([0.5, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("log", "forward", "inf")
    assert report.where.file == __file__
    assert report.where.source == "logs = torch.log(p)"
    assert str(report.inputs[0]) == "x[1] = 0.0"
    assert "becomes NaN in mul" in report.explanation


@pytest.mark.parametrize(
    "wrap",
    [lambda fn: fn, lambda fn: torch.compile(fn, backend="eager")],
    ids=["eager", "compile"],
)
def test_masked_branch(wrap):
    report = gs.find_nan(wrap(masked), torch.tensor([4.0, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("sqrt", "backward", "nan")
    assert report.where.source == "roots = torch.sqrt(x)"
    assert report.masked
    assert report.mask.source.startswith("return torch.where")
    assert "torch.where(mask, f(safe), 0.0)" in report.repair
    assert report.reaches == ("the gradient of x",)


def test_backward_without_a_mask():
    report = gs.find_nan(lambda x: torch.sqrt(x).sum(), torch.tensor([0.0]))
    assert (report.phase, report.kind, report.masked) == ("backward", "inf", False)


def test_a_mask_elsewhere_is_not_to_blame():
    def f(x):
        norms = torch.sqrt(torch.sum(x * x, -1))
        return torch.where(norms < 5, norms, 0.0).sum()

    report = gs.find_nan(f, torch.tensor([[0.0, 0.0], [6.0, 8.0]]))
    assert report.phase == "backward"
    assert not report.masked  # the second row is masked, the first is bad

    def masked_rows(x):
        norms = torch.linalg.vector_norm(x / x[:, :1], dim=-1)
        return torch.where(x[:, 0] != 0, norms, 0.0).sum()

    report = gs.find_nan(masked_rows, torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    assert report.masked
    assert report.phase == "backward"


def test_what_the_value_survived():
    report = gs.find_nan(lambda x: 1 / (1 + torch.exp(x)), torch.tensor([1000.0]))
    assert (report.operation, report.phase) == ("exp", "backward")
    assert (
        "the inf among its inputs is from the forward pass: exp" in report.explanation
    )


@pytest.mark.parametrize("call", [Double, Double.apply], ids=["class", "apply"])
def test_native_rule(call):
    report = gs.find_nan(call, torch.tensor([0.0, 1.0]))
    assert (report.operation, report.phase) == ("div", "backward")
    assert report.where.source == "return dy / half"
    assert report.where.function == "backward"


def test_rule_of_ours():
    report = gs.find_nan(lambda x: (3 * root(x)).sum(), torch.tensor([0.0, 1.0]))
    assert report.where.source == "return dy / slope"
    assert str(report.inputs[0]) == "x1[0] = 3.0"


def test_python_operation():
    @gs.python_op
    def log(x):
        return np.log(x)

    report = gs.find_nan(log, torch.tensor([0.0]))
    assert report.where.source == "return np.log(x)"


def test_in_place():
    def f(x):
        y = x * 1
        y.log_()
        return y

    report = gs.find_nan(f, torch.tensor([0.0]))
    assert report.where.source == "y.log_()"
    assert str(report.inputs[0]) == "x[0] = 0.0"


def test_parameters_of_a_module():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.zeros(2))

        def forward(self, features):
            return (features * torch.sqrt(self.scale)).sum()

    report = gs.find_nan(Scale(), torch.ones(2))
    assert report.reaches == ("the gradient of scale",)
    assert "sqrt(self.scale)" in report.where.source


def test_sum_of_gradients():
    def twice(x):
        return 3e38 * x.sum() + 3e38 * (x - 1).sum()

    report = gs.find_nan(twice, torch.tensor([0.0]))
    assert report.operation.startswith("the sum of the gradients")


def test_an_inf_on_purpose_is_not_to_blame():
    def attention(x):
        scores = x.masked_fill(torch.tensor([True, True]), float("-inf"))
        return torch.softmax(scores, 0)

    report = gs.find_nan(attention, torch.ones(2))
    assert (report.operation, report.kind) == ("softmax", "nan")
    assert "was a constant of masked_fill" in report.explanation


def test_a_number_of_python():
    report = gs.find_nan(lambda x: torch.log(x).sum().item(), torch.tensor([0.0]))
    assert report.operation == "log"
    assert "can't be followed" in report.notes[0]


def test_zeros_that_are_none():
    def twice(x):
        (dx,) = torch.autograd.grad((x.abs() ** 1.5).sum(), x, create_graph=True)
        return dx.sum()

    assert gs.find_nan(twice, torch.tensor([0.0, 1.0])).found


def test_the_users_exception_in_the_backward_pass():
    def changed(x):
        y = torch.sqrt(x)
        return y.mul_(2)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gs.find_nan(changed, torch.tensor([1.0]))


def test_half_precisions():
    report = gs.find_nan(lambda x: x * 1000, torch.tensor([100.0], dtype=torch.half))
    assert "larger than float16 can hold" in report.explanation
    report = gs.find_nan(torch.exp, torch.tensor([100.0], dtype=torch.bfloat16))
    assert report.operation == "exp"


def test_clean():
    assert gs.find_nan(masked, torch.tensor([4.0, 1.0])).ok
    report = gs.find_nan(lambda x: x.detach(), torch.tensor([4.0]))
    assert report.ok
    assert "does not depend on the inputs" in report.notes[0]


def test_given():
    report = gs.find_nan(masked, torch.tensor([float("nan"), 1.0]))
    assert (report.phase, report.operation) == ("argument", "x")
    report = gs.find_nan(torch.log, np.array([0.0]), framework="torch")
    assert report.framework == "PyTorch"


def test_all_is_undone():
    x = torch.tensor([1.0])
    with pytest.raises(ZeroDivisionError):
        gs.find_nan(lambda x: 1 / 0, x)
    gs.find_nan(masked, x)
    assert not torch.is_anomaly_enabled()
    assert not x.requires_grad
