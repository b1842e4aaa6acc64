"""Each framework's own custom operation gives the gradient that its rule says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mutants.corpus import Subject
from benchmarks.mutants.differing import upstream
from benchmarks.mutants.operations import OPERATIONS
from benchmarks.mutants.running import ready

# JAX compiles each operation when it is first met; one in eight takes two seconds.
SOME = [*list(OPERATIONS)[::8], "cross_entropy", "sine_and_cosine"]
CASES = [(f, name) for f in ("numpy", "torch", "tensorflow") for name in OPERATIONS]
CASES += [("jax", name) for name in SOME]


def outputs(y):
    return y if isinstance(y, (tuple, list)) else (y,)


def gradients(framework, op, xs, dys, places):
    """The gradients of <dy, op(x)> in the framework's own way."""
    if framework == "torch":
        import torch

        leaves = [xs[i].requires_grad_() for i in places]
        return torch.autograd.grad(outputs(op(*xs)), leaves, list(map(_torch, dys)))
    if framework == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch([xs[i] for i in places])
            ys = outputs(op(*xs))
        return tape.gradient(ys, [xs[i] for i in places], list(dys))
    import gradsmith as gs

    def value(*xs):
        ys = outputs(op(*xs))
        return sum((d * y).sum() for d, y in zip(dys, ys, strict=True))

    grad = gs.grad
    if framework == "jax":
        from jax import grad
    return grad(value, argnums=tuple(places))(*xs)


def _torch(dy):
    import torch

    return torch.tensor(dy)


@pytest.mark.parametrize(("framework", "name"), CASES)
@pytest.mark.parametrize("kind", [None, "factor 2"])
def test_the_gradient_is_the_rules(framework, name, kind):
    if framework != "numpy":
        pytest.importorskip(framework)
    subject, op = Subject(name, framework, kind), OPERATIONS[name]
    arrays = subject.arrays()
    y = op.forward(*arrays)
    dy = upstream(y, 0)
    with ready(framework):
        xs = subject.inputs()
        dxs = gradients(framework, subject.build(), xs, outputs(dy), op.floats)
    want = op.rule(dy, y, *arrays)
    for i, dx in zip(op.floats, dxs, strict=True):
        scale = 1 if kind is None else 2
        np.testing.assert_allclose(
            np.asarray(dx), scale * want[i], rtol=1e-9, atol=1e-10
        )


def test_autograd_has_it_too():
    pytest.importorskip("autograd")
    from autograd import grad

    subject = Subject("tanh", "numpy", "sign")
    op, (x,) = subject.build("autograd"), subject.arrays()
    got = grad(lambda x: op(x).sum())(x)
    np.testing.assert_allclose(got, np.tanh(x) ** 2 - 1)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_a_rule_that_misreads_memory_is_right_on_contiguous_input(framework):
    subject = Subject("multiply", framework, "right only if contiguous")
    op, xs = subject.build(), subject.inputs()
    dys = [upstream(xs[0], 0)]
    want = gradients(framework, Subject("multiply", framework).build(), xs, dys, [0])
    got = gradients(framework, op, xs, dys, [0])
    np.testing.assert_array_equal(np.asarray(got[0]), np.asarray(want[0]))


def test_a_rule_that_writes_to_its_input_does_so():
    pytest.importorskip("torch")
    subject = Subject("cube", "torch", "writes to an input")
    (x,) = subject.inputs()
    before = x.clone()
    subject.build()(x.requires_grad_()).sum().backward()
    np.testing.assert_array_equal(x.detach(), 0.5 * before)
