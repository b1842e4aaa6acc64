"""Kernels in eager mode at the edges: memory that is short, values that look alike."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.frameworks.torch.call import fused
from gradsmith.frameworks.torch.kernels import arrays

TIMES = 3  # the first call, one that is made again, and another one


def x_of(*shape):
    torch.manual_seed(0)
    return torch.randn(shape, requires_grad=True)


TOTAL = """
import torch, gradsmith as gs, gradsmith.numpy as gnp

@gs.fuse
@gs.custom_gradient
def total(s, x):
    y = gnp.sum(gnp.sum(x * s, axis=-1))
    return y, lambda dy: (None, dy * s * gnp.ones_like(x))

s, x = torch.tensor(2.0), torch.ones(256, 64, requires_grad=True)
for _ in range(20):
    assert total(s, x).item() == 32768
"""


def test_a_total_has_memory_for_its_parts():
    """In a process of its own, which writing beyond memory would kill."""
    assert subprocess.run([sys.executable, "-c", TOTAL], check=False).returncode == 0


def test_another_default_device():
    x, t = x_of(64, 32), torch.arange(64) % 32
    expected = F.cross_entropy(x, t).item()
    for _ in range(TIMES):
        with torch.device("meta"):
            assert ops.cross_entropy(x, t).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("op", [ops.silu, ops.softmax])
def test_data_that_is_replaced_is_noticed(op):
    for n in (1000, 60000):
        x = x_of(n)
        for _ in range(TIMES):
            op(x).sum().backward()
        y = op(x).sum()
        x.data = torch.zeros(10)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_an_array_where_a_number_was():
    x, t = x_of(16, 64), torch.zeros(16, 64)
    for _ in range(TIMES):
        ops.huber(x, t)
    delta = torch.full((64,), 2.0)
    expected = F.huber_loss(x, t, delta=2.0).item()
    assert ops.huber(x, t, delta=delta).item() == pytest.approx(expected, rel=1e-6)
    for _ in range(TIMES):
        ops.cross_entropy(x, torch.zeros(16, dtype=int))
    with pytest.raises(gs.GradsmithError, match="axis"):
        ops.cross_entropy(x, torch.zeros(16, dtype=int), axis=np.array([1, 1]))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.uint8, torch.int32])
@pytest.mark.parametrize("ignored", [-1, -100, -1000])
def test_labels_of_few_bits(dtype, ignored):
    x, t = x_of(64, 300), (torch.arange(64) % 100).to(dtype)
    for _ in range(TIMES):
        expected = F.cross_entropy(x, t.long(), ignore_index=ignored).item()
        got = ops.cross_entropy(x, t, ignore_index=ignored).item()
        assert got == pytest.approx(expected, rel=1e-6)
    if dtype.is_signed and ignored == -1:
        t[::2] = -1
        expected = F.cross_entropy(x, t.long(), ignore_index=-1).item()
        got = ops.cross_entropy(x, t, ignore_index=-1).item()
        assert got == pytest.approx(expected, rel=1e-6)


def test_an_upstream_gradient_with_the_negative_bit():
    x, t = x_of(64, 32), torch.arange(64) % 32
    dy = torch.tensor(1 + 2j).conj().imag
    assert dy.is_neg()
    for _ in range(TIMES):
        (dx,) = torch.autograd.grad(ops.cross_entropy(x, t), x, dy)
        (expected,) = torch.autograd.grad(F.cross_entropy(x, t), x, dy)
        torch.testing.assert_close(dx, expected)


def test_minus_zero_is_another_number():
    @gs.fuse
    @gs.custom_gradient
    def times(x, a):
        return x * a, lambda dy: dy * a

    x = torch.ones(600)
    for a in (0.0, 0.0, -0.0, -0.0, 0.0):
        assert bool(torch.signbit(times(x, a)).all()) == (str(a) == "-0.0")


def test_tensors_behind_numbers_are_not_held():
    @gs.fuse
    @gs.custom_gradient
    def scaled(x, a, t):
        return x * a * t, lambda dy: (dy * a * t, gnp.zeros_like(t))

    x = x_of(600)
    for _ in range(5):
        scaled(x, 2.0, torch.ones(600))
    (plan,) = scaled.fused._plans.values()
    assert len(plan.calls) == 1


@pytest.mark.parametrize(
    "loss", [ops.huber, ops.poisson_nll, ops.binary_cross_entropy_with_logits]
)
def test_the_mean_of_nothing(loss):
    x = torch.zeros(0, 64, requires_grad=True)
    y = loss(x, torch.zeros(0, 64))
    y.backward()
    assert torch.isnan(y)
    assert x.grad.shape == (0, 64)


@pytest.mark.parametrize(("n", "strides"), [(1 << 15, (1, 1 << 15)), (1 << 16, None)])
def test_a_gpu_reads_by_strides_as_far_as_32_bits_count(n, strides, monkeypatch):
    """Columns are counted in 32 bits: an address beyond would be another one."""
    given = {}

    def start(arrays, strides, processors):
        given.update(x=arrays[0], strides=strides)

    x = torch.empty(n, n, dtype=torch.bfloat16, device="meta").T
    nest = SimpleNamespace(
        rows=n, columns=n, constants=[], inputs=[("full", np.dtype("float32"))]
    )
    _start_on_gpu(monkeypatch, [x], [x], nest, start, strides=lambda kind: (n, 1))
    assert given["strides"] == [*(strides or (n, 1))]
    assert given["x"].is_contiguous() is (strides is None)


def test_words_that_programs_exchange_are_0_each_time(monkeypatch):
    def start(arrays, strides, processors):
        _, y, words = arrays
        assert words.dtype == torch.int64
        assert words.tolist() == [0, 0, 0]
        words += 1
        y += 1

    x, y = torch.ones(1), torch.zeros(1)
    nest = SimpleNamespace(
        rows=1, columns=1, constants=[], inputs=[("row", np.dtype("float32"))]
    )
    for _ in range(2):
        more = {"strides": lambda kind: (1, 0), "words": 3}
        _start_on_gpu(monkeypatch, [x], [y], nest, start, **more)
    assert y == 2


def _start_on_gpu(monkeypatch, given, written, nest, start, words=0, **more):
    gpu = SimpleNamespace(nest=nest, start=start, words=words, **more)
    gpu.for_gpu = lambda processors: gpu
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    monkeypatch.setattr(fused, "_processors", lambda device: 132)
    fused._start(SimpleNamespace(on_gpu=gpu), given, written)


@pytest.mark.parametrize("x", [1e40, -1e40, 2**130, 3, np.inf, np.nan, True])
def test_constants_on_a_gpu_are_those_of_a_cpu(x, monkeypatch):
    make = {name: getattr(torch, name) for name in ("full", "as_tensor")}
    for name, fn in make.items():  # there is no GPU
        on_cpu = lambda *args, fn=fn, device=None, **options: fn(*args, **options)
        monkeypatch.setattr(torch, name, on_cpu)
    like = SimpleNamespace(device=SimpleNamespace(type="cuda"))
    y = arrays.constant(x, "float32", like)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, np.float32(x))
