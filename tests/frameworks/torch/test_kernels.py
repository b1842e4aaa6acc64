"""Fused operations on eager tensors: memory, gradients, and what is composed."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("llvmlite")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.core import hooks  # noqa: E402
from gradsmith.frameworks.torch.call import again as made_again  # noqa: E402
from gradsmith.frameworks.torch.call import quick  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402
from gradsmith.operations.operation import OPERATIONS  # noqa: E402
from gradsmith.ops import _rows  # noqa: E402
from tests.frameworks.fused_operations import normed, squash  # noqa: E402


@pytest.fixture
def runs(monkeypatch):
    """Plans whose kernels ran forward."""
    found = []
    run, function = quick.run_forward, made_again.function_of
    monkeypatch.setattr(
        quick, "run_forward", lambda *args: (found.append(args[0]), run(*args))[1]
    )

    def recorded(lines, **known):
        call = function(lines, **known)
        if "again" not in known:  # the gradient
            return call

        def seen(args):
            y = call(args)
            if y is not NotImplemented:
                found.append(known["again"].plan)
            return y

        return seen

    monkeypatch.setattr(made_again, "function_of", recorded)
    forget()  # calls that are not recorded
    yield found
    forget()  # and those that are


def forget():
    for operation in OPERATIONS.values():
        if operation.fused is not None:
            operation.fused.forget()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 0)


def both(fn, x, dy):
    """Value and gradient, by the kernel and composed.

    A kernel runs twice: the second time by what the first one has prepared.
    """
    results = []
    for on in (True, True, False):
        with gs.kernels(on):
            xs = x.detach().requires_grad_()
            y = fn(xs)
            results.append((y.detach(), torch.autograd.grad(y, xs, dy)[0]))
    first, second, composed = results
    for each, expected in zip(second, first, strict=True):
        torch.testing.assert_close(each, expected, rtol=0, atol=0, equal_nan=True)
    return second, composed


def same(results, rtol=2e-6):
    (y, dx), (expected, gradient) = results
    assert y.dtype == expected.dtype
    torch.testing.assert_close(y, expected, rtol=rtol, atol=1e-7)
    torch.testing.assert_close(dx, gradient, rtol=rtol, atol=2e-6)


FUNCTIONS = [
    ops.silu, ops.gelu, ops.softplus, ops.softmax, ops.log_softmax, normed,
    lambda x: ops.logsumexp(x, -1, keepdims=True) + 0 * x,
    lambda x: squash(x, torch.tensor(2.0, dtype=x.dtype)),
]  # fmt: skip
EACH = pytest.mark.parametrize("fn", FUNCTIONS, ids=range(len(FUNCTIONS)))


def normal(*shape):
    return torch.tensor(
        np.random.default_rng(0).normal(size=shape), dtype=torch.float32
    )


LAYOUTS = {
    "plain": lambda *shape: normal(*shape),
    "transposed": lambda n, m: normal(m, n).T,
    "sliced": lambda n, m: normal(n, 2 * m)[:, ::2],
    "part": lambda n, m: normal(n + 2, m + 3)[1:-1, 2:-1],
    "expanded": lambda n, m: normal(1, 1).expand(n, m),
    "expanded rows": lambda n, m: normal(n, 1).expand(n, m),
    "expanded columns": lambda n, m: normal(m).expand(n, m),
}


@EACH
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("upstream", LAYOUTS)
def test_memory_of_any_layout(fn, layout, upstream, runs):
    same(both(fn, LAYOUTS[layout](5, 19), LAYOUTS[upstream](5, 19)))
    assert runs


@settings(max_examples=25)
@given(
    shape=st.lists(st.integers(0, 70), min_size=1, max_size=3),
    fn=st.sampled_from(FUNCTIONS[:5]),
)
def test_shapes_of_any_length(shape, fn):
    if shape[-1] == 0 and fn in FUNCTIONS[3:5]:
        return  # a row without elements is the composed form's
    x = normal(*shape) * 3
    same(both(fn, x, normal(*shape).flip(0)))


@EACH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(fn, dtype, runs):
    x, dy = normal(7, 33).to(dtype), normal(7, 33).to(dtype)
    eps = torch.finfo(dtype).eps
    (y, dx), _ = both(fn, x, dy)
    assert runs
    expected, gradient = both(fn, x.double(), dy.double())[1]
    assert y.dtype == dx.dtype == dtype
    for got, true in ((y, expected), (dx, gradient)):
        # A rule that reads the result reads what was rounded
        off = (got.double() - true).abs() / true.abs().clamp(min=0.1)
        assert off.max() < 4 * eps


@EACH
def test_threads_share_the_work(fn, runs):
    before = torch.get_num_threads()
    x, dy = normal(301, 1009), normal(301, 1009)
    torch.set_num_threads(1)
    try:
        one = both(fn, x, dy)[0]
        torch.set_num_threads(3)
        several = both(fn, x, dy)[0]
    finally:
        torch.set_num_threads(before)
    for a, b in zip(one, several, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@EACH
def test_second_derivatives_are_those_of_the_composed_form(fn):
    x = normal(3, 4).double().requires_grad_()
    assert torch.autograd.gradgradcheck(fn, x)


@EACH
def test_transforms_use_the_composed_form(fn, runs):
    x = normal(3, 4)
    loss = lambda x: fn(x).sum()
    got = torch.func.vmap(torch.func.grad(loss))(x[:, None])[:, 0]
    xs = x.clone().requires_grad_()
    loss(xs).backward()
    torch.testing.assert_close(got, xs.grad)


def test_batched_upstream_gradients():
    x = normal(4).requires_grad_()
    y = ops.silu(x)
    rows = torch.autograd.grad(y, x, torch.eye(4), is_grads_batched=True)[0]
    torch.testing.assert_close(
        rows.sum(0), torch.autograd.grad(ops.silu(x).sum(), x)[0]
    )


def test_without_gradients(runs):
    with torch.no_grad():
        y = ops.silu(normal(5).requires_grad_())
    assert not y.requires_grad
    with torch.inference_mode():
        ops.silu(normal(5))
    assert len(runs) == 2


def test_a_value_or_gradient_as_it_came_is_no_copy():
    x, dy = torch.randn(40, 50, requires_grad=True), torch.randn(40, 50)
    y = ops.reverse(x)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="is a view"):
        y.add_(1)
    (dx,) = torch.autograd.grad(ops.round(x), x, dy)
    assert dx.data_ptr() == dy.data_ptr()


def test_a_change_in_place_is_noticed():
    x = normal(5).requires_grad_()
    inner = x * 1
    y = ops.silu(inner)
    with torch.no_grad():
        inner.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified|changed"):
        y.sum().backward()


def test_a_changed_result_is_noticed_if_the_rule_reads_it():
    x = normal(2, 5).requires_grad_()
    y = ops.softmax(x)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified|changed"):
        y.sum().backward()


def test_the_graph_is_freed_and_kept_as_autograd_does():
    x = normal(5).requires_grad_()
    y = ops.silu(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_labels_out_of_bounds_raise():
    labels = torch.tensor([1, 7])
    with pytest.raises(IndexError, match="out of bounds"):
        _rows.of_classes(normal(2, 5), labels, 1, 0.0, -100, 0.0)


def test_kernels_can_be_turned_off(runs):
    x = normal(5).requires_grad_()
    with gs.kernels(False):
        ops.silu(x)
    assert not runs
    ops.silu(x)
    assert len(runs) == 1


def test_small_arrays_are_composed_in_every_call_alike(runs, monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 1 << 14)
    x = normal(3, 41).requires_grad_()
    first, *others = [ops.log_sigmoid(x) for _ in range(3)]
    assert all(torch.equal(first, y) for y in others)
    assert not runs


def test_an_operation_with_another_gradient_has_no_kernels(runs):
    x = normal(5).requires_grad_()
    double = ops.silu.altered(lambda rule: lambda *args: 2 * rule(*args))
    expected = 2 * torch.autograd.grad(ops.silu(x).sum(), x)[0]
    runs.clear()
    torch.testing.assert_close(torch.autograd.grad(double(x).sum(), x)[0], expected)
    assert ops.silu not in [plan.operation for plan in runs]


def test_a_rule_that_is_given_later_is_used():
    @gs.operation(fused=True)
    def same_value(x):
        return x * 1

    x = normal(5).requires_grad_()
    for factor in (2, 3):
        same_value.vjp(lambda dy, y, x, factor=factor: factor * dy)
        dx = torch.autograd.grad(same_value(x).sum(), x)[0]
        torch.testing.assert_close(dx, torch.full_like(dx, factor))


@pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")
def test_compiled_code_has_the_composed_form(runs):
    x = normal(5).requires_grad_()
    compiled = torch.compile(lambda x: ops.silu(x).sum(), backend="aot_eager")
    dx = torch.autograd.grad(compiled(x), x)[0]
    assert not runs
    torch.testing.assert_close(dx, torch.autograd.grad(ops.silu(x).sum(), x)[0])


def test_modes_that_watch_operations_see_them(runs):
    class Watch(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Watch.seen += 1
            return func(*args, **(kwargs or {}))

    with Watch():
        ops.silu(normal(5).requires_grad_())
    assert Watch.seen > 5
    assert not runs


@EACH
def test_the_check_is_of_the_kernel(fn, runs):
    gs.assert_gradients(fn, normal(3, 4).double())
    assert runs


# Gradients that are made in the forward pass

LABELS = torch.tensor([3, 0, -100, 18, 7])
LOSSES = {
    "logsumexp": lambda x: ops.logsumexp(x, -1),
    "all": lambda x: ops.logsumexp(x.reshape(-1)),
    "mean": lambda x: ops.cross_entropy(x, LABELS),
    "sum": lambda x: ops.cross_entropy(x, LABELS, reduction="sum"),
    "rows": lambda x: ops.cross_entropy(x, LABELS, reduction="none"),
    "smooth": lambda x: ops.cross_entropy(x, LABELS, label_smoothing=0.1, z_loss=0.1),
    "shares": lambda x: ops.cross_entropy(x, torch.softmax(normal(5, 19) * 2, 1)),
}
UPSTREAM = {
    "one": lambda y: torch.ones_like(y),
    "one, expanded": lambda y: torch.ones(()).expand(y.shape),
    "two, expanded": lambda y: torch.full((), 2.0).expand(y.shape),
    "some are one": lambda y: torch.arange(y.numel()).reshape(y.shape).float(),
    "sliced": lambda y: torch.arange(10.0)[: 2 * y.numel() : 2].reshape(y.shape),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("upstream", UPSTREAM)
def test_gradients_made_ahead_are_right_each_time(name, upstream, runs):
    fn, x = LOSSES[name], normal(5, 19).requires_grad_()
    y = fn(x)
    dy = UPSTREAM[upstream](y.detach())
    with gs.kernels(False):
        expected = torch.autograd.grad(fn(x), x, dy)[0]
    got = []
    for again in (True, True, False):
        (dx,) = torch.autograd.grad(y, x, dy, retain_graph=again)
        got.append(dx.clone())
        dx.fill_(7)  # it is the caller's
    assert any(plan.ahead for plan in runs)
    for dx in got:
        torch.testing.assert_close(dx, expected, rtol=2e-6, atol=1e-7)


def test_what_is_ignored_has_no_gradient_whatever_comes_back():
    x, dy = normal(5, 19).requires_grad_(), torch.full((5,), torch.nan)
    dx = torch.autograd.grad(LOSSES["rows"](x), x, dy)[0]
    assert not dx[2].any()
    assert dx[[0, 1, 3, 4]].isnan().all()


def test_a_gradient_made_ahead_is_given_away_not_copied():
    x = normal(5, 19).requires_grad_()
    y = ops.logsumexp(x, -1)
    made = y.grad_fn.run[4][1]
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert dx.data_ptr() == made.data_ptr()


@gs.custom_gradient(fused=True)
def length(x):
    """A gradient that is quickly computed again."""
    n = gnp.sqrt(gnp.sum(x * x, axis=-1, keepdims=True))
    return gnp.squeeze(n, -1), lambda dy: (x / n) * gnp.expand_dims(dy, -1)


@pytest.mark.parametrize(
    ("op", "args", "ahead"),
    [
        (ops.logsumexp, (normal(5, 19), -1), True),
        (ops.logsumexp, (normal(5, 19).double(), -1), True),
        (ops.logsumexp, (normal(5, 19).half(), -1), False),  # dy scales up what is 0
        (ops.logsumexp, (normal(5, 3), -1), False),  # the value is not small
        (ops.softmax, (normal(5, 19),), False),
        (length, (normal(5, 19),), False),
        (length, (normal(1, 19),), True),  # a loss: dy is 1
    ],
)
def test_what_is_made_ahead_is_chosen_by_bytes(op, args, ahead):
    plan = op.kernels(*args)
    assert plan.ahead is ahead
    large = [s for s in plan.saved if s.size * 4 > args[0].numel()]
    assert len(large) == ahead  # no more than one array like the argument
    if ahead:
        assert "x" not in [name for name, _ in plan.sources]


@settings(max_examples=25)
@given(
    rows=st.integers(1, 40), columns=st.integers(4, 70), seed=st.integers(0, 1 << 16)
)
def test_gradients_made_ahead_of_any_shape(rows, columns, seed):
    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.normal(size=(rows, columns)) * 3, dtype=torch.float32)
    labels = torch.tensor(rng.integers(0, columns, rows))
    labels[rng.random(rows) < 0.2] = -100
    dy = torch.tensor(rng.choice([1.0, 0.5, -3.0], rows), dtype=torch.float32)
    same(both(lambda x: ops.cross_entropy(x, labels, reduction="none"), x, dy))
    same(both(lambda x: ops.cross_entropy(x, labels), x, torch.ones(())))


@pytest.mark.parametrize("n", [1 << 10, 1 << 23])
def test_large_results_are_in_large_pages(n, monkeypatch):
    from gradsmith.frameworks.torch.call import fused

    asked, ask = [], fused.ask_for_large_pages
    monkeypatch.setattr(
        fused, "ask_for_large_pages", lambda *a: (asked.append(a), ask(*a))
    )
    x = torch.zeros(n, requires_grad=True)
    y = ops.silu(x)
    (dx,) = torch.autograd.grad(y, x, torch.ones(()).expand(n))
    results = [(each.data_ptr(), each.nbytes) for each in (y, dx)]
    assert asked == (results if n > 1 << 10 else [])
    assert dx.eq(0.5).all()


ELEMENTWISE = {
    "huber": ops.huber,
    "poisson_nll": ops.poisson_nll,
    "binary": lambda x, t, **how: ops.binary_cross_entropy_with_logits(
        x, torch.sigmoid(t), pos_weight=2.0, **how
    ),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", [(5, 70), (70,), (3, 2, 64)])
def test_losses_are_added_up_within_the_kernel(name, reduction, shape, runs):
    loss, x, t = ELEMENTWISE[name], normal(*shape), normal(*shape).flip(0)
    fn = lambda x: loss(x, t, reduction=reduction)
    same(both(fn, x, torch.tensor(1.0)))
    same(both(fn, x, torch.tensor(-0.5)))
    assert all(plan.ahead for plan in runs if plan.wanted)
    expected = getattr(torch, reduction)(loss(x, t, reduction="none"))
    torch.testing.assert_close(fn(x), expected)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_losses_added_up_have_all_derivatives(name):
    loss = ELEMENTWISE[name]
    x, t = normal(2, 64).double(), normal(2, 64).double().flip(0)
    pair = x.requires_grad_(), t.requires_grad_()
    both_of = torch.autograd.grad(loss(*pair), pair)
    with gs.kernels(False):
        expected = torch.autograd.grad(loss(*pair, reduction="none").mean(), pair)
    for got, true in zip(both_of, expected, strict=True):
        torch.testing.assert_close(got, true)

    def curved(*pair):
        dx, dt = torch.autograd.grad(loss(*pair), pair, create_graph=True)
        return (dx * dx).sum() + (dt * dx).sum()

    def parts(*pair):
        return loss(*pair, reduction="none").mean()

    seconds = torch.autograd.grad(curved(*pair), pair)
    dx, dt = torch.autograd.grad(parts(*pair), pair, create_graph=True)
    expected = torch.autograd.grad((dx * dx).sum() + (dt * dx).sum(), pair)
    for got, true in zip(seconds, expected, strict=True):
        torch.testing.assert_close(got, true)


def test_labels_are_counted_whether_some_are_ignored_or_not():
    x = normal(5, 19)
    for labels in (LABELS, LABELS.abs() % 19, LABELS * 0 - 100):
        expected = torch.nn.functional.cross_entropy(x, labels)
        if labels.max() < 0:
            expected = torch.tensor(0.0)
        torch.testing.assert_close(ops.cross_entropy(x, labels), expected)
    ignored = torch.tensor([3, 3, 3, 1, 2])
    expected = torch.nn.functional.cross_entropy(x, ignored, ignore_index=3)
    got = ops.cross_entropy(x, ignored, ignore_index=3)
    torch.testing.assert_close(got, expected)


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **kwargs or {})


def within(context, x):
    """Whether a call with x is made again within a context."""
    with context:
        return ops.silu.fused.again((x,)) is not NotImplemented


def seen_by(transform, x):
    """The same within a function that is transformed, of a tensor from outside."""
    found = []

    def fn(z):
        found.append(ops.silu.fused.again((x,)) is not NotImplemented)
        found.append(ops.silu.fused.again((z,)) is not NotImplemented)
        return (z * z).sum()

    transform(fn)(torch.ones(4, 150))
    return any(found[:2])


OTHERS = {
    "shape": lambda x: ops.silu.fused.again((x.detach()[:3].requires_grad_(),)),
    "dtype": lambda x: ops.silu.fused.again((x.detach().double().requires_grad_(),)),
    "no gradient": lambda x: ops.silu.fused.again((x.detach(),)),
    "strides": lambda x: ops.silu.fused.again(
        (x.detach().T.contiguous().T.requires_grad_(),)
    ),
    "class": lambda x: ops.silu.fused.again((torch.nn.Parameter(x.detach()),)),
    "subclass": lambda x: ops.silu.fused.again(
        (x.as_subclass(type("Own", (torch.Tensor,), {})),)
    ),
    "device": lambda x: ops.silu.fused.again((x.detach().to("meta").requires_grad_(),)),
    "negative": lambda x: ops.silu.fused.again((torch._neg_view(x),)),
    "inference": lambda x: ops.silu.fused.again((inference(x),)),
    "two arguments": lambda x: ops.silu.fused.again((x, x)),
    "no argument": lambda x: ops.silu.fused.again(()),
    "an array": lambda x: ops.silu.fused.again((x.detach().numpy(),)),
}

CONTEXTS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "dispatch mode": Watching,
    "forward mode": torch.autograd.forward_ad.dual_level,
    "saved tensors": torch.autograd.graph.save_on_cpu,
    "kernels off": lambda: gs.kernels(False),
    "bodies seen": lambda: hooks.BODY.wrapped(lambda proceed, *what: proceed(*what)),
    "rules seen": lambda: hooks.RULE.wrapped(lambda proceed, *what: proceed(*what)),
}


def inference(x):
    with torch.inference_mode():
        return x.detach().clone()


@pytest.fixture
def called():
    x = normal(4, 150).requires_grad_()
    ops.silu(x)
    ops.silu(x)
    assert ops.silu.fused.again((x,)) is not NotImplemented
    return x


@pytest.mark.parametrize("name", OTHERS)
def test_a_call_with_other_arguments_is_not_made_again(name, called):
    assert OTHERS[name](called) is NotImplemented


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_call_is_not_made_again_where_something_else_goes_on(name, called):
    assert not within(CONTEXTS[name](), called)
    assert within(nullcontext(), called)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap])
def test_a_call_is_not_made_again_within_transforms(transform, called):
    assert not seen_by(transform, called)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_call_is_not_made_again_while_it_is_traced(called):
    assert not seen_by(lambda fn: lambda z: torch.jit.trace(fn, (z,)), called)


def test_static_arguments_of_a_call_made_again():
    x = normal(4, 150).requires_grad_()
    ops.gelu(x, "tanh")
    ops.gelu(x, "tanh")
    assert ops.gelu.fused.again((x, "tanh")) is not NotImplemented
    assert ops.gelu.fused.again((x, "none")) is NotImplemented
    assert ops.gelu.fused.again((x,)) is NotImplemented


def test_gradients_of_calls_made_again(called):
    x, expected = called, []
    dys = {"full": normal(4, 150), "one": torch.ones(()).expand(4, 150)}
    for name, dy in [*dys.items()] * 3:
        (dx,) = torch.autograd.grad(ops.silu(x), x, dy)
        with gs.kernels(False):
            (own,) = torch.autograd.grad(ops.silu(x), x, dy)
        torch.testing.assert_close(dx, own, msg=name)
        expected.append(own)
    # What the kernel can't do in its turn: other layouts, orders, batches, dtypes
    dy = normal(150, 4).T
    torch.testing.assert_close(
        torch.autograd.grad(ops.silu(x), x, dy)[0],
        torch.autograd.grad(ops.silu(x), x, dy.contiguous())[0],
    )
    (dx,) = torch.autograd.grad(ops.silu(x), x, dys["full"], create_graph=True)
    (second,) = torch.autograd.grad(dx.sum(), x)
    assert torch.autograd.gradgradcheck(ops.silu, x.detach().double().requires_grad_())
    assert second.isfinite().all()
    batch = torch.stack([*dys.values()])
    found = torch.autograd.grad(ops.silu(x), x, batch, is_grads_batched=True)[0]
    torch.testing.assert_close(found, torch.stack(expected[:2]))
    with torch.autocast("cpu", torch.bfloat16):
        y = ops.silu(x.detach().requires_grad_())
    y = ops.silu(x)
    with torch.autocast("cpu", torch.bfloat16):
        (dx,) = torch.autograd.grad(y, x, dys["full"])
    torch.testing.assert_close(dx, expected[0])


@pytest.mark.parametrize("op", [ops.silu, ops.softmax], ids=["x", "y"])
def test_calls_made_again_see_changes_in_place_and_are_freed_once(op):
    x, dy = normal(4, 150).requires_grad_(), normal(4, 150)
    for _ in range(3):  # the last two by what the first has prepared
        y = op(x)
        torch.autograd.grad(y, x, dy, retain_graph=True)
        (dx,) = torch.autograd.grad(y, x, dy)
        assert y.grad_fn.run is None
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(y, x, dy)
        y = op(x)
        with torch.no_grad():
            (x if op is ops.silu else y).mul_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            torch.autograd.grad(y, x, dy)
        assert torch.equal(torch.autograd.grad(op(x), x, dy)[0], dx)


def test_values_of_calls_made_again_are_not_kept_alive():
    x = normal(4, 150).requires_grad_()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            y = ops.softmax(x)  # whose gradient needs the value
            gone = weakref.ref(y.grad_fn)
            del y
            assert gone() is None
    finally:
        gc.enable()


def test_a_call_that_was_given_another_rule_is_not_made_again():
    @gs.operation
    def double(x):
        return x * 2

    double.vjp(lambda dy, y, x: 2 * dy)
    gs.fuse(double)
    x = normal(4, 150).requires_grad_()
    for factor in (2, 3):
        double.vjp(lambda dy, y, x, k=factor: k * dy)
        for _ in range(3):
            (dx,) = torch.autograd.grad(double(x), x, torch.ones(4, 150))
            assert (dx == factor).all()


def test_losses_made_again_look_at_their_labels():
    x = normal(6, 100).requires_grad_()
    labels = torch.tensor([3, 0, 99, 18, 7, 1])
    for _ in range(3):
        ops.cross_entropy(x, labels)
    given = x, labels, -1, 0.0, -100, 0.0, _rows.EVERY, True
    assert fusing.made_again(_rows.of_classes, *given) is not NotImplemented
    for value in (-100, 5, 0):
        labels[2] = value
        found = ops.cross_entropy(x, labels)
        expected = torch.nn.functional.cross_entropy(x, labels)
        torch.testing.assert_close(found, expected)
        gradients = [torch.autograd.grad(y, x)[0] for y in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
    for value in (100, -1, -101, 1 << 40):
        labels[2] = value
        with pytest.raises(gs.GradsmithError, match=f"the class {value}"):
            ops.cross_entropy(x, labels)
    labels[2] = 5
    ignored = ops.cross_entropy(x, labels, ignore_index=5)
    own = torch.nn.functional.cross_entropy(x, labels, ignore_index=5)
    torch.testing.assert_close(ignored, own)


@pytest.mark.parametrize("loss", [ops.huber, ops.binary_cross_entropy_with_logits])
def test_losses_made_again_look_at_their_options(loss):
    x, t = normal(6, 100).requires_grad_(), torch.rand(6, 100)
    parts = loss(x, t, reduction="none")
    for _ in range(3):
        torch.testing.assert_close(loss(x, t), parts.mean())
        torch.testing.assert_close(loss(x, t, reduction="sum"), parts.sum())
        torch.testing.assert_close(loss(x, t, reduction="none"), parts)
        with pytest.raises(gs.GradsmithError, match="reduction"):
            loss(x, t, reduction="most")
        with pytest.raises(gs.GradsmithError, match="shape"):
            loss(x, t[:4])
        assert loss(x.half(), t).dtype is torch.float16
    other = {"delta": 0.5} if loss is ops.huber else {"pos_weight": 2.0}
    torch.testing.assert_close(
        loss(x, t, **other), loss(x, t, **other, reduction="none").mean()
    )


@pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")
def test_compiled_losses_do_not_go_by_calls_made_before():
    x, labels = normal(6, 100).requires_grad_(), torch.tensor([3, 0, 99, 18, 7, 1])
    for _ in range(3):
        eager = ops.cross_entropy(x, labels)
    compiled = torch.compile(ops.cross_entropy, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, labels), eager)
