"""Fused operations are composed in MLX, and why."""

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")
pytest.importorskip("llvmlite")

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402
from gradsmith.program.kernels.kernel import Kernel  # noqa: E402
from tests.ops.samples import LOSSES, STABLE  # noqa: E402

X = mx.array([0.5, -1.25, 2.0])


@gs.custom_gradient(fused=True)
def squash(x):
    t = gnp.tanh(x)
    return 3 * t, lambda dy: dy * 3 * (1 - t * t)


@pytest.fixture(autouse=True)
def no_kernels(monkeypatch):
    """Kernels at the first call, none of which is to run."""
    monkeypatch.setattr(fusing, "SMALL", 0)

    def run(*args):
        raise AssertionError("a kernel ran")

    for name in ("run", "run_small"):
        monkeypatch.setattr(Kernel, name, run)


def close(found, wanted):
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=2e-5, atol=1e-7)


def of_a_slope(fn, *, evaluate):
    """Of x: the gradient of a function of what an inner derivative gave."""

    def loss(x):
        slope = mx.vjp(lambda x: x**3, [x * 2], [mx.ones_like(x)])[1][0]
        if evaluate:
            mx.eval(slope)
        return mx.sum(fn(slope / 10) ** 2)

    return mx.grad(loss)(X)


def test_mlx_cuts_off_what_is_evaluated_between_two_derivatives():
    """This is why there are no kernels. If it fails, there could be."""
    close(of_a_slope(mx.sin, evaluate=True), mx.zeros_like(X))


@pytest.mark.parametrize("fn", [ops.silu, ops.softmax, squash], ids=lambda f: f.name)
def test_a_slope_of_a_slope_is_right(fn):
    with gs.kernels(False):
        expected = of_a_slope(fn, evaluate=False)
    got = of_a_slope(fn, evaluate=False)
    close(got, expected)
    assert mx.any(mx.abs(got) > 1e-3)


@pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)
def test_operations_are_those_of_the_engine(sample):
    xs = [x.astype("float32") for x in sample.xs]
    argnums = tuple(range(len(xs)))
    loss = lambda *xs: gnp.sum(sample.fn(*xs, *map(mx.array, sample.fixed)))
    value, gradients = mx.value_and_grad(loss, argnums)(*map(mx.array, xs))
    gradients = gradients if len(xs) > 1 else [gradients]
    with gs.kernels(False):
        plain = lambda *xs: np.sum(sample.fn(*xs, *sample.fixed))
        true, expected = gs.value_and_grad(plain, argnums)(*sample.xs)
    close(value, true)
    for dx, each in zip(gradients, expected, strict=True):
        close(dx, each)


def test_compiled_and_mapped():
    gradient = lambda x: mx.grad(lambda x: mx.sum(squash(x)))(x)
    close(mx.compile(gradient)(X), gradient(X))
    close(mx.vmap(gradient)(X), gradient(X))


def test_it_is_said():
    assert "MLX composes it: a kernel needs values" in str(squash.kernels(X))
