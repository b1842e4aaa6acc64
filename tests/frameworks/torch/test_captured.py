"""What a body captures: parameters, and tensors that were computed before."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs


class Layer(torch.nn.Module):
    """w x**2, with canaries in the rules."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(3.0))

    @gs.custom_gradient
    def closure(self, x):
        return self.weight * x**2, lambda dy: 20 * dy * self.weight * x

    @gs.operation
    def ruled(self, x):
        return self.weight * x**2

    @ruled.vjp
    def _(dy, y, self, x):  # noqa: N805
        return 20 * dy * self.weight * x

    @gs.custom_gradient
    def passed(self, x, weight):
        return weight * x**2, lambda dy: (20 * dy * weight * x, 10 * dy * x**2)

    @gs.custom_gradient
    def speaking(self, x):
        def grad(dy, variables):
            (weight,) = variables
            assert weight is self.weight
            return 20 * dy * weight * x, {"weight": 1000 * dy}

        return self.weight * x**2, grad


@pytest.fixture
def layer():
    return Layer()


@pytest.mark.parametrize("method", ["closure", "ruled"])
def test_captured_parameters_get_their_gradient_by_autodiff(layer, method):
    x = torch.tensor(2.0, requires_grad=True)
    getattr(layer, method)(x).backward()
    assert x.grad == 120
    assert layer.weight.grad == 4
    layer.weight.grad = None
    getattr(layer, method)(x.detach()).backward()
    assert layer.weight.grad == 4


@pytest.mark.parametrize("method", ["closure", "ruled"])
def test_mixed_second_derivatives(layer, method):
    """d/dx of dy/dw is 2x by autodiff; d/dw of dy/dx is 20x by the rule."""
    x = torch.tensor(2.0, requires_grad=True)
    y = getattr(layer, method)(x)
    dx, dw = torch.autograd.grad(y, (x, layer.weight), create_graph=True)
    assert (dx, dw) == (120, 4)
    assert torch.autograd.grad(dw, x, retain_graph=True)[0] == 4
    dxx, dxw = torch.autograd.grad(dx, (x, layer.weight))
    assert (dxx, dxw) == (60, 40)


def test_parameters_as_arguments(layer):
    x = torch.tensor(2.0, requires_grad=True)
    layer.passed(x, layer.weight).backward()
    assert (x.grad, layer.weight.grad) == (120, 40)


def test_variables(layer):
    x = torch.tensor(2.0, requires_grad=True)
    layer.speaking(x).backward()
    assert (x.grad, layer.weight.grad) == (120, 1000)
    layer.weight.grad = None
    layer.speaking(x.detach()).backward()
    assert layer.weight.grad == 1000


def test_variables_without_a_name():
    w = torch.tensor(3.0, requires_grad=True)
    op = gs.custom_gradient(lambda x: (x * w, lambda dy, variables: (dy, ["no"])))
    with pytest.raises(gs.GradientContractError, match=r"for 'variables\[0\]'"):
        op(torch.tensor(2.0)).backward()


def test_a_frozen_parameter_is_no_variable(layer):
    layer.weight.requires_grad_(False)
    op = gs.custom_gradient(
        lambda x: (
            x * layer.weight,
            lambda dy, variables=None: dy if not variables else 0,
        )
    )
    x = torch.tensor(2.0, requires_grad=True)
    op(x).backward()
    assert x.grad == 1


def test_captured_tensors_that_were_computed():
    w = torch.tensor(3.0, requires_grad=True)
    computed = w * 2
    op = gs.custom_gradient(lambda x: (x * computed, lambda dy: 10 * dy * computed))
    x = torch.tensor(2.0, requires_grad=True)
    dx, dw, dc = torch.autograd.grad(op(x), (x, w, computed), retain_graph=True)
    assert (dx, dw, dc) == (60, 4, 2)
    with pytest.raises(gs.UnsupportedOperationError, match="make that tensor an argum"):
        torch.autograd.grad(op(x), (x, w), create_graph=True)
    op = gs.custom_gradient(lambda x: (x * computed, lambda dy, variables: (dy, [])))
    with pytest.raises(gs.UnsupportedOperationError, match=r"computed before \(Mul"):
        op(x)


def test_a_parameter_itself_as_output(layer):
    op = gs.custom_gradient(lambda x: (layer.weight, lambda dy: 10 * dy))
    x = torch.tensor(2.0, requires_grad=True)
    op(x).backward()
    assert (x.grad, layer.weight.grad) == (10, 1)


def test_training_a_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 1)
            self.layer = Layer()

        def forward(self, x):
            return self.layer.closure(self.linear(x)).sum()

    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = net(torch.ones(4, 2))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_a_captured_tensor_of_inference_mode():
    """Autograd does not save it either, and says what to do."""
    with torch.inference_mode():
        scale = torch.tensor([3.0])
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: dy * scale))
    for _ in range(2):  # a first call goes the general way
        with pytest.raises(RuntimeError, match="make a clone to get a normal tensor"):
            op(torch.tensor([2.0], requires_grad=True))
