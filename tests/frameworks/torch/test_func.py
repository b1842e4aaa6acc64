"""torch.func and forward mode: every transformation goes by the rule."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

import gradsmith as gs

from .operations import CANARIES, FOURTH, canary, captures_output, name, point

# torch.func.jvp scripts its decompositions when it is first used, and linearize folds
# constants, with warnings of PyTorch about itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),
]

X = point()
ONES = torch.ones_like(X)
BATCH = X.expand(2, 3)
# Each with what it is for x**4
TRANSFORMS = {
    "grad": (lambda f: grad(lambda x: f(x).sum())(X), 4 * X**3),
    "vjp": (lambda f: vjp(f, X)[1](ONES)[0], 4 * X**3),
    "jvp": (lambda f: jvp(f, (X,), (X,))[1], 4 * X**4),
    "linearize": (lambda f: linearize(f, X)[1](X), 4 * X**4),
    "vmap": (lambda f: vmap(f)(BATCH), BATCH**4),
    "jacrev": (lambda f: jacrev(f)(X), torch.diag(4 * X**3)),
    "jacfwd": (lambda f: jacfwd(f)(X), torch.diag(4 * X**3)),
    "vmap grad": (lambda f: vmap(grad(f))(X), 4 * X**3),
    "vmap jvp": (lambda f: vmap(lambda x: jvp(f, (x,), (x,))[1])(X), 4 * X**4),
    "grad vmap": (lambda f: grad(lambda x: vmap(f)(x).sum())(BATCH), 4 * BATCH**3),
    "vmap vmap grad": (lambda f: vmap(vmap(grad(f)))(BATCH), 4 * BATCH**3),
    "in_dims": (
        lambda f: vmap(grad(lambda x: f(x).sum()), in_dims=1, out_dims=1)(BATCH),
        4 * BATCH**3,
    ),
    "grad grad": (
        lambda f: grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(X),
        12 * X**2,
    ),
    "hessian": (lambda f: hessian(lambda x: f(x).sum())(X), torch.diag(12 * X**2)),
    "jacrev jacrev": (
        lambda f: jacrev(jacrev(lambda x: f(x).sum()))(X),
        torch.diag(12 * X**2),
    ),
    "jacfwd jacfwd": (
        lambda f: jacfwd(jacfwd(lambda x: f(x).sum()))(X),
        torch.diag(12 * X**2),
    ),
    "jacrev jacfwd": (
        lambda f: jacrev(jacfwd(lambda x: f(x).sum()))(X),
        torch.diag(12 * X**2),
    ),
    "jvp grad": (
        lambda f: jvp(grad(lambda x: f(x).sum()), (X,), (X,))[1],
        12 * X**3,
    ),
    "grad jvp": (
        lambda f: grad(lambda x: jvp(f, (x,), (ONES,))[1].sum())(X),
        12 * X**2,
    ),
    "jvp jvp": (
        lambda f: jvp(lambda x: jvp(f, (x,), (ONES,))[1], (X,), (ONES,))[1],
        12 * X**2,
    ),
    "jvp vmap grad": (lambda f: jvp(vmap(grad(f)), (X,), (ONES,))[1], 12 * X**2),
    "jvp vmap jvp": (
        lambda f: jvp(vmap(lambda x: jvp(f, (x,), (x,))[1]), (X,), (ONES,))[1],
        16 * X**3,
    ),
    "vmap jvp grad": (
        lambda f: vmap(lambda x: jvp(grad(f), (x,), (x,))[1])(X),
        12 * X**3,
    ),
    "grad grad grad": (
        lambda f: vmap(grad(grad(grad(f))))(X),
        24 * X,
    ),
    "vmap hessian": (lambda f: vmap(hessian(f))(X), 12 * X**2),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("op", FOURTH, ids=name)
def test_transformations(transform, op):
    apply, expected = TRANSFORMS[transform]
    torch.testing.assert_close(apply(op), expected)


FIRST_ORDER = ["grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "vmap grad"]
FIRST_ORDER += ["vmap jvp", "grad vmap", "vmap vmap grad"]


@pytest.mark.parametrize("transform", FIRST_ORDER)
@pytest.mark.parametrize("op", CANARIES, ids=name)
def test_canaries(transform, op):
    apply, expected = TRANSFORMS[transform]
    torch.testing.assert_close(apply(op), expected * 2.5)


def test_autograd_around_torch_func():
    x = point(requires_grad=True)
    for op in FOURTH:
        inner = grad(lambda x, op=op: op(x).sum())(x)
        (outer,) = torch.autograd.grad(inner.sum(), x)
        torch.testing.assert_close(outer, 12 * X**2)


def test_an_output_that_the_gradient_captured():
    op = captures_output
    for f in (grad, lambda f: jacfwd(f), lambda f: grad(grad(f))):
        torch.testing.assert_close(vmap(f(op))(X), torch.exp(X))


# --- dual numbers --------------------------------------------------------------------


@pytest.mark.parametrize("op", FOURTH, ids=name)
def test_dual_numbers(op):
    x = point(requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, ONES)
        y = op(dual)
        tangent = forward_ad.unpack_dual(y).tangent
        torch.testing.assert_close(tangent, 4 * X**3)
        (by_reverse,) = torch.autograd.grad(tangent.sum(), x, retain_graph=True)
        torch.testing.assert_close(by_reverse, 12 * X**2)
        (g,) = torch.autograd.grad(y.sum(), dual, create_graph=True)
        torch.testing.assert_close(forward_ad.unpack_dual(g).tangent, 12 * X**2)
        with torch.no_grad():
            tangent = forward_ad.unpack_dual(op(dual)).tangent
        torch.testing.assert_close(tangent, 4 * X**3)


def test_the_rule_of_the_mode_is_used_where_both_are_given():
    op = gs.operation(lambda x: x * 1)
    op.vjp(lambda dy, y, x: 10 * dy)
    op.jvp(lambda dx, y, x: 100 * dx)
    assert grad(op)(torch.tensor(1.0)) == 10
    assert jvp(op, (torch.tensor(1.0),), (torch.tensor(1.0),))[1] == 100


def test_a_rule_that_is_not_linear_has_no_forward_mode():
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: dy.clip(-1, 1)), linear=False)
    assert grad(lambda x: 5 * op(x))(torch.tensor(1.0)) == 1
    with pytest.raises(gs.NotDifferentiableError, match=r"no forward mode.*linear=Fal"):
        jvp(op, (torch.tensor(1.0),), (torch.tensor(1.0),))


def test_an_operation_without_a_rule():
    op = gs.operation(lambda x: x * 2)
    assert vmap(op)(X).tolist() == [2, 4, 6]
    for transform in (grad, jacfwd):
        with pytest.raises(gs.UnsupportedOperationError, match="has no gradient yet"):
            transform(op)(torch.tensor(1.0))


# --- structures ----------------------------------------------------------------------


@gs.custom_gradient
def split(p, x, label="l"):
    def grad(dy):
        return {"w": 10 * (dy["y"] * x).sum(), "n": None}, dy["y"] * p["w"]

    return {"y": p["w"] * x, "i": x.argmax(), "label": label}, grad


def test_trees_whole_numbers_and_static_things():
    p = {"w": torch.tensor(3.0, dtype=torch.float64), "n": torch.tensor(2)}
    f = lambda w, x: split({**p, "w": w}, x)["y"].sum()
    dw, dx = grad(f, (0, 1))(p["w"], X)
    assert dw == 60
    assert dx.tolist() == [3, 3, 3]
    out = vmap(lambda x: split(p, x)["i"])(torch.stack([X, X.flip(0)]))
    assert out.tolist() == [2, 0]
    _, dy = jvp(lambda w: split({**p, "w": w}, X)["y"], (p["w"],), (p["w"],))
    torch.testing.assert_close(dy, 30 * X)


def test_arguments_without_a_batch_axis():
    op = gs.custom_gradient(lambda x, w: (x * w, lambda dy: (10 * dy * w, dy * x)))
    f = lambda x, w: op(x, w).sum()
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    per_example = vmap(grad(f, 1), in_dims=(0, None))(BATCH, w)
    torch.testing.assert_close(per_example, BATCH.clone())
    shared = vmap(grad(f, 0), in_dims=(0, None))(BATCH, w)
    torch.testing.assert_close(shared, 10 * w.expand(2, 3))


def test_random_bodies_under_vmap():
    def body(x):
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)
        return x * mask, lambda dy: dy * mask

    op = gs.custom_gradient(body)
    x = torch.ones(4, 100)
    g = lambda x: vjp(op, x)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: grad(lambda x: op(x).sum())(x))(x)

    def value_and_gradient(x):
        y, pull = g(x)
        return y, pull(torch.ones_like(x))[0]

    y, dx = vmap(value_and_gradient, randomness="different")(x)
    assert torch.equal(y, dx)  # the mask of the forward run
    assert not torch.equal(y[0], y[1])


# --- what the body captures ----------------------------------------------------------


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))

    @gs.custom_gradient
    def forward(self, x):
        weight = self.weight
        return x * weight, lambda dy: 10 * dy * weight


class Late(Layer):
    @gs.custom_gradient
    def forward(self, x):
        return x * self.weight, lambda dy: 10 * dy * self.weight


def test_parameters_that_a_method_captures():
    """Those of the call, which are not the layer's own: 5, not 3."""
    p = {"weight": torch.tensor(5.0, dtype=torch.float64)}
    f = lambda p, x: functional_call(Layer(), p, (x,)).sum()
    dp, dx = grad(f, (0, 1))(p, X)
    assert dp["weight"] == X.sum()
    assert dx.tolist() == [50, 50, 50]
    per_example = vmap(grad(f, (0, 1)), in_dims=(None, 0))(p, BATCH)
    torch.testing.assert_close(per_example[0]["weight"], BATCH.sum(1))
    assert per_example[1].tolist() == [[50] * 3] * 2


