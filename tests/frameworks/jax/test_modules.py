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
    report = gs.check(module, x)
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
    report = gs.check(Wrong(x + 1), x)
    assert report.verdict == "wrong", report
    assert report.findings[0].argument == "weight"


# --- stand-ins for flax, which is not among the test dependencies


class Linen:
    """As flax' linen: what is bound has a scope, and comes apart by `unbind`."""

    def __init__(self, scope=None, rule=1.0):
        self.scope, self.rule = scope, rule

    def bind(self, variables):
        return Linen(variables, self.rule)

    def unbind(self):
        return Linen(None, self.rule), self.scope

    def apply(self, variables, x):
        return self.bind(variables)(x)

    def __call__(self, x):
        weight = self.scope["params"]["kernel"]
        return scaled(x, weight, self.rule)


@jax.tree_util.register_pytree_with_keys_class
class Nnx:
    """As flax' nnx: a tree of parameters and of state, which a call changes."""

    def __init__(self, kernel, calls, rule=1.0):
        self.kernel, self.calls, self.rule = kernel, calls, rule

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("kernel"), self.kernel), (key("calls"), self.calls)), self.rule

    @classmethod
    def tree_unflatten(cls, rule, children):
        return cls(*children, rule)

    def __call__(self, x):
        self.calls = self.calls + 1
        return scaled(x, self.kernel, self.rule)


def scaled(x, w, rule):
    op = gs.custom_gradient(lambda x, w: (x * w, lambda dy: (dy * w, rule * dy * x)))
    return op(x, w)


X = jnp.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda rule: Linen(None, rule).bind({"params": {"kernel": X + 1}}), "kernel"),
        (lambda rule: Nnx(X + 1, jnp.array(0), rule), "kernel"),
    ],
    ids=["linen", "nnx"],
)
def test_modules_like_those_of_flax(make, name):
    module = make(1.0)
    report = gs.check.options(seconds=60)(module, X)
    assert report.verdict == "right", report
    assert int(getattr(module, "calls", 0)) == 0  # a copy was called
    wrong = gs.check.options(seconds=60)(make(1.5), X)
    assert wrong.verdict == "wrong", wrong
    assert name in (wrong.findings[0].argument or "")
