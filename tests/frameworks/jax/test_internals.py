"""Without the parts of JAX that it does not publish, results are the same."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs
from gradsmith.frameworks.jax import private
from gradsmith.frameworks.jax.call import eager

from .test_modes import OPERATIONS, derivative, reference

X = np.float32(1.3)
WORDS = [["reverse"], ["forward"], ["reverse", "forward"]]


@pytest.fixture(autouse=True)
def _published_alone(monkeypatch):
    monkeypatch.setattr(eager, "EAGER_TRACES", ())
    monkeypatch.setattr(private, "trace_to_jaxpr_dynamic", None)
    monkeypatch.setattr(private, "extend_axis_env_nd", None)
    monkeypatch.setattr(private, "get_axis_env", None)
    monkeypatch.setattr(private, "no_axis_name", None)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_modes(operation):
    for word in WORDS:
        expected = derivative(reference, word)(X)
        f = derivative(operation, word)
        np.testing.assert_allclose(f(X), expected, rtol=2e-5)
        np.testing.assert_allclose(jax.jit(f)(X), expected, rtol=2e-5)


def test_captures_and_batches():
    def f(x, c):
        op = gs.with_gradient(lambda x: x * c, lambda dy, y, x: 10 * dy)
        return op(x)

    assert jax.grad(f, (0, 1))(5.0, 2.0) == (10, 5)
    xs = jnp.arange(3.0)
    found = jax.grad(lambda x: jnp.sum(jax.vmap(f, (0, None))(x, 2.0)))(xs)
    np.testing.assert_array_equal(found, 10)
