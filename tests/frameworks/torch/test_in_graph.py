"""Kernels under torch.compile: what takes whole rows is a node of the graph."""

from __future__ import annotations

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.codegen import custom_extern_kernel_codegen, wrapper
from torch._inductor.utils import fresh_inductor_cache, run_and_get_code

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.frameworks.torch.call import in_graph
from gradsmith.operations import fusing

pytestmark = [  # PyTorch's own
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not"),
]

LABELS = torch.arange(20) % 40
SHARES = torch.full((20, 40), 1 / 40)
LARGE = {
    "softmax": ops.softmax,
    "log_softmax": ops.log_softmax,
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "cross_entropy": lambda x: ops.cross_entropy(x, LABELS),
    "smooth": lambda x: ops.cross_entropy(x, LABELS, label_smoothing=0.1, z_loss=0.1),
    "rows": lambda x: ops.cross_entropy(x, LABELS, reduction="none"),
    "kl_divergence": lambda x: ops.kl_divergence(x, SHARES),
    "gelu": ops.gelu,
    "gelu, tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "silu": ops.silu,
    "log1mexp": lambda x: ops.log1mexp(0.01 + abs(x)),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Kernels of small arrays too, and nothing of other tests."""
    monkeypatch.setattr(in_graph, "SMALLEST", 600)
    monkeypatch.setattr(fusing, "SMALL", 0)  # of these only the first have kernels
    torch.compiler.reset()


def x_of(dtype=torch.float32, shape=(20, 40)):
    torch.manual_seed(0)
    return (3 * torch.randn(shape)).to(dtype).requires_grad_()


def value_and_gradient(fn, x):
    y = fn(x)
    torch.manual_seed(1)
    dy = torch.randn(y.shape).to(y.dtype)
    return y.detach(), *torch.autograd.grad(y, x, dy)


def compiled(fn, **options):
    """A compiled function, and the list of what its graphs call."""
    called = []

    def see(graph, _):
        called.extend(str(n.target) for n in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    return torch.compile(fn, backend=aot_autograd(fw_compiler=see), **options), called


FORWARD, BACK = "gradsmith.fused.default", "gradsmith.fused_gradient.default"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_value_and_gradient_are_those_of_eager_kernels(name, dtype):
    fn, x = LARGE[name], x_of(dtype)
    run, called = compiled(lambda x: fn(x * 1.0), fullgraph=True)
    for got, expected in zip(
        value_and_gradient(run, x), value_and_gradient(fn, x), strict=True
    ):
        # A gradient that is made ahead is rounded twice. What is left of shares that
        # cancel has the digits of the largest: each kernel adds in its order.
        eps = torch.finfo(dtype).eps
        atol = eps * float(expected.abs().max())
        torch.testing.assert_close(got, expected, rtol=2 * eps, atol=atol)
    assert called.count(FORWARD) == called.count(BACK) == 1


def test_inductor_calls_the_kernels():
    x = x_of()
    run = torch.compile(lambda x: ops.softmax(x * 2) + 1, fullgraph=True)
    expected = value_and_gradient(lambda x: ops.softmax(x * 2) + 1, x)
    for got, e in zip(value_and_gradient(run, x), expected, strict=True):
        torch.testing.assert_close(got, e, rtol=1e-6, atol=1e-7)


def test_code_by_inductor_calls_kernels_without_dispatching():
    x = x_of()

    def both():
        return value_and_gradient(torch.compile(ops.logsumexp, fullgraph=True), x)

    with fresh_inductor_cache():
        _, codes = run_and_get_code(both)
    forward, back = codes
    assert "gradsmith_forward(" in forward
    assert "gradsmith_back(" in back
    assert not any("torch.ops.gradsmith" in line for line in lines_that_run(codes))


def lines_that_run(codes):
    lines = [line.strip() for code in codes for line in code.splitlines()]
    return [x for x in lines if not x.startswith("#")]


def test_code_by_inductor_without_such_calls_dispatches(monkeypatch):
    x = x_of()
    monkeypatch.setattr(custom_extern_kernel_codegen, "CUSTOM_EXTERN_KERNEL_CODEGEN", 0)
    monkeypatch.setattr(wrapper, "CUSTOM_EXTERN_KERNEL_CODEGEN", {})
    monkeypatch.delattr(custom_extern_kernel_codegen, "CustomCodegen")
    with fresh_inductor_cache():
        run = torch.compile(ops.logsumexp, fullgraph=True)
        got, codes = run_and_get_code(lambda: value_and_gradient(run, x))
    assert "torch.ops.gradsmith.fused.default(" in codes[0]
    for a, b in zip(got, value_and_gradient(ops.logsumexp, x), strict=True):
        torch.testing.assert_close(a, b)


def test_the_gradient_of_clip_by_norm_is_a_kernel():
    def fn(x):
        return (ops.clip_by_norm(x, 0.5) * x.detach()).sum()

    x = x_of()
    run, called = compiled(fn, fullgraph=True)
    got, expected = value_and_gradient(run, x), value_and_gradient(fn, x)
    torch.testing.assert_close(got, expected)
    assert called.count(FORWARD) == 1
    torch.testing.assert_close(got[1].norm(), torch.tensor(0.5))


WIDE = torch.randn(20, 80)
FULL = torch.randn(20, 40)
LAYOUTS = [
    FULL, torch.ones(()).expand(20, 40), torch.nn.Parameter(FULL), WIDE[:, ::2],
    FULL.T.contiguous().T, torch.ones(40).expand(20, 40), FULL[:1].expand(20, 40),
]  # fmt: skip


@pytest.mark.parametrize(("i", "k"), [*((i, 0) for i in range(7)), (0, 1), (0, 5)])
def test_tensors_may_come_in_every_layout(i, k):
    """What is found out at the first call is not what the next one has."""
    number = number_of_softmax()
    in_graph._forwards.clear()
    in_graph._backwards.clear()
    for x in (LAYOUTS[i], *LAYOUTS):
        x = x.detach() if x is not LAYOUTS[2] else x
        with torch.no_grad():
            (y,) = in_graph.forward([x], number)
            torch.testing.assert_close(y, torch.softmax(x, -1))
            for dy in (LAYOUTS[k], *LAYOUTS):
                expected = y * (dy - (y * dy).sum(-1, keepdim=True))
                for saved in (y, y.T.contiguous().T):  # a hook may return this one
                    (got,) = in_graph.back(dy, [x], [saved], number)
                    torch.testing.assert_close(got, expected)


def number_of_softmax():
    in_graph._plans.clear()
    value_and_gradient(compiled(ops.softmax)[0], x_of())
    (number,) = in_graph._plans
    return number


@pytest.mark.parametrize(
    "other", [torch.ones(5, 40), torch.ones(20, 40).half(), torch.ones(800)]
)
def test_data_that_was_exchanged_is_noticed(other):
    """A kernel would read beyond it."""
    number, y = number_of_softmax(), torch.ones(20, 40)
    in_graph.back(y, [y], [y], number)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        in_graph.back(torch.ones(20, 40), [other], [y], number)


@pytest.mark.parametrize(("threads", "is_kernel"), [(4, True), (5, False)])
def test_few_rows_for_many_threads_are_composed(threads, is_kernel, monkeypatch):
    """A kernel gives threads whole rows, and here there is one."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    x = x_of(shape=(5 << 16,))
    run, called = compiled(ops.logsumexp)
    torch.testing.assert_close(run(x), torch.logsumexp(x, 0))
    assert (FORWARD in called) is is_kernel


@pytest.mark.parametrize(
    ("shape", "options"), [((4, 8), {}), ((20, 40), {"dynamic": True})]
)
def test_small_arrays_and_open_shapes_are_composed(shape, options):
    x = x_of(shape=shape)
    run, called = compiled(ops.softmax, **options)
    got = value_and_gradient(run, x)
    with gs.kernels(False):
        expected = value_and_gradient(ops.softmax, x)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)
    assert called
    assert FORWARD not in called


