"""gs.checkpoint and gs.checkpoint_scan on PyTorch."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.checkpoint.schedule import forward_steps

torch = pytest.importorskip("torch")
forward_ad = torch.autograd.forward_ad

X = torch.linspace(0.1, 1.0, 5, dtype=torch.float64)
W = torch.linspace(1.0, 2.0, 5, dtype=torch.float64).requires_grad_()


def inside(x, scale=1.0, more=None, mode="a"):
    return {"a": torch.sin(x) * scale * W, "b": [torch.exp(x) * more["k"], 3, mode]}


def loss(fn):
    def total(x):
        y = fn(x, scale=2.0, more={"k": x * x}, mode="b")
        return torch.sum(y["a"] ** 2 + y["b"][0])

    return total


def backward(f):
    x = X.clone().requires_grad_()
    first = torch.autograd.grad(f(x), [x, W], create_graph=True)
    second = torch.autograd.grad((first[0] * first[1]).sum(), [x, W])
    return torch.cat([*first, *second])


def tangent(f):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(X.clone(), X))).tangent


def compiled(f):
    x = X.clone().requires_grad_()
    y = torch.compile(f, fullgraph=True, backend="aot_eager")(x)
    return torch.cat(torch.autograd.grad(y, [x, W]))


DERIVATIVES = {
    "backward, twice": backward,
    "forward": tangent,
    "compiled": compiled,
    "func.grad": lambda f: torch.func.grad(f)(X),
    "func.hessian": lambda f: torch.func.hessian(f)(X),
    "func.jvp": lambda f: torch.func.jvp(f, (X,), (X,))[1],
    "vmap": lambda f: torch.func.vmap(torch.func.grad(f))(torch.stack([X, 2 * X])),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_those_of_the_function(name):
    derive = DERIVATIVES[name]
    expected = derive(loss(inside)).detach()
    ours = derive(loss(gs.checkpoint(inside))).detach()
    torch.testing.assert_close(ours, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_one_inside_another(name):
    def plain(x):
        return torch.sin(torch.exp(torch.sin(x) * W))

    @gs.checkpoint
    def outer(x):
        return torch.sin(gs.checkpoint(torch.exp)(torch.sin(x) * W))

    expected, ours = (
        DERIVATIVES[name](lambda x, f=f: torch.sum(f(x) ** 2)).detach()
        for f in (plain, outer)
    )
    torch.testing.assert_close(ours, expected, rtol=1e-14, atol=1e-16)


def test_nothing_of_the_inside_is_alive_between_the_passes():
    alive = []

    def deep(x):
        for _ in range(3):
            x = torch.tanh(x)
            alive.append(weakref.ref(x))
        return x.sum()

    y = gs.checkpoint(deep)(X.clone().requires_grad_())
    gc.collect()
    assert [each() for each in alive] == [None] * 3
    assert y.requires_grad


WRAPS = [
    lambda f: f,
    gs.checkpoint,
    lambda f: gs.checkpoint(f, verify=True),
]


def test_randomness_is_replayed_and_goes_on():
    found = []
    for wrap in WRAPS:
        torch.manual_seed(0)
        captured = torch.Generator().manual_seed(1)
        rng = np.random.default_rng(2)

        def noisy(x, rng, captured=captured):
            noise = torch.randn(5) * torch.randn(5, generator=captured)
            return torch.sum(torch.sin(x) * noise * torch.tensor(rng.normal(size=5)))

        x = X.clone().requires_grad_()
        wrap(noisy)(x, rng).backward()
        after = torch.rand(1), torch.rand(1, generator=captured), rng.random()
        found.append((x.grad.tolist(), *map(float, after)))
    assert found[0] == found[1] == found[2]


def test_modules_with_dropout_and_batch_statistics():
    torch.manual_seed(0)
    original = torch.nn.Sequential(
        torch.nn.Linear(3, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(4, 1),
    )
    x, found = torch.randn(6, 3), []
    for wrap in WRAPS:
        torch.manual_seed(1)
        model = copy.deepcopy(original)
        wrap(model)(x).square().sum().backward()
        gradients = [p.grad.tolist() for p in model.parameters()]
        found.append((gradients, model[1].running_mean.tolist()))
    assert found[0] == found[1] == found[2]


def test_verify_finds_what_differs():
    n = [0]

    def counting(x):
        n[0] += 1
        return (x * n[0]).sum()

    with pytest.raises(gs.GradsmithError, match="'counting' computes something else"):
        gs.checkpoint(counting, verify=True)(X.clone().requires_grad_())
    with pytest.raises(gs.GradsmithError, match="transforms hide"):
        torch.func.grad(gs.checkpoint(torch.sum, verify=True))(X)


def test_a_module_may_be_called_with_nothing_of_torch():
    layer = torch.nn.Linear(2, 1)
    called = gs.checkpoint(lambda x: layer(torch.as_tensor(x)).sum())
    called(np.ones((3, 2), np.float32)).backward()
    np.testing.assert_array_equal(layer.weight.grad, [[3.0, 3.0]])


def test_a_scan_is_the_loop_in_revolves_number_of_steps():
    n = [0]

    def step(s, i):
        n[0] += 1
        return {"u": s["u"] + 0.1 * torch.sin(s["v"] * W) * i, "v": s["v"] * 0.9}

    def ours(u):
        s = gs.checkpoint_scan(step, {"u": u, "v": u}, 40, snapshots=4)
        return torch.sum(s["u"] * s["v"])

    def loop(u):
        s = {"u": u, "v": u}
        for i in range(40):
            s = step(s, i)
        return torch.sum(s["u"] * s["v"])

    found = []
    for f in (loop, ours):
        n[0] = 0
        x = X.clone().requires_grad_()
        found.append(torch.cat(torch.autograd.grad(f(x), [x, W])))
    torch.testing.assert_close(*found, rtol=1e-14, atol=0)
    assert n[0] == forward_steps(40, 4)
