"""Eager mode: .backward(), torch.autograd.grad, and what PyTorch's own nodes do."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import gradsmith as gs

from .operations import (
    CANARIES,
    FOURTH,
    canary,
    captures_output,
    closure,
    name,
    point,
    ruled_canary,
    softmax,
    vjp_rule,
)


def gradient(f, x=None, **options):
    x = point(requires_grad=True) if x is None else x
    return torch.autograd.grad(f(x).sum(), x, **options)[0]


# --- orders --------------------------------------------------------------------------


@pytest.mark.parametrize("op", FOURTH, ids=name)
def test_backward_and_higher_orders(op):
    x = point(requires_grad=True)
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, 4 * x.detach() ** 3)
    first = gradient(op, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    torch.testing.assert_close(second, 12 * x**2)
    (third,) = torch.autograd.grad(second.sum(), x)
    torch.testing.assert_close(third, 24 * x)


@pytest.mark.parametrize("op", CANARIES, ids=name)
def test_canaries(op):
    torch.testing.assert_close(gradient(op), 10 * point() ** 3)
    first = gradient(op, create_graph=True)
    torch.testing.assert_close(first, 10 * point() ** 3)


def test_an_output_that_the_gradient_captured_counts_by_the_rule():
    op = gs.custom_gradient(lambda x: _twice_exp(x))
    x = point(requires_grad=True)
    first = gradient(op, x, create_graph=True)
    torch.testing.assert_close(first, 10 * torch.exp(x))
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 100 * torch.exp(x).detach())


def _twice_exp(x):
    y = torch.exp(x)
    return y, lambda dy: 10 * dy * y


@pytest.mark.parametrize("op", [closure, vjp_rule, captures_output, softmax], ids=name)
def test_gradgradcheck(op):
    x = point(requires_grad=True)
    assert torch.autograd.gradcheck(op, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(op, x, check_fwd_over_rev=True)


gradcheck_warns = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
test_gradgradcheck = gradcheck_warns(test_gradgradcheck)


def test_captured_in_containers_functions_and_defaults():
    def body(x):
        cube = x**3
        parts = {"cube": [cube]}

        def helper(dy, cube=cube):
            return dy * cube

        def grad(dy, *, factor=2):
            return helper(dy) * factor + 2 * dy * parts["cube"][0]

        return x**4, grad

    x = point(requires_grad=True)
    first = gradient(gs.custom_gradient(body), x, create_graph=True)
    torch.testing.assert_close(first, 4 * x**3)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 12 * x.detach() ** 2)


def test_a_recursive_gradient_function():
    def body(x):
        def grad(dy, n=3):
            return dy * x if n == 0 else grad(dy, n - 1)

        return x * 1, grad

    first = gradient(gs.custom_gradient(body), create_graph=True)
    torch.testing.assert_close(first, point(requires_grad=True))


def test_a_random_body_is_not_differentiated_twice():
    @gs.custom_gradient
    def dropout(x):
        mask = torch.rand_like(x)
        return x * mask, lambda dy: dy * mask

    x = torch.ones(100, requires_grad=True)
    y = dropout(x)
    (dx,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert torch.equal(dx, y)
    with pytest.raises(
        gs.UnsupportedOperationError, match=r"is random.*\n.*gs\.operat"
    ):
        torch.autograd.grad(y.sum(), x, create_graph=True)


# --- arguments and outputs -----------------------------------------------------------


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Record:
    a: object
    b: object
    label: str = "r"


STRUCTURES = [
    lambda a, b: (a, b),
    lambda a, b: [a, b],
    lambda a, b: {"a": a, "b": b},
    Pair,
    Record,
    lambda a, b: {"deep": [Record(a, (b,))]},
]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("form", ["closure", "rule"])
def test_structures_in_and_out(structure, form):
    def forward(t):
        a, b = gs.core.trees.leaves(t)[:2]
        return structure(a * b, a + b)

    def backward(dy, t):
        (a, b), (da, db) = gs.core.trees.leaves(t)[:2], gs.core.trees.leaves(dy)[:2]
        return gs.core.trees.map(
            lambda leaf: 10 * da * b + db if leaf is a else da * a + db, t
        )

    if form == "closure":
        op = gs.custom_gradient(lambda t: (forward(t), lambda dy: backward(dy, t)))
    else:
        op = gs.with_gradient(forward, lambda dy, y, t: backward(dy, t))
    a, b = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    out = op(structure(a, b))
    assert type(out) is type(structure(a, b))
    first, second = gs.core.trees.leaves(out)[:2]
    (first + second).backward()
    assert (a.grad, b.grad) == (31, 3)


def test_keywords_defaults_and_methods():
    class Scale:
        factor = 3.0

        @gs.custom_gradient
        def op(self, x, *more, power=1, **named):
            y = x * self.factor**power + sum(more) + sum(named.values())
            return y, lambda dy: (10 * dy, *(dy for _ in more), *(dy for _ in named))

    x = torch.tensor(1.0, requires_grad=True)
    for y in (
        Scale().op(x),
        Scale().op(x=x),
        Scale().op(x, power=2),
        Scale().op(x, torch.ones(()), k=torch.ones(())),
    ):
        (dx,) = torch.autograd.grad(y, x)
        assert dx == 10


def test_whole_numbers_booleans_and_static_outputs():
    @gs.custom_gradient
    def op(x, i, mask):
        def grad(dy, *rest):
            assert rest == (None, None, None)
            return dy * mask, None, None

        return x * mask, x.argmax(), mask, "word", grad

    x = point(requires_grad=True)
    y, place, mask, word = op(x, torch.tensor(1), torch.tensor([True, False, True]))
    assert (place.item(), word) == (2, "word")
    assert not place.requires_grad
    assert not mask.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_only_whole_numbers():
    op = gs.custom_gradient(lambda x: (x.argmax(), lambda dy: dy))
    assert op(point(requires_grad=True)).item() == 2


def test_numbers_as_outputs_and_gradients():
    op = gs.custom_gradient(lambda x: (x.item() * 2, lambda dy: 7))
    x = torch.tensor(1.0, requires_grad=True)
    y = op(x)
    assert isinstance(y, torch.Tensor)
    y.backward()
    assert x.grad == 7
    assert isinstance(op(torch.tensor(1.0)), torch.Tensor)


def test_numpy_outputs_are_refused():
    op = gs.custom_gradient(lambda x: (np.exp(x.detach().numpy()), lambda dy: dy))
    with pytest.raises(gs.UnsupportedOperationError, match=r"gs\.python_op"):
        op(point(requires_grad=True))


def test_an_output_that_is_not_used():
    op = gs.custom_gradient(lambda x: (x * 1, x * 2, lambda dy, dz: dy + 100 * dz))
    assert gradient(lambda x: op(x)[0], torch.ones(2, requires_grad=True)).sum() == 2
    assert gradient(lambda x: op(x)[1], torch.ones(2, requires_grad=True)).sum() == 200


def test_one_tensor_as_two_arguments():
    op = gs.custom_gradient(lambda a, b: (a * b, lambda dy: (dy * b, 10 * dy * a)))
    x = torch.tensor(3.0, requires_grad=True)
    (first,) = torch.autograd.grad(op(x, x), x, create_graph=True)
    assert first == 33
    assert torch.autograd.grad(first, x)[0] == 11


@pytest.mark.parametrize("form", ["closure", "rule"])
def test_an_argument_as_output(form):
    if form == "closure":
        op = gs.custom_gradient(lambda x: (x, lambda dy: -dy))
    else:
        op = gs.with_gradient(lambda x: x, lambda dy, y, x: -dy)
    x = point(requires_grad=True)
    assert op(x) is not x
    assert gradient(op, x).tolist() == [-1, -1, -1]
    assert x.grad_fn is None


def test_a_tensor_that_others_hold_as_output():
    constant = torch.ones(3, dtype=torch.float64)
    op = gs.custom_gradient(lambda x: (constant, lambda dy: dy * 5))
    assert gradient(op).tolist() == [5, 5, 5]
    assert not constant.requires_grad


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    ],
)
def test_dtypes_stay(dtype):
    x = torch.ones(2, dtype=dtype, requires_grad=True)
    for op in (closure, vjp_rule, jvp_rule_of_complex):
        y = op(x)
        y.backward(torch.ones_like(y))
        assert y.dtype == x.grad.dtype == dtype


jvp_rule_of_complex = gs.operation(lambda x: x * 2)
jvp_rule_of_complex.jvp(lambda dx, y, x: dx * 2)


def test_complex_follows_the_convention():
    """The gradient of |z|**2 is 2z."""
    op = gs.custom_gradient(lambda z: ((z * z.conj()).real, lambda dy: 2 * dy * z))
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    op(z).sum().backward()
    torch.testing.assert_close(z.grad, 2 * z.detach())


def test_empty_and_zero_dimensional():
    for shape in ((0,), (3, 0), ()):
        x = torch.ones(shape, requires_grad=True)
        canary(x).sum().backward()
        assert x.grad.shape == shape


def test_parameters_and_subclasses():
    class Mine(torch.Tensor):
        pass

    p = torch.nn.Parameter(torch.ones(3))
    canary(p).sum().backward()
    assert p.grad.tolist() == [10, 10, 10]
    x = torch.ones(3).as_subclass(Mine).requires_grad_()
    y = canary(x)
    assert type(y) is Mine
    y.sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


# --- what is wanted ------------------------------------------------------------------


def test_needs():
    seen = []

    @gs.custom_gradient
    def op(x, w, k):
        def grad(dy, needs):
            seen.append(needs)
            return dy * w, dy * x, None

        return x * w, grad

    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)
    op(x, w, 2).backward()
    op(w, x, 2).backward()
    assert [(n["x"], n["w"]) for n in seen] == [(True, False), (False, True)]


def test_words_in_place_of_gradients():
    op = gs.custom_gradient(
        lambda x, w, z: (
            x * w,
            lambda dy: (None, gs.zero, gs.not_differentiable("it is data")),
        )
    )
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    z = torch.tensor(1.0)
    dx, dw = torch.autograd.grad(op(x, w, z), (x, w), allow_unused=True)
    assert (dx, dw) == (None, 0)
    with pytest.raises(gs.NotDifferentiableError, match="'z': it is data"):
        op(x, w, z.requires_grad_()).backward()


def test_no_grad_and_inference_mode():
    x = point(requires_grad=True)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            y = closure(x)
        assert not y.requires_grad
        torch.testing.assert_close(y, point() ** 4)
    with torch.inference_mode():
        x = point()
    assert closure(x).is_inference() or not closure(x).requires_grad


def test_nothing_to_differentiate_calls_no_rule():
    op = gs.custom_gradient(lambda x: (x * 2, None))
    with pytest.raises(gs.GradientContractError, match="gradient function"):
        op(point())
    op = gs.custom_gradient(lambda x: (x * 2, lambda: None))
    assert op(point()).tolist() == [2, 4, 6]


def test_no_rule_at_all():
    op = gs.operation(lambda x: x * 2)
    assert op(point()).tolist() == [2, 4, 6]
    with pytest.raises(gs.UnsupportedOperationError, match=r"no gradient yet.*@<lam"):
        gradient(op)


def test_hooks():
    seen = []
    x = point(requires_grad=True)
    x.register_hook(lambda g: seen.append(("x", g.clone())))
    y = canary(x)
    y.register_hook(lambda g: seen.append(("y", g.clone())))
    y.retain_grad()
    y.grad_fn.register_hook(lambda dx, dy: seen.append(("node", None)))
    y.sum().backward()
    assert sorted(n for n, _ in seen) == ["node", "x", "y"]
    assert y.grad.tolist() == [1, 1, 1]


# --- what is saved -------------------------------------------------------------------


SAVING = [closure, captures_output, vjp_rule, softmax]


@pytest.mark.parametrize("op", [closure, vjp_rule], ids=name)
@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_changed_input_is_noticed(op, by_keyword):
    x = point(requires_grad=True)
    a = x * 1
    y = op(x=a) if by_keyword else op(a)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("op", [captures_output, softmax], ids=name)
@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_changed_output_is_noticed(op, by_keyword):
    x = point(requires_grad=True)
    y = op(x=x) if by_keyword else op(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("op", SAVING, ids=name)
@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_graph_is_walked_once_unless_it_is_retained(op, by_keyword):
    x = point(requires_grad=True)
    y = (op(x=x) if by_keyword else op(x)).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("op", SAVING, ids=name)
@pytest.mark.parametrize("by_keyword", [False, True])
def test_memory_is_released(op, by_keyword):
    """After the walk back, though the output lives; and without the collector."""
    saved = []

    @gs.custom_gradient
    def watched(x):
        y, grad = op.fn(x) if op.closure else (op.fn(x), lambda dy: 4 * dy * x**3)
        held = y * 2
        saved.extend([weakref.ref(y), weakref.ref(held)])
        return y, lambda dy: grad(dy) + 0 * held

    gc.collect()
    gc.disable()
    try:
        for walked in (False, True):
            saved.clear()
            x = point(requires_grad=True)
            y = watched(x=x) if by_keyword else watched(x)
            assert saved[1]() is not None
            if walked:
                y.sum().backward()
            else:
                del y
            assert saved[1]() is None
            leaf = weakref.ref(x)
            x = y = None
            assert leaf() is None
            assert saved[0]() is None
    finally:
        gc.enable()


def test_saved_tensors_hooks_see_what_is_saved():
    packed = []

    def pack(x):
        packed.append(x)
        return len(packed) - 1

    x = point(requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: packed[i]):
        y = closure(x)
    assert len(packed) == 2  # x and its cube
    torch.testing.assert_close(gradient(lambda _: y, x), 4 * point() ** 3)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("op", [canary, ruled_canary], ids=name)
def test_checkpoint(op, use_reentrant):
    runs = []

    def f(x):
        runs.append(1)
        return op(op(x))

    x = point(requires_grad=True)
    y = checkpoint(f, x, use_reentrant=use_reentrant)
    y.sum().backward()
    expected = 10 * point() ** 3 * 10 * point() ** 12
    torch.testing.assert_close(x.grad, expected)
    assert len(runs) == 2


def test_autocast():
    @gs.custom_gradient
    def matmul(x, w):
        assert torch.is_autocast_enabled("cpu")
        return x @ w, lambda dy: (10 * (dy @ w.T), x.T @ dy)

    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = matmul(x, w)
    assert y.dtype == torch.bfloat16
    dx, dw = torch.autograd.grad(y.float().sum(), (x, w))
    assert dx.dtype == dw.dtype == torch.float32
    assert dx[0, 0] == 40
    with torch.autocast("cpu", torch.bfloat16):
        dx = torch.func.grad(lambda x: matmul(x, w).float().sum())(x)
    assert dx.dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"create_graph": True}])
@pytest.mark.parametrize("by_keyword", [False, True])
def test_autocast_around_the_walk_back_alone(options, by_keyword):
    @gs.custom_gradient
    def matmul(x, *, w):
        assert not torch.is_autocast_enabled("cpu")
        return x @ w, lambda dy: (10 * (dy @ w.T), x.T @ dy)

    op = matmul
    if not by_keyword:
        op = gs.custom_gradient(lambda x, w: (x @ w, lambda dy: (10 * (dy @ w.T), w)))
    x, w = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    y = op(x, w=w)
    with torch.autocast("cpu", torch.bfloat16):
        (dx,) = torch.autograd.grad(y.sum(), x, **options)
    assert dx.dtype == torch.float32
    assert dx[0, 0] == 30


# --- the rest ------------------------------------------------------------------------


def test_copies_and_pickles():
    assert pickle.loads(pickle.dumps(canary)) is canary
    assert copy.deepcopy(canary) is canary
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model.activation = canary
    assert copy.deepcopy(model).activation is canary


def test_the_users_exception_passes_through():
    def body(x):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        gs.custom_gradient(body)(point(requires_grad=True))
    assert "raised by the body of operation 'body'" in caught.value.__notes__

    def grad(dy):
        raise KeyError("mine")

    for call in (lambda op, x: op(x), lambda op, x: op(x=x)):
        op = gs.custom_gradient(lambda x: (x * 1, grad))
        with pytest.raises(KeyError) as caught:
            call(op, point(requires_grad=True)).sum().backward()
        assert (
            "raised by the gradient of operation '<lambda>'" in caught.value.__notes__
        )


WRONG = {
    "has the wrong shape": lambda dy, x: dy.sum(),
    "has the wrong dtype": lambda dy, x: dy.float(),
    "is not an array": lambda dy, x: "text",
    "has the wrong number of entries": lambda dy, x: (dy, dy),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("by_keyword", [False, True])
def test_the_contract_in_the_same_words(what, by_keyword):
    rule = WRONG[what]
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: rule(dy, x)))
    with pytest.raises(gs.GradientContractError, match=what):
        gradient((lambda x: op(x=x)) if by_keyword else op)
    op = gs.with_gradient(lambda x: x * 1, lambda dy, y, x: rule(dy, x))
    with pytest.raises(gs.GradientContractError, match=what):
        gradient((lambda x: op(x=x)) if by_keyword else op)


def test_bfloat16_is_named():
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: dy.float()))
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with pytest.raises(gs.GradientContractError, match=r"expected: .* bfloat16"):
        op(x).sum().backward()


def test_unsupported_layouts():
    x = torch.eye(2).to_sparse().requires_grad_()
    op = gs.custom_gradient(lambda x: (x.to_dense(), lambda dy: dy))
    with pytest.raises(gs.UnsupportedOperationError, match=r"sparse.*\n.*to_dense"):
        op(x)


def test_arrays_of_two_frameworks():
    op = gs.custom_gradient(lambda a, b: (a * 1, lambda dy: (dy, None)))
    with pytest.raises(gs.GradsmithError, match=r"PyTorch array.*NumPy array"):
        op(point(requires_grad=True), np.ones(3))


def test_a_default_may_be_left_out_after_it_was_given():
    @gs.operation
    def times(x, factor=2.0):
        return x * factor

    @times.vjp
    def _(dy, y, x, factor):
        return dy * factor

    x = torch.ones(2, requires_grad=True)
    given, left = times(x, 3.0), times(x)
    (dx,) = torch.autograd.grad(given, x, torch.ones(2))
    assert dx.tolist() == [3, 3]
    (dx,) = torch.autograd.grad(left, x, torch.ones(2))
    assert dx.tolist() == [2, 2]


# --- changes in place ----------------------------------------------------------------

SCALE = torch.tensor(2.0)
SEEN = torch.tensor(0.0)


def scaled(dy):
    return dy * SCALE


@gs.custom_gradient
def by_name(x):
    return x * SCALE, lambda dy: dy * SCALE


@gs.custom_gradient
def by_helper(x, y):
    return (x * y, x), lambda dy, _: (scaled(dy), scaled(dy))


@gs.operation
def by_rule(x):
    return x * SCALE


@by_rule.vjp
def _(dy, y, x):
    return dy * SCALE


@pytest.mark.parametrize("op", [by_name, by_helper, by_rule], ids=lambda op: op.name)
def test_a_global_tensor_changed_in_place_is_noticed(op):
    def run(change):
        x = torch.ones(3, requires_grad=True)
        y = op(x, x)[0] if op is by_helper else op(x)
        change()
        y.sum().backward()

    run(lambda: None)
    run(lambda: SCALE * 3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(lambda: SCALE.mul_(1.0))
    run(lambda: None)


def test_a_rule_may_write_into_a_global_tensor():
    @gs.custom_gradient
    def recorded(x):
        def grad(dy):
            SEEN.add_(dy.sum())
            return dy * 2

        return x * 2, grad

    @gs.custom_gradient
    def recorded_too(x):
        def grad(dy):
            SEEN.add_(dy.sum())
            return dy * 2

        return x * 2, grad

    x = torch.ones(3, requires_grad=True)
    recorded(recorded_too(recorded(x))).sum().backward()
    assert x.grad.tolist() == [8, 8, 8]
    assert SEEN == 3 + 6 + 12
