"""Bad input: one clear error each, which names the way out."""

from __future__ import annotations

import sys
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS

from .portable import ALL, FOREIGN


@gs.custom_gradient
def add(x, y):
    return x + y, lambda dy: (dy, dy)


@pytest.mark.parametrize(
    ("one", "other"), [*permutations(ALL, 2)], ids=lambda framework: framework.name
)
def test_arrays_of_two_frameworks(one, other):
    with pytest.raises(gs.GradsmithError, match="arrays of two frameworks") as info:
        add(one.array([1.0]), other.array([2.0]))
    message = str(info.value)
    assert "operation 'add'" in message
    assert "what to do: convert one of them" in message


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_arrays_of_two_frameworks_in_a_tree(framework):
    op = gs.custom_gradient(lambda p: (p["a"], lambda dy: {"a": dy, "b": None}))
    with pytest.raises(gs.GradsmithError, match="arrays of two frameworks"):
        op({"a": framework.array([1.0]), "b": np.ones(1)})


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_numpy_scalars_and_numbers_belong_to_nobody(framework):
    op = gs.custom_gradient(
        lambda x, s: (x * float(s), lambda dy: (dy * float(s), 0.0))
    )
    y = op(framework.array([1.0], "float32"), np.float32(3))
    np.testing.assert_array_equal(framework.plain(y), [3])


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_a_framework_that_is_too_old(framework, monkeypatch):
    module = FRAMEWORKS[framework.name].module
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(__version__="0.1.2+cpu"))
    with pytest.raises(gs.UnsupportedOperationError) as info:
        FRAMEWORKS[framework.name].part("nothing loaded yet")
    assert "0.1.2" in str(info.value)
    install = FRAMEWORKS[framework.name].install
    assert f"pip install --upgrade {install}" in str(info.value)


@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_a_python_if_on_a_traced_value(framework):
    @gs.custom_gradient
    def op(x):
        if x > 0:
            return x * 2, lambda dy: dy * 2
        return x, lambda dy: dy

    x = framework.array(1.0, "float32")
    assert framework.plain(op(x)) == 2  # eager: it has a value
    if framework.name == "torch":  # its error comes from the compiler itself
        return
    with pytest.raises(Exception) as info:  # noqa: PT011  (each its own)
        framework.compiled(op)(x)
    notes = "\n".join(info.value.__notes__)
    assert "operation 'op'" in notes
    assert "gnp.where" in notes


@pytest.mark.parametrize("framework", FOREIGN[:2], ids=lambda f: f.name)
def test_a_rule_with_a_python_if_on_a_traced_value(framework):
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: dy * 2 if dy > 0 else dy

    with pytest.raises(Exception) as info:  # noqa: PT011  (each its own)
        framework.compiled(lambda x: framework.gradients(op, x))(
            framework.array(1.0, "float32")
        )
    notes = "\n".join(info.value.__notes__)
    assert "the gradient of operation 'op'" in notes
    assert "gnp.where" in notes


@pytest.mark.parametrize("framework", FOREIGN[:2], ids=lambda f: f.name)
def test_numpy_functions_on_traced_values(framework):
    @gs.custom_gradient
    def op(x):
        return np.exp(np.asarray(x)), lambda dy: dy

    with pytest.raises(Exception) as info:  # noqa: PT011  (each its own)
        framework.compiled(op)(framework.array([1.0], "float32"))
    notes = "\n".join(info.value.__notes__)
    assert "gradsmith.numpy" in notes
    assert "gs.python_op" in notes


OURS = {
    "grad": lambda f, x: gs.grad(f)(x),
    "value_and_grad": lambda f, x: gs.value_and_grad(f)(x),
    "vjp": lambda f, x: gs.vjp(f, x),
    "jvp": lambda f, x: gs.jvp(f, (x,), (x,)),
    "jacobian": lambda f, x: gs.jacobian(f)(x),
    "jacrev": lambda f, x: gs.jacrev(f)(x),
    "jacfwd": lambda f, x: gs.jacfwd(f)(x),
    "hessian": lambda f, x: gs.hessian(f)(x),
    "hvp": lambda f, x: gs.hvp(f, (x,), (x,)),
    "watch": lambda f, x: gs.GradientTape().watch(x),
    "accumulator": lambda f, x: gs.ForwardAccumulator([x], [x]),
}
THEIRS = {"tensorflow": "tf.", "jax": "jax.grad", "torch": "backward", "mlx": "mx.grad"}


@pytest.mark.parametrize("transform", OURS)
@pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
def test_the_engine_refuses_the_arrays_of_frameworks(framework, transform):
    x = framework.array([1.0, 2.0], "float32")
    words = rf"array \(.*\)[\s\S]*differentiate by .*{THEIRS[framework.name]}"
    with pytest.raises(gs.GradsmithError, match=words):
        OURS[transform](lambda x: (x * x).sum(), x)
