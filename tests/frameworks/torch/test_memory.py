"""Who sees whose memory: aliases, changes in place, and what a gradient holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.func import grad, jacfwd, jacrev, jvp, vmap

import gradsmith as gs

from .operations import point, writes_into_its_own, writing

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

X = point()


# --- aliases -------------------------------------------------------------------------


@gs.operation
def ruled(x):
    return x


@ruled.vjp
def _(dy, y, x):
    return 10 * dy


ALIASES = {
    "itself": gs.custom_gradient(lambda x: (x, lambda dy: 10 * dy)),
    "a view": gs.custom_gradient(lambda x: (x.view(-1), lambda dy: 10 * dy)),
    "a part": gs.custom_gradient(lambda x: (x[:], lambda dy: 10 * dy)),
    "ruled": ruled,
    "among others": gs.custom_gradient(lambda x: ((x, 1), lambda dy: 10 * dy[0])),
}


def first(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("op", ALIASES.values(), ids=ALIASES.keys())
def test_an_output_that_is_an_argument_is_not_changed_in_place(op):
    x = point(requires_grad=True)
    y = first(op(x))
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y.mul_(3)
    z = first(op(x * 1))
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        z[0] = 3
    first(op(x)).sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


def test_a_detached_argument_as_output_is_watched():
    op = gs.custom_gradient(lambda x: (x.detach(), lambda dy: 10 * dy))
    x = point(requires_grad=True)
    y = op(x * 1).mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    op(x).sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


def test_an_argument_without_gradient_as_output():
    op = gs.custom_gradient(lambda x, b: (b, lambda dy: (10 * dy, None)))
    y = op(point(requires_grad=True), X)
    with pytest.raises(RuntimeError, match="is a view"):
        y.mul_(3)


def test_an_output_of_its_own_is_changed_in_place():
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: 20 * x * dy))
    x = point(requires_grad=True)
    torch.relu_(op(x)).sum().backward()
    torch.testing.assert_close(x.grad, 20 * X)


def test_an_imaginary_part_as_output():
    op = gs.custom_gradient(lambda z: (z.imag, lambda dy: 10j * dy))
    z = torch.tensor([1 + 2j], requires_grad=True)
    op(z).mul_(3).sum().backward()
    assert z.tolist() == [1 + 2j]
    assert z.grad.tolist() == [30j]


# --- bodies that change things -------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"scale": 2}])
def test_a_body_does_not_change_its_argument(options):
    @gs.custom_gradient
    def op(x, *, scale=1):
        x.mul_(2)
        return x * scale, lambda dy: 2 * dy

    with pytest.raises(gs.UnsupportedOperationError, match=r"in place.*\n.*x\.clone"):
        op(point(requires_grad=True) * 1, **options)


def test_a_body_may_change_what_has_no_gradient():
    @gs.custom_gradient
    def op(x, seen):
        seen += 1
        return x * 1, lambda dy: (10 * dy, None)

    seen = torch.zeros(())
    op(point(requires_grad=True), seen).sum().backward()
    assert seen == 1


def test_a_captured_parameter_that_changed_is_noticed():
    w = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))

    @gs.custom_gradient
    def op(x):
        return x * w.detach(), lambda dy: dy * w

    y = op(point(requires_grad=True))
    with torch.no_grad():
        w.mul_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# --- gradients that hold tensors in objects ------------------------------------------


def multiply(e, dy):
    return dy * e


class Multiply:
    def __init__(self, e):
        self.e = e

    def __call__(self, dy):
        return dy * self.e

    def method(self, dy):
        return dy * self.e


class Slotted:
    __slots__ = ("e",)


@dataclass
class Record:
    e: torch.Tensor


def in_slots(e):
    held = Slotted()
    held.e = e
    return lambda dy: dy * held.e


def in_namespace(e):
    held = SimpleNamespace(parts=[e])
    return lambda dy: dy * held.parts[0]


def in_record(e):
    held = Record(e)
    return lambda dy: dy * held.e


HOLDERS = {
    "partial": lambda e: partial(multiply, e),
    "partial keywords": lambda e: partial(lambda dy, e: dy * e, e=e),
    "callable": Multiply,
    "method": lambda e: Multiply(e).method,
    "slots": in_slots,
    "namespace": in_namespace,
    "dataclass": in_record,
}
SECOND = {
    "grad(grad)": lambda f: grad(grad(f)),
    "third": lambda f: grad(grad(grad(f))),
    "jacfwd(jacrev)": lambda f: jacfwd(jacrev(f)),
    "jacrev(jacfwd)": lambda f: jacrev(jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: jacfwd(jacfwd(f)),
    "vmap": lambda f: lambda x: vmap(grad(grad(f)))(x[None])[0],
    "grad(vmap)": lambda f: grad(grad(lambda x: vmap(f)(x[None]).sum())),
}


def held_by(holder):
    @gs.custom_gradient
    def exp(x):
        e = torch.exp(x)
        return e.clone(), holder(e)

    return exp


@pytest.mark.parametrize("transform", SECOND.values(), ids=SECOND.keys())
@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_higher_orders_under_torch_func(holder, transform):
    """Zero, silently, if what the object holds counts as a constant."""
    found = transform(held_by(holder))(X[0])
    torch.testing.assert_close(found, torch.exp(X[0]))


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_changes_in_place_are_noticed(holder):
    @gs.custom_gradient
    def exp(x):
        e = torch.exp(x)
        return e, holder(e)

    x = point(requires_grad=True)
    (dx,) = torch.autograd.grad(exp(x).sum(), x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(dx.sum(), x)[0], torch.exp(X))
    y = exp(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# --- what changed until the gradient is differentiated -------------------------------


def test_a_random_body_under_torch_func():
    @gs.custom_gradient
    def noisy(x):
        r = torch.rand_like(x) * x
        return r * x, lambda dy: 2 * r * dy

    y, dy = jvp(noisy, (X,), (X,))  # first order is right
    torch.testing.assert_close(dy, 2 * y)
    with pytest.raises(gs.UnsupportedOperationError, match="it is random"):
        grad(lambda x: grad(lambda x: noisy(x).sum())(x).sum())(X)
    with pytest.raises(gs.UnsupportedOperationError, match="it is random"):
        jvp(grad(lambda x: noisy(x).sum()), (X,), (X,))


@pytest.mark.parametrize("scale", [2.0, torch.tensor(2.0)])
@pytest.mark.parametrize("options", [{}, {"scale": 1}])
def test_a_body_that_depends_on_something_that_changed(scale, options):
    state = {"scale": scale}

    @gs.custom_gradient
    def op(x, *, scale=1):
        scale = state["scale"]
        return x * scale, lambda dy: dy * scale

    x = point(requires_grad=True)
    y = op(x, **options)
    state["scale"] = scale * 3
    assert torch.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == [2, 2, 2]
    with pytest.raises(gs.UnsupportedOperationError, match="something that changed"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def test_in_rule_form_no_body_runs_again():
    runs = []

    @gs.operation
    def exp(x):
        runs.append(1)
        return torch.exp(x) * torch.rand_like(x)

    exp.vjp(lambda dy, y, x: dy * y)
    x = point(requires_grad=True)
    y = exp(x)
    (dx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(dx, y)
    torch.testing.assert_close(torch.autograd.grad(dx.sum(), x)[0], y)
    assert len(runs) == 1


# --- rules that change what they are given -------------------------------------------


@pytest.mark.parametrize("options", [{}, {"scale": 2}], ids=["quick", "general"])
@pytest.mark.parametrize("form", ["closure", "rule"])
def test_a_rule_that_changes_what_it_is_given(form, options):
    op, x = writing(form), point(requires_grad=True)
    y = op(x, **options) + op(x * 1, **options)  # one upstream gradient for both
    with pytest.raises(gs.UnsupportedOperationError, match=r"in place.*\n.*dy\.clone"):
        y.backward(torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("form", ["closure", "rule"])
def test_a_rule_that_changes_what_it_is_given_under_torch_func(form):
    op = writing(form)
    run = torch.func.grad(lambda x: (op(x) * x + op(x * 1) * x).sum())
    with pytest.raises(Exception, match="in place"):
        run(point())


@pytest.mark.parametrize("options", [{}, {"scale": 2}], ids=["quick", "general"])
def test_a_rule_may_change_what_it_made(options):
    x = point(requires_grad=True)
    writes_into_its_own(x, **options).backward(torch.ones_like(x))
    assert x.grad.tolist() == [0, 20, 20]


def test_an_upstream_gradient_from_inference_mode():
    x = point(requires_grad=True)
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: 10 * x * dy))
    with torch.inference_mode():
        dy = torch.ones_like(x)
    (dx,) = torch.autograd.grad(op(x), x, dy)
    torch.testing.assert_close(dx, 10 * x.detach())
