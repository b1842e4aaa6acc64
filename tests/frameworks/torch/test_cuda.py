"""Fused operations on a GPU, by Triton: `make test-gpu`."""

from __future__ import annotations

import pytest
import torch

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.frameworks.torch.call import in_graph
from gradsmith.operations import fusing
from gradsmith.program.kernels.triton_kernel import GpuKernel

pytestmark = [
    pytest.mark.gpu,
    # PyTorch's own, in Inductor's imports for GPUs
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
]

EPS = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
DTYPES = [*EPS]
OPS = {
    name: getattr(ops, name)
    for name in ("silu", "sigmoid", "softplus", "log_sigmoid", "gelu", "softmax",
                 "log_softmax")
}  # fmt: skip


def gumbel(x):
    return ops.gumbel_softmax(x, 3)


SHARES = [ops.softmax, gumbel]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Kernels at the first call, also of small arrays; and none composed instead."""
    monkeypatch.setattr(fusing, "SMALL", 0)
    ops.silu(torch.ones(1))  # the very first call finds out what PyTorch's tensors are
    started = GpuKernel.start
    count = []
    monkeypatch.setattr(
        GpuKernel, "start", lambda *args: (count.append(1), started(*args))[1]
    )
    return count


def value_and_gradient(fn, x, dy):
    x = x.detach().requires_grad_()
    y = fn(x)
    (dx,) = torch.autograd.grad(y, x, dy)
    return y.detach(), dx


def compare(fn, x, dy, count, ulp=8.0, kernels=2):
    """The kernel beside the composed form in float64 on the CPU.

    Errors are told by the greatest number of a row. The gradient of a softmax, dy y
    less a share of their sum, is less than these terms, and has their rounding; that of
    a log_softmax has a share of the sum of dy, which is rounded as if it were of their
    norm: plain NumPy's is off by as much.
    """
    y, dx = value_and_gradient(fn, x, dy)
    assert len(count) == kernels, "one kernel forward, one back"
    with gs.kernels(False):
        expected = value_and_gradient(fn, x.cpu().double(), dy.cpu().double())
    terms = [0 * expected[0], 0 * expected[0]]
    if fn in SHARES:
        terms[1] = dy.cpu().double().abs() * expected[0].abs()
    if fn is ops.log_softmax:
        terms[1] = expected[0].exp() * dy.cpu().double().norm(dim=-1, keepdim=True)
    for got, e, term in zip((y, dx), expected, terms, strict=True):
        error = (got.cpu().double() - e).abs()
        assert got.dtype == x.dtype
        size = torch.maximum(e.abs(), term).amax(-1, keepdim=True)
        bound = ulp * EPS[x.dtype] * size
        assert bool((error <= bound).all()), float((error / bound).max())


def arrays(shape, dtype):
    torch.manual_seed(0)
    x = 3 * torch.randn(shape, device="cuda")
    return x.to(dtype), torch.randn(shape, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_value_and_gradient(name, dtype, at_once):
    x, dy = arrays((33, 1000), dtype)
    compare(OPS[name], x, dy, at_once)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (7, 1025), (3, 50257)], ids=str)
@pytest.mark.parametrize("name", ["silu", "softmax"])
def test_sizes_that_are_no_power_of_two(name, shape, at_once):
    x, dy = arrays(shape, torch.float32)
    compare(OPS[name], x, dy, at_once)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [5000, 10004, 30522, 40001])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_long_rows_of_uneven_length(name, columns, dtype, at_once):
    x, dy = arrays((150, columns), dtype)
    compare(OPS[name], x, dy, at_once)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("first", [0, 1, 8])
@pytest.mark.parametrize("columns", [1000, 5000])
def test_columns_of_a_wider_matrix(columns, first, dtype, at_once):
    wide, dy = arrays((33, columns + 13), dtype)
    kept = slice(first, first + columns)
    compare(OPS["softmax"], wide[:, kept], dy[:, kept], at_once)


@pytest.mark.parametrize("shape", [(33, 1000), (2, 50257)], ids=str)
def test_hard_choices_and_random_numbers(shape, at_once):
    x, dy = arrays(shape, torch.float32)
    compare(ops.one_hot_argmax, x, dy, at_once)
    for fn, kernels in ((gumbel, 2), (lambda x: ops.noise(x, 3), 1)):
        at_once.clear()
        compare(fn, x, dy, at_once, kernels=kernels)


@pytest.mark.parametrize("name", ["silu", "softmax"])
def test_upstream_gradients_of_every_layout(name, at_once):
    x, dy = arrays((12, 40), torch.float32)
    wide, _ = arrays((24, 80), torch.float32)
    turned, _ = arrays((40, 12), torch.float32)
    for upstream in (
        torch.ones((), device="cuda").expand(12, 40),
        dy[:, :1].expand(12, 40),
        dy[0].expand(12, 40),
        wide[::2, ::2],
        turned.T,
    ):
        at_once.clear()
        compare(OPS[name], x, upstream, at_once)


def test_arguments_of_every_layout(at_once):
    wide, dy = arrays((80, 24), torch.float32)
    compare(ops.softmax, wide.T[:, ::2], dy.T[:, ::2], at_once)


def test_more_than_two_to_the_31_elements(at_once):
    n = 2**31 + 5
    x = torch.zeros(n, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    with torch.no_grad():
        x[-3:] = 2.0
    ops.silu(x)[-4:].sum().backward()
    expected = torch.tensor([0.5, 1.0908, 1.0908, 1.0908])
    torch.testing.assert_close(x.grad[-4:].float().cpu(), expected, rtol=0.01, atol=0)
    assert bool((x.grad[:1000] == 0).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [30000, 32768, 40000, 131072])
def test_more_rows_than_processors(columns, dtype, at_once):
    rows = 3 * torch.cuda.get_device_properties("cuda").multi_processor_count + 5
    x, dy = arrays((rows, columns), dtype)
    compare(ops.softmax, x, dy, at_once)
    labels = torch.randint(0, columns, (rows,), device="cuda")
    labels[::3] = -100
    x[3] = float("nan")  # is ignored
    got = value_and_gradient(lambda x: ops.cross_entropy(x, labels), x, dy[0, 0])
    with gs.kernels(False):
        many = x.double(), dy[0, 0].double()
        expected = value_and_gradient(lambda x: ops.cross_entropy(x, labels), *many)
    # x less the greatest of its row is rounded, before its exponential is taken
    far = (x - x.amax(1, keepdim=True)).abs().double().nan_to_num(0)
    least = torch.finfo(dtype).smallest_normal * EPS[dtype]
    for y, e, ulp in zip(got, expected, (4, 4 + far), strict=True):
        error = (y.double() - e).abs() / (ulp * EPS[dtype] * e.abs() + least)
        assert float(error.max()) <= 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [10, 1000, 30000, 32768, 40000, 128256, 300000])
def test_cross_entropy(columns, dtype, at_once):
    x, _ = arrays((17, columns), dtype)
    labels = torch.randint(0, columns, (17,), device="cuda")
    labels[3] = -100
    x[5, 2], x[6] = float("inf"), -1e4
    x[6, 1] = 3
    labels[5], labels[6] = 2, 1
    x.requires_grad_()
    ops.cross_entropy(x, labels).backward()
    assert at_once
    exact = x.detach().cpu().double().requires_grad_()
    with gs.kernels(False):
        ops.cross_entropy(exact, labels.cpu()).backward()
    error = (x.grad.cpu().double() - exact.grad).abs()
    assert bool((error <= 8 * EPS[dtype] * (exact.grad.abs() + 1e-4)).all())


def test_rows_shared_by_programs_of_several_streams():
    """Each finds its own totals. (A large GPU can't show that none waits for ever.)"""
    streams = [torch.cuda.Stream() for _ in range(4)]
    labels = torch.randint(0, 131072, (500,), device="cuda")
    xs = [torch.randn(500, 131072, device="cuda") for _ in streams]
    expected = [torch.nn.functional.cross_entropy(x, labels) for x in xs]
    torch.cuda.synchronize()
    found = []
    for _ in range(3):
        for stream, x in zip(streams, xs, strict=True):
            with torch.cuda.stream(stream):
                found.append(ops.cross_entropy(x, labels))
    torch.cuda.synchronize()
    torch.testing.assert_close(torch.stack(found), torch.stack(3 * expected))


def test_a_loss_of_many_rows_in_16_bits():
    """What each row adds is summed up by a kernel, where that is hidden."""
    x = torch.randn(4096, 8192, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(0, 8192, (4096,), device="cuda")
    y = ops.cross_entropy(x, labels)
    expected = torch.nn.functional.cross_entropy(x.double(), labels)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.double(), expected, rtol=2**-8, atol=0)


def test_a_user_s_operation():
    @gs.custom_gradient
    def mish(x):
        t = gnp.tanh(gnp.log1p(gnp.exp(x)))
        s = 1 / (1 + gnp.exp(-x))
        return x * t, lambda dy: dy * (t + x * s * (1 - t * t))

    x, dy = arrays((64, 64), torch.float32)
    _, dx = value_and_gradient(gs.fuse(mish), x, dy)
    _, theirs = value_and_gradient(torch.nn.functional.mish, x, dy)
    torch.testing.assert_close(dx, theirs, rtol=1e-5, atol=1e-6)


def cross_entropy_of(shape):
    x, _ = arrays(shape, torch.float32)
    labels = torch.randint(0, shape[1], shape[:1], device="cuda")
    labels[3] = -100
    return x.requires_grad_(), labels


@pytest.mark.parametrize("kept", [True, False])
def test_a_compiled_loss_makes_its_gradient_in_the_forward_pass(
    kept, at_once, monkeypatch
):
    x, labels = cross_entropy_of((257, 1000))
    if not kept:  # as where somebody copies what the graph saves
        made = in_graph._token
        monkeypatch.setattr(in_graph, "_token", lambda x, _: made(x, None))
    torch.compiler.reset()
    run = torch.compile(lambda x: ops.cross_entropy(2 * x, labels) * 3, fullgraph=True)
    loss = run(x)
    (dx,) = torch.autograd.grad(loss, x)
    assert len(at_once) == (2 if kept else 3)
    expected = torch.nn.functional.cross_entropy(2 * x, labels) * 3
    torch.testing.assert_close(loss, expected)
    (theirs,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(dx, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("shape", [(257, 1000), (9, 50257)], ids=str)
def test_rows_of_labels_to_ignore_are_not_read(shape, at_once):
    x, labels = cross_entropy_of(shape)
    with torch.no_grad():
        x[3] = float("nan")
    (dx,) = torch.autograd.grad(ops.cross_entropy(x, labels), x)
    assert bool((dx[3] == 0).all())
    assert bool(dx.isfinite().all())


def test_in_16_bits_a_compiled_gelu_is_a_kernel(at_once):
    x, dy = arrays((128, 1024), torch.bfloat16)
    torch.compiler.reset()
    _, dx = value_and_gradient(torch.compile(ops.gelu), x, dy)
    assert len(at_once) == 2
    _, theirs = value_and_gradient(torch.nn.functional.gelu, x, dy)
    torch.testing.assert_close(dx, theirs, rtol=2e-2, atol=2e-2)


def test_the_second_order_is_composed():
    x = torch.randn(10, device="cuda", dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(ops.silu, x)


def test_the_checker_takes_tensors_of_a_gpu():
    x, _ = arrays((4, 6), torch.float32)
    assert gs.check(ops.softmax, x).ok
