"""Long chains of steps, stage by stage."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.program.graph import Program, Step, Value
from gradsmith.program.kernels import loops
from gradsmith.program.kernels.kernel import Kernel
from gradsmith.program.kernels.mode import in_kernel
from gradsmith.program.kernels.primitives import exp_times
from gradsmith.program.kernels.stages import BLOCK, stages_of


def kernel_of(*fns, n=1000, dtype=np.float32):
    """One function of another, of an array."""
    values = [Value((n,), np.dtype(dtype)) for _ in range(len(fns) + 1)]
    steps = tuple(
        Step(fn, (x,), {}, (y,))
        for fn, x, y in zip(fns, values, values[1:], strict=False)
    )
    return Kernel(Program("f", (values[0],), steps, values[-1]))


def left_by(kernel):
    (only,) = kernel.nest.passes
    return [[node.op for node in stage] for stage in stages_of(only)]


def test_a_long_chain_is_cut_where_one_value_is_left():
    assert left_by(kernel_of(np.exp, np.log)) == [["exp"]]
    assert left_by(kernel_of(np.exp, np.log, np.square, np.exp)) == [["exp"], ["log"]]


@pytest.mark.parametrize("fns", [(np.exp,), (np.log, np.negative), (np.square,) * 12])
def test_a_short_one_is_not(fns):
    assert left_by(kernel_of(*fns)) == []


def test_an_exponential_is_not_cut_off_from_its_product():
    """Both have parts in common, which LLVM computes once."""

    @gs.custom_gradient(fused=True)
    def op(x):
        e = gnp.exp(x)
        y = 1 / (1 + gnp.sqrt(1 + e))
        return exp_times(x, y) if in_kernel() else e * y, lambda dy: dy

    kernel = op.kernels(np.ones(1000, np.float32)).forward
    assert "exp_times" in str(kernel)
    assert left_by(kernel) == []


def chain(x):
    t = gnp.exp(-gnp.abs(x))
    return gnp.where(x < 0.5, gnp.log(1 + t) * x, gnp.exp(gnp.tanh(t) - x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [7, 255, 256, 257, 600, 16 * 16 * 3 + 17])
def test_stages_compute_the_same_bits(n, dtype, monkeypatch):
    x = np.random.default_rng(n).normal(size=n).astype(dtype) * 3
    assert BLOCK * 16 == 256

    def both():
        op = gs.custom_gradient(fused=True)(lambda x: (chain(x), lambda dy: chain(dy)))
        assert left_by(op.kernels(x).forward)
        return op(x), gs.grad(lambda x: np.sum(op(x) * x))(x)

    found = both()
    monkeypatch.setattr(loops, "stages_of", lambda each: [])
    for a, b in zip(found, both(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_stages_write_where_they_read():
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    kernel = kernel_of(np.exp, np.log, np.square, np.exp)
    y = kernel(x)
    kernel.run([x.ctypes.data], [x.ctypes.data])
    np.testing.assert_array_equal(x, y)