def test_kernels_that_are_off_are_composed():
    run, called = compiled(ops.softmax)
    with gs.kernels(False):
        value_and_gradient(run, x_of())
    assert FORWARD not in called


def test_a_device_for_which_kernels_do_not_pay_is_composed(monkeypatch):
    monkeypatch.setattr(ops.gelu.fused, "in_graph", ("cuda",))
    run, called = compiled(ops.gelu)
    got = value_and_gradient(run, x_of())
    torch.testing.assert_close(got, value_and_gradient(ops.gelu, x_of()))
    assert called
    assert FORWARD not in called


def test_autocast_is_composed():
    x = x_of()

    def fn(x):
        with torch.autocast("cpu", torch.bfloat16):
            return ops.softmax(x @ x.T)

    run, called = compiled(fn)
    got, expected = value_and_gradient(run, x), value_and_gradient(fn, x)
    torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)
    assert FORWARD not in called


def test_a_number_that_is_left_open_is_composed():
    """A kernel has its numbers; Dynamo leaves one open when it has changed."""
    loss = lambda x, share: ops.cross_entropy(x, LABELS, label_smoothing=share)
    run = torch.compile(loss)
    for share in (0.1, 0.2, 0.3):
        own = lambda fn, share=share: lambda x: fn(x, share)
        got, expected = (value_and_gradient(own(fn), x_of()) for fn in (run, loss))
        torch.testing.assert_close(got, expected)