def test_a_rule_reads_attributes_when_the_gradient_is_computed():
    """By then functional_call has given the layer its own parameters back."""
    p = {"weight": torch.tensor(5.0, dtype=torch.float64)}
    f = lambda x: functional_call(Late(), p, (x,)).sum()
    assert f(X) == 5 * X.sum()
    assert grad(f)(X).tolist() == [30, 30, 30]


def test_captured_values_of_an_outer_transformation():
    def f(w):
        op = gs.custom_gradient(lambda x: (x * w, lambda dy: dy * w))
        return grad(op)(torch.tensor(2.0))

    assert grad(f)(torch.tensor(3.0)) == 1
    assert jvp(f, (torch.tensor(3.0),), (torch.tensor(1.0),))[1] == 1


def test_a_gradient_of_something_captured_is_differentiated_by_an_argument():
    """It would be silently zero, since the body saw detached arguments."""

    def f(x, w):
        op = gs.custom_gradient(lambda x: (x * w, lambda dy: dy * w))
        return op(x)

    x = torch.tensor(2.0)
    assert grad(f, 1)(x, torch.tensor(3.0)) == 2
    with pytest.raises(gs.UnsupportedOperationError, match="make that tensor an arg"):
        grad(lambda x: grad(f, 1)(x, torch.tensor(3.0)))(x)


