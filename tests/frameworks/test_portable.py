"""Operations written once, in all four frameworks: the same numbers in every mode."""

from __future__ import annotations

from contextlib import nullcontext

import jax
import numpy as np
import pytest
import torch

import gradsmith as gs
import gradsmith.numpy as gnp

from .portable import ALL, FOREIGN
from .portable_operations import SAMPLES, clipped, safe_norm

# PyTorch's own while it compiles a Function
pytestmark = pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")
each = pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
each_foreign = pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=str)
LINEAR = [sample for sample in SAMPLES if sample.linear]


@pytest.fixture(autouse=True)
def fresh():
    """PyTorch compiles one piece of code for eight operations, and then no more."""
    torch._dynamo.reset()


@pytest.fixture(autouse=True)
def double(request):
    """JAX in 64 bits, but where a test asks for single precision."""
    single = "single" in request.node.name
    with nullcontext() if single else jax.enable_x64(True):
        yield


def leaves(y):
    return [y[key] for key in sorted(y)] if isinstance(y, dict) else [y]


def weights(x):
    """Another number for each element."""
    number = gnp.arange(gnp.size(x), dtype=x.dtype, like=x)
    return gnp.cos(gnp.reshape(number, gnp.shape(x)) + 1)


def weighed(y):
    """A number that depends on all outputs."""
    return sum(gnp.sum(each * weights(each)) for each in leaves(y))


def loss_of(framework, sample, fn=None):
    fixed = [framework.array(x) for x in sample.fixed]
    return lambda *xs: weighed((fn or sample.op)(*xs, *fixed))


def inputs(framework, sample, dtype="float64"):
    return tuple(framework.array(x, dtype) for x in sample.xs)


def plain(framework, xs):
    return [framework.plain(x) for x in xs]


STEP = 1e-6
# Of a difference quotient: what some roundings of its ends come to, 2e-16 / STEP each
NOISE = 20 * float(np.finfo("float64").eps) / STEP


def slopes(fn, xs, step=STEP):
    """Central differences of a number, by each element of each argument."""
    found = [np.empty_like(x) for x in xs]
    for i, x in enumerate(xs):
        for place in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in xs]
                moved[i][place] += sign * step
                ends.append(float(np.asarray(fn(*moved))))
            found[i][place] = (ends[0] - ends[1]) / (2 * step)
    return found


def agree(found, wanted, rtol=None):
    """Equal up to some hundred roundings in their dtype, or as close as is said."""
    for y, want in zip(found, wanted, strict=True):
        y = np.asarray(y)
        assert y.shape == np.shape(want)
        close = rtol or 400 * float(np.finfo(y.dtype).eps)
        np.testing.assert_allclose(y, want, rtol=close, atol=close)


ENGINE = ALL[0]


def engine_gradients(sample):
    return ENGINE.gradients(loss_of(ENGINE, sample), *sample.xs)


@each_sample
def test_the_engine_agrees_with_differences(sample):
    loss = loss_of(ENGINE, sample, sample.means)
    agree(engine_gradients(sample), slopes(loss, sample.xs), rtol=NOISE)


@each_foreign
@each_sample
def test_value_and_gradient(framework, sample):
    xs, loss = inputs(framework, sample), loss_of(framework, sample)
    agree([framework.plain(loss(*xs))], [loss_of(ENGINE, sample)(*sample.xs)])
    agree(plain(framework, framework.gradients(loss, *xs)), engine_gradients(sample))


@each
@pytest.mark.parametrize("sample", LINEAR, ids=str)
def test_forward_mode_is_the_gradient_times_the_direction(framework, sample):
    loss, dxs = loss_of(framework, sample), [weights(x) for x in sample.xs]
    run = framework.quickly(lambda xs, dxs: framework.tangent(loss, xs, dxs))
    dy = run(inputs(framework, sample), tuple(framework.array(dx) for dx in dxs))
    pairs = zip(engine_gradients(sample), dxs, strict=True)
    agree([framework.plain(dy)], [sum(np.sum(g * dx) for g, dx in pairs)])


def slope_along(framework, sample):
    """The gradients by weights: its gradient takes second derivatives."""
    loss = loss_of(framework, sample)

    def run(*xs):
        return sum(weighed(dx) for dx in framework.gradients(loss, *xs))

    return run


@each
@each_sample
def test_second_order(framework, sample):
    slope = slope_along(framework, sample)
    run = framework.quickly(lambda *xs: framework.gradients(slope, *xs))
    found = run(*inputs(framework, sample))
    wanted = slopes(slope_along(ENGINE, sample), sample.xs)
    agree(plain(framework, found), wanted, rtol=NOISE)


def runs(framework, sample, run, *arrays):
    """What compiled or mapped code gives; None if it refuses to run SciPy's code."""
    if sample.op.name == "erfcx" and not framework.calls_back:
        with pytest.raises(
            gs.UnsupportedOperationError, match="no callback into Python"
        ):
            run(*arrays)
        return None
    return run(*arrays)


@each_foreign
@each_sample
def test_compiled(framework, sample):
    run = framework.compiled_gradients(loss_of(framework, sample))
    found = runs(framework, sample, run, *inputs(framework, sample))
    if found is not None:
        agree(plain(framework, found), engine_gradients(sample))


@each_foreign
@each_sample
def test_batched(framework, sample):
    """Three samples at once, of which each has its own arguments."""
    sizes = np.array([0.5, 1.0, 1.5])
    stacks = [np.stack([size * x for size in sizes]) for x in sample.xs]
    loss = loss_of(framework, sample)
    run = framework.quickly(lambda *xs: framework.batched(loss, *xs))
    ys = runs(framework, sample, run, *[framework.array(x) for x in stacks])
    one = loss_of(ENGINE, sample)
    if ys is not None:
        agree([framework.plain(ys)], [[one(*xs) for xs in zip(*stacks, strict=True)]])


@each
@each_sample
def test_single_precision_stays_single(framework, sample):
    fixed = [framework.array(x) for x in sample.fixed]
    loss = loss_of(framework, sample)

    @framework.quickly
    def run(*xs):
        return leaves(sample.op(*xs, *fixed)), framework.gradients(loss, *xs)

    ys, dxs = run(*inputs(framework, sample, "float32"))
    assert {framework.plain(y).dtype for y in (*ys, *dxs)} == {np.dtype("float32")}
    agree(plain(framework, dxs), engine_gradients(sample))


# Where a rule says more than the derivative


@each
def test_the_norm_has_a_derivative_at_zero(framework):
    x = framework.array(np.zeros((2, 3)))
    (dx,) = framework.gradients(lambda x: gnp.sum(safe_norm(x)), x)
    agree([framework.plain(dx)], [np.zeros((2, 3))])


@each
def test_a_rule_that_clips(framework):
    x = framework.array(np.array([0.2, 5.0]))
    (dx,) = framework.gradients(lambda x: gnp.sum(clipped(x)), x)
    agree([framework.plain(dx)], [[0.4, 1.0]])
    with pytest.raises(gs.NotDifferentiableError, match="no forward mode"):
        framework.tangent(clipped, (x,), (x,))
