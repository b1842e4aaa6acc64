"""Modules that are trees of arrays are checked with these."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import gradsmith as gs

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (eqx.nn.Linear(4, 3, key=KEY), jax.random.normal(KEY, (4,))),
        (eqx.nn.LayerNorm(4), jax.random.normal(KEY, (4,))),
        (eqx.nn.Embedding(6, 3, key=KEY), jnp.array(2)),
    ],
    ids=["Linear", "LayerNorm", "Embedding"],
)
def test_modules_are_right(module, x):
    report = gs.check.options(seconds=60)(module, x)
    assert report.verdict in ("right", "right, with limits"), report


def test_a_wrong_gradient_of_a_parameter_is_found():
    @gs.custom_gradient
    def product(x, w):
        return x * w, lambda dy: (dy * w, 2 * dy * x)

    class Wrong(eqx.Module):
        weight: jax.Array

        def __call__(self, x):
            return product(x, self.weight)

    x = jnp.array([1.0, 2.0, 3.0])
    report = gs.check.options(seconds=60)(Wrong(x + 1), x)
    assert report.verdict == "wrong", report
    assert report.findings[0].argument == "weight"