def test_variables_are_refused():
    w = torch.tensor(3.0, requires_grad=True)

    @gs.custom_gradient
    def op(x):
        return x * w, lambda dy, variables: (dy * w, [dy])

    with pytest.raises(gs.UnsupportedOperationError, match=r"torch\.func knows no v"):
        grad(op)(torch.tensor(1.0))


def test_contract_in_the_same_words():
    op = gs.custom_gradient(lambda x: (x * 2, lambda dy: dy.sum()))
    with pytest.raises(gs.GradientContractError, match="for 'x' has the wrong shape"):
        grad(lambda x: op(x).sum())(X)
    op = gs.operation(lambda x: x * 2)
    op.jvp(lambda dx, y, x: dx.float())
    with pytest.raises(gs.GradientContractError, match=r"tangent of .* wrong dtype"):
        jvp(op, (X,), (X,))


def test_words_in_place_of_gradients():
    op = gs.custom_gradient(lambda x, w: (x * w, lambda dy: (None, gs.zero)))
    assert grad(lambda x: op(x, x))(torch.tensor(2.0)) == 0
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: gs.not_differentiable("why")))
    with pytest.raises(gs.NotDifferentiableError, match="'x': why"):
        grad(op)(torch.tensor(2.0))


def test_complex():
    square = gs.custom_gradient(lambda z: (z * z, lambda dy: dy * (2 * z).conj()))
    z, u = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([0.3 - 0.2j, 1j])
    torch.testing.assert_close(jvp(square, (z,), (u,))[1], 2 * z * u)
    loss = lambda z: square(z).abs().square().sum()
    torch.testing.assert_close(
        grad(loss)(z), grad(lambda z: (z * z).abs().square().sum())(z)
    )


def test_canary_through_a_layer_of_a_model():
    model = lambda w, x: canary(x @ w).sum()
    w = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(
        vmap(grad(model), in_dims=(None, 0))(w, BATCH),
        (10 * X**3)[None, None, :] * X[None, :, None].expand(2, 3, 3),
    )


@pytest.mark.parametrize("look", [lambda x: -x if x > 0 else x, lambda x: float(x) * x])
def test_a_body_that_looks_at_values(look):
    op = gs.with_gradient(look, lambda dy, y, x: dy)
    with pytest.raises(RuntimeError) as caught:
        vmap(op)(X)
    assert any("gradsmith.numpy.where" in note for note in caught.value.__notes__)
