"""What `gs.survives` accepts, and what it says to bad input."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.frameworks import Framework

X = np.array([0.5, 1.5])


@gs.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy


@pytest.mark.parametrize("op", [None, 3, "square", X, int])
def test_not_an_operation(op):
    with pytest.raises(gs.GradsmithError, match=r"needs an operation(.|\n)*what to do"):
        gs.survives(op, X)


@pytest.mark.parametrize("inputs", [(), (1,), ("text",), (np.arange(3),)])
def test_nothing_to_differentiate_by(inputs):
    with pytest.raises(gs.GradsmithError, match="needs inputs to differentiate by"):
        gs.survives(gs.custom_gradient(lambda *xs: (xs, lambda *dys: dys)), *inputs)


def test_an_unknown_framework():
    with pytest.raises(
        gs.GradsmithError, match="one of numpy, tensorflow, jax, torch, mlx"
    ):
        gs.survives(square, X, framework="theano")


def test_a_framework_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    part = "gradsmith.frameworks.jax.transformations"
    monkeypatch.delitem(sys.modules, part, raising=False)
    with pytest.raises(gs.GradsmithError, match="not installed: pip install jax"):
        Framework("jax", "JAX", example="").part("transformations")


def test_an_unknown_transformation():
    with pytest.raises(
        gs.GradsmithError, match=r"no transformation 'gard'.*GradientTape"
    ):
        gs.survives(square, X, only=["grad", "gard"])
    with pytest.raises(gs.GradsmithError, match="no transformation 'gard'"):
        gs.survives(square, X, skip="gard")


def test_only_and_skip():
    found = gs.survives(square, X, only=["grad", "jvp"], skip="jvp")
    assert [o.transformation for o in found.outcomes] == ["grad"]
    assert gs.survives(square, X, only=[]).outcomes == ()


def test_no_output_with_a_gradient():
    op = gs.custom_gradient(lambda x: (np.argmax(x), lambda dy: gs.zero))
    with pytest.raises(gs.GradsmithError, match="no output with a gradient"):
        gs.survives(op, X)


def test_inputs_that_do_not_fit_raise_what_the_operation_raises():
    with pytest.raises(TypeError, match="too many positional") as caught:
        gs.survives(square, X, X)
    assert "raised by square itself" in caught.value.__notes__[-1]


def test_two_frameworks():
    torch = pytest.importorskip("torch")
    jnp = pytest.importorskip("jax.numpy")
    add = gs.custom_gradient(lambda x, y: (x + y, lambda dy: (dy, dy)))
    with pytest.raises(
        gs.GradsmithError, match=r"survives\(\) was given arrays of two"
    ):
        gs.survives(add, torch.ones(3), jnp.ones(3))
    with pytest.raises(gs.GradsmithError, match="the inputs are PyTorch's arrays"):
        gs.survives(square, torch.ones(3), framework="jax")


def test_an_operation_of_another_framework():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")

    @jax.custom_jvp
    def op(x):
        return x

    op.defjvps(lambda dx, y, x: dx)
    with pytest.raises(
        gs.GradsmithError, match="is an operation of JAX, and framework="
    ):
        gs.survives(op, X, framework="torch")
    with pytest.raises(gs.GradsmithError, match="the inputs are PyTorch's arrays"):
        gs.survives(op, torch.ones(3))


def test_nothing_is_printed_where_it_is_fast(capfd):
    gs.survives(square, X)
    assert capfd.readouterr() == ("", "")
