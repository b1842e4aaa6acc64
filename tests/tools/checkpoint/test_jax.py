"""gs.checkpoint and gs.checkpoint_scan on JAX."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = jnp.linspace(0.1, 1.0, 5)


def inside(x, scale=1.0, more=None, mode="a"):
    assert mode == "b"
    return {"a": jnp.sin(x) * scale, "b": [jnp.exp(x) * more["k"], 3, mode]}


def loss(fn):
    def total(x):
        captured = jnp.cos(x)
        y = fn(x, scale=2.0, more={"k": captured}, mode="b")
        assert y["b"][1:] == [3, "b"]
        return jnp.sum(y["a"] ** 2 + y["b"][0])

    return total


DERIVATIVES = {
    "grad": jax.grad,
    "jit": lambda f: jax.jit(jax.grad(f)),
    "hessian": jax.hessian,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_those_of_the_function(name):
    derive = DERIVATIVES[name]
    expected = derive(loss(inside))(X)
    np.testing.assert_allclose(
        derive(loss(gs.checkpoint(inside)))(X), expected, rtol=1e-6
    )
    verified = gs.checkpoint(inside, verify=True)
    np.testing.assert_allclose(derive(loss(verified))(X), expected, rtol=1e-6)


def test_it_is_computed_again_and_not_stored(capsys):
    from jax.ad_checkpoint import print_saved_residuals

    def stored(f):
        print_saved_residuals(f, X)
        return capsys.readouterr().out.splitlines()

    deep = lambda x: jnp.sum(jnp.sin(jnp.tanh(jnp.sin(x))))
    assert len(stored(deep)) > 2
    assert all("from the argument" in line for line in stored(gs.checkpoint(deep)))


@pytest.mark.parametrize("derive", [lambda f: f, lambda f: jax.jit(jax.grad(f))])
def test_verify_finds_what_differs_also_in_compiled_code(derive, capfd):
    n = [0]

    def counting(x):
        n[0] += 1
        return jnp.sum(x * n[0])

    with pytest.raises(Exception, match="'counting' computes something else"):
        jax.block_until_ready(derive(gs.checkpoint(counting, verify=True))(X))


def test_in_a_loop_with_a_captured_value_and_a_key():
    def run(wrap, w, key):
        noisy = wrap(lambda x, key: x * w + 0.1 * jax.random.normal(key, (5,)))

        def body(x, key):
            return jnp.sin(noisy(x, key)), None

        return jnp.sum(jax.lax.scan(body, X, jax.random.split(key, 4))[0])

    key = jax.random.key(0)
    for derive in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        found = [
            derive(lambda w, wrap=wrap: run(wrap, w, key))(1.5)
            for wrap in (lambda f: f, gs.checkpoint)
        ]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_scan_is_the_loop(compiled):
    inputs = jnp.ones((12, 5)) * 0.1

    def step(s, x):
        return {"u": s["u"] + 0.1 * jnp.sin(s["v"]) + x, "v": s["v"] * 0.9}

    def ours(u, inputs):
        s = gs.checkpoint_scan(step, {"u": u, "v": u}, 12, snapshots=3, inputs=inputs)
        return jnp.sum(s["u"] * s["v"])

    def loop(u, inputs):
        s = {"u": u, "v": u}
        for x in inputs:
            s = step(s, x)
        return jnp.sum(s["u"] * s["v"])

    derive = lambda f: jax.grad(f, (0, 1))
    ours_dx = (jax.jit(derive(ours)) if compiled else derive(ours))(X, inputs)
    for dx, expected in zip(ours_dx, derive(loop)(X, inputs), strict=True):
        np.testing.assert_allclose(dx, expected, rtol=1e-5)


def test_what_a_scan_refuses():
    with pytest.raises(gs.GradsmithError, match="disk= is for the embedded engine"):
        gs.checkpoint_scan(lambda x: x, X, 3, snapshots=1, disk=2)
    with pytest.raises(gs.GradsmithError, match="changes the shape of state"):
        gs.checkpoint_scan(lambda x: x[1:], X, 3, snapshots=1)
    with pytest.raises(gs.GradsmithError, match="one state, which takes 20 B"):
        gs.checkpoint_scan(lambda x: x, X, 3, budget="19 B")
