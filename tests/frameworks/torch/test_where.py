"""`ops.safe_where` under torch.compile: the value of x, the gradient of a masked x."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, hessian, jvp, vmap

import gradsmith.numpy as gnp
from gradsmith import ops

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.torch._prims_common.check. is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
]
X = torch.tensor([[-1.0, 0.0, 1.0, 2.0], [0.0, 4.0, -3.0, 0.5]])


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def log(x):
    return ops.safe_where(x > 0, gnp.log, x, -7.0)


def compiled(f, backend="aot_eager"):
    return torch.compile(f, backend=backend, fullgraph=True)


def both(f, x=X):
    """The value and its gradient."""
    x = x.clone().requires_grad_()
    y = f(x)
    (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
    return y.detach(), dx


def same(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=0)


def test_nothing_is_chosen_in_front_of_a_long_function():
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    made = []

    def keep(graph, _):
        made.append([str(node.target) for node in graph.graph.nodes])
        return make_boxed_func(graph)

    backend = aot_autograd(
        fw_compiler=keep, partition_fn=min_cut_rematerialization_partition
    )
    both(compiled(log, backend))
    forward, backward = made
    assert forward.count("aten.log.default") == forward.count("aten.where.self") == 1
    assert "aten.log.default" not in backward


TRANSFORMED = {
    "reverse": grad(lambda x: log(x).sum()),
    "second order": hessian(lambda x: log(x).sum()),
    "forward": lambda x: jvp(log, (x,), (torch.ones_like(x),)),
    "vmap": vmap(log),
    "vmap of reverse": vmap(grad(lambda x: log(x).sum())),
}


@pytest.mark.parametrize("f", TRANSFORMED.values(), ids=TRANSFORMED)
def test_transformed(f):
    same(compiled(f)(X), f(X))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("fn", [gnp.log, gnp.sqrt, gnp.exp, gnp.reciprocal])
def test_value_and_gradient(fn, dtype):
    def f(x):
        return ops.safe_where(x > 0, fn, x)

    x = X.to(dtype)
    for got, expected in zip(both(compiled(f), x), both(f, x), strict=True):
        torch.testing.assert_close(got, expected)
        assert got.isfinite().all()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_no_nan_is_seen_on_the_way_back(backend):
    expected = both(log)
    with torch.autograd.set_detect_anomaly(True):
        same(both(compiled(log, backend)), expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_forward_mode_once_it_is_compiled(backend):
    f = compiled(log, backend)
    f(X)
    with forward_ad.dual_level():
        dual = f(forward_ad.make_dual(X, torch.ones_like(X)))
        tangent = forward_ad.unpack_dual(dual).tangent
        same(tangent, both(log)[1])


@pytest.mark.parametrize("strict", [False, True])
def test_exported(strict):
    class Model(torch.nn.Module):
        def forward(self, x):
            return log(x)

    exported = torch.export.export(Model(), (X,), strict=strict)
    same(both(exported.module()), both(log))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_x_may_be_changed_in_place_afterwards(backend):
    def f(x):
        x = x * 1
        y = log(x)
        x.mul_(2)
        return y

    same(both(compiled(f, backend)), both(log))


def test_open_shapes():
    f = torch.compile(log, backend="aot_eager", fullgraph=True, dynamic=True)
    for n in (4, 3, 1):
        x = X[:, :n].contiguous()
        same(both(f, x), both(log, x))


ROW = torch.tensor([True, False, True, True])
MASKS = {
    "of a row": (lambda x: ops.safe_where(ROW, gnp.exp, x), X),
    "of more than x": (lambda x: ops.safe_where(X > 1, gnp.exp, x), X[0]),
    "of another precision": (
        lambda x: ops.safe_where(x > 0, gnp.exp, x, at=torch.ones((), dtype=float)),
        X,
    ),
}


@pytest.mark.parametrize(("f", "x"), MASKS.values(), ids=MASKS)
def test_masks(f, x):
    same(both(compiled(f), x), both(f, x))


def test_whole_numbers():
    def f(x):
        return ops.safe_where(x > 0, gnp.square, x)

    x = torch.tensor([0, 1, 4])
    same(compiled(f)(x), f(x))


def test_what_a_function_captures_has_its_gradient():
    def f(a):
        return ops.safe_where(X > 0, lambda x: a * gnp.log(x), X)

    a = torch.tensor(2.0)
    same(both(compiled(f), a), both(f, a))


@pytest.mark.parametrize("fn", [torch.log, torch.nn.Softplus(), ops.sqrt])
def test_functions_of_others(fn):
    def f(x):
        return ops.safe_where(x > 0, fn, x)

    same(both(compiled(f)), both(f))


def test_a_function_of_others_is_called_once():
    calls = []

    def noisy(x):
        calls.append(1)
        return x * torch.rand_like(x)

    y, dx = both(compiled(lambda x: ops.safe_where(x > 0, noisy, x)))
    same(y, dx * X)
    assert len(calls) == 1