def test_code_in_cpp_is_composed():
    """Its calls of operators that return a list of one tensor crash."""
    run, called = compiled(ops.softmax)
    with torch._inductor.config.patch(cpp_wrapper=True):
        got = value_and_gradient(run, x_of())
    torch.testing.assert_close(got, value_and_gradient(ops.softmax, x_of()))
    assert called
    assert FORWARD not in called


def test_second_order_is_composed(monkeypatch):
    x = x_of(torch.float64, (2, 300)).detach()[:, :4].contiguous().requires_grad_()
    monkeypatch.setattr(in_graph, "SMALLEST", 0)
    run = torch.compile(lambda x: ops.softmax(x).sin(), backend="eager")
    assert torch.autograd.gradgradcheck(run, x)


def test_a_label_that_is_out_of_range_raises():
    run, _ = compiled(ops.cross_entropy)
    with pytest.raises(IndexError, match="out of bounds"):
        run(x_of(), LABELS + 1000)


def test_an_argument_that_is_changed_in_place_is_noticed():
    x = x_of()
    run, called = compiled(lambda x: ops.logsumexp(x, axis=-1))
    inner = x * 1.0
    y = run(inner)
    assert FORWARD in called
    inner.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_graph_has_one_number_for_a_plan():
    run = torch.compile(ops.softmax, backend="eager")
    x = x_of()
    run(x)
    before = len(in_graph._plans)
    for _ in range(5):
        run(x)
    assert len(in_graph._plans) == before


def test_the_number_of_a_plan_is_of_its_content():
    """Compiled graphs are kept on disk, for other processes."""
    found = []
    for name in ("softmax", "log_softmax", "softmax", "log_softmax"):
        in_graph._plans.clear()
        torch.compiler.reset()
        LARGE[name].fused.forget()
        value_and_gradient(compiled(LARGE[name])[0], x_of())
        found.append({*in_graph._plans})
    assert found[0] == found[2] != found[1] == found[3]


def test_shapes_with_one_loop_have_plans_of_their_own():
    """A norm of all elements is the same kernel for all shapes of one size."""
    run = torch.compile(ops.norm, backend="aot_eager", dynamic=False)
    shapes = [(20, 40), (40, 20), (10, 80)]
    for shape in (*shapes, *shapes):
        got = value_and_gradient(run, x_of(shape=shape))
        expected = value_and_gradient(ops.norm, x_of(shape=shape))
        torch.testing.assert_close(got, expected)


@gs.custom_gradient(fused=True)
def rounded_sum(x, z):
    return gnp.round(x) + z, lambda dy: (dy, dy)


@pytest.mark.parametrize("change", [torch.sum, torch.square], ids=["sum", "square"])
def test_an_upstream_gradient_that_is_passed_on_is_no_output_of_an_operator(
    change, monkeypatch
):
    """Else Inductor takes it for new memory, which it may write over."""
    monkeypatch.setattr(rounded_sum.fused, "in_graph", ("cpu",))  # as on a GPU

    def fn(x):
        return change(rounded_sum(3 * x, x * x))

    run, called = compiled(fn)
    expected = value_and_gradient(fn, x_of())
    torch.testing.assert_close(value_and_gradient(run, x_of()), expected)
    assert FORWARD in called
    assert BACK not in called
    run = torch.compile(fn)
    torch.testing.assert_close(value_and_gradient(run, x_of()), expected)


@pytest.mark.filterwarnings("ignore")
def test_compiled_autograd_after_calls_that_are_made_again():
    p = torch.nn.Parameter(x_of(shape=(1000,)).detach())
    optimizer = torch.optim.SGD([p], 0.1)
    for _ in range(3):
        ops.silu(p).sum().backward()
    optimizer.zero_grad()

    @torch.compile(backend="aot_eager", dynamic=True)
    def step(loss):
        loss.backward()

    with torch._dynamo.config.patch(compiled_autograd=True):
        for _ in range(3):
            step(ops.silu(p).sum())
            (expected,) = torch.autograd.grad(torch.nn.functional.silu(p).sum(), p)
            torch.testing.assert_close(p.grad, expected)
            optimizer.step()
            optimizer.zero_grad()
