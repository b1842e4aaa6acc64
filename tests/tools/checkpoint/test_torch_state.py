"""What a second run finds on PyTorch: generators and buffers as the first one did."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradsmith as gs

torch = pytest.importorskip("torch")
functional = torch.nn.functional
spectral_norm = torch.nn.utils.parametrizations.spectral_norm


def noisy(x, rng=None):
    """Of degree 2 in x: whatever is drawn, the gradient times x is twice the value."""
    scale = 1.0 if rng is None else torch.tensor(rng.random(x.shape), dtype=x.dtype)
    return (functional.dropout(x, 0.5) * x * scale).sum()


def of_transforms(f, x):
    dx, y = torch.func.grad_and_value(f)(x)
    return y, (dx * x).sum()


def pushed(f, x):
    return torch.func.jvp(f, (x,), (x,))


def twice(f, x):
    """The gradient is linear in x, with the same numbers in it: its tangent is it."""
    dx, again = torch.func.jvp(torch.func.grad(f), (x,), (x,))
    return (dx * x).sum() / 2, (again * x).sum()


def mapped(f, x):
    x = torch.stack([x, 2 * x])
    with_value = torch.func.grad_and_value(f)
    dx, y = torch.func.vmap(with_value, randomness="different")(x)
    return y.sum(), (dx * x).sum()


def backward(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    return y.detach(), (torch.autograd.grad(y, x)[0] * x.detach()).sum()


@pytest.mark.parametrize("derive", [backward, of_transforms, pushed, twice, mapped])
@pytest.mark.parametrize("captured", [False, True])
def test_randomness_is_replayed_and_goes_on(derive, captured):
    x, after = torch.linspace(0.5, 2.0, 50, dtype=torch.float64), []
    rng = np.random.default_rng(1) if captured else None
    for wrap in (lambda f: f, gs.checkpoint):
        torch.manual_seed(0)
        y, dy = derive(wrap(lambda x: noisy(x, rng)), x)
        torch.testing.assert_close(dy, 2 * y, rtol=1e-12, atol=0)
        after.append((float(torch.rand(1)), float(y) if rng is None else 0.0))
    assert after[0] == after[1]


class Average(torch.nn.Module):
    """Reads what it updates, in place or by another tensor."""

    def __init__(self, in_place):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.in_place = in_place

    def forward(self, x):
        new = 0.5 * self.mean + 0.5 * x.detach().mean(0)
        if self.in_place:
            self.mean.copy_(new)
        else:
            self.mean = new
        return (x * new) ** 2


MODULES = {
    "spectral norm": lambda: torch.nn.Sequential(
        torch.nn.Linear(3, 64), spectral_norm(torch.nn.Linear(64, 64))
    ),
    "in place": lambda: Average(True),
    "another tensor": lambda: Average(False),
    "batch norm": lambda: torch.nn.BatchNorm1d(3),
}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_may_read_the_buffers_that_it_updates(name, verify):
    torch.manual_seed(0)
    original, found = MODULES[name](), []
    for wrap in (lambda f: f, lambda f: gs.checkpoint(f, verify=verify)):
        module = copy.deepcopy(original)
        x = torch.linspace(-1.0, 2.0, 12).reshape(4, 3).requires_grad_()
        # Two calls before the gradients: each starts from its own values.
        total = wrap(module)(x).square().sum() + wrap(module)(2 * x).square().sum()
        total.backward()
        buffers = [b.tolist() for b in module.buffers()]
        found.append((x.grad.tolist(), float(total.detach()), buffers))
    assert found[0] == found[1]


def test_lazy_modules_are_made_once():
    module = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyBatchNorm1d())
    gs.checkpoint(module)(torch.randn(4, 2)).sum().backward()
    assert module[1].num_batches_tracked == 1
