"""gs.memory leaves what it looks at as it was, and looks into compiled functions."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gradsmith as gs


def states():
    _, numbers, place, *_ = np.random.get_state()
    return random.getstate(), numbers.tolist(), place


def test_generators_and_variables():
    rng, w = np.random.default_rng(0), gs.Variable(np.ones(3))
    before = states(), rng.bit_generator.state

    def total(x):
        w.assign(w * 2.0)
        noise = np.random.rand(3) * rng.random(3) * random.random()
        return np.sum(np.exp(x * noise))

    gs.memory(total, np.ones(3))
    assert (states(), rng.bit_generator.state) == before
    np.testing.assert_array_equal(w.numpy(), np.ones(3))


def test_torch():
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    before = states(), torch.get_rng_state().tolist()
    values = {name: x.clone() for name, x in model.state_dict().items()}

    def total(x):
        return torch.exp(model(x) * np.random.rand()).sum()

    report = gs.memory(total, torch.randn(4, 3, generator=torch.Generator()))
    assert report.total > 0
    assert (states(), torch.get_rng_state().tolist()) == before
    for name, x in model.state_dict().items():
        assert torch.equal(x, values[name]), name


def test_tensorflow():
    tf, keras = pytest.importorskip("tensorflow"), pytest.importorskip("keras")
    model = keras.Sequential(
        [keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)]
    )
    model.build((4, 3))
    count, rng = tf.Variable(0), tf.random.Generator.from_seed(1)
    variables = [count, rng.state, *(each.value for each in model.variables)]
    before, values = states(), [each.numpy().tolist() for each in variables]

    def total(x):
        count.assign_add(1)
        noise = rng.uniform([]) * np.random.rand()
        return tf.reduce_sum(tf.exp(model(x, training=True) * noise))

    report = gs.memory(total, tf.reshape(tf.range(12.0), (4, 3)))
    assert report.total > 0
    assert states() == before
    assert [each.numpy().tolist() for each in variables] == values


def test_compiled_functions_of_jax_have_rows_of_the_users_lines():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def total(x):
        x = jnp.exp(jnp.sin(x) * 2)
        x = jax.nn.relu(x)
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=3)[0].sum()

    plain, compiled = (gs.memory(f, jnp.ones(1000)) for f in (total, jax.jit(total)))
    assert compiled.rows == plain.rows
    assert {"cos", "exp", "scan"} <= {row.operation for row in compiled.rows}
    assert {row.place.file for row in compiled.rows} == {__file__}
    assert gs.memory(jax.jit(gs.checkpoint(total)), jnp.ones(1000)).total == 0


def test_checkpointed_blocks_of_torch_have_their_names():
    torch = pytest.importorskip("torch")

    @gs.checkpoint
    def block(x):
        return x.sin().exp()

    report = gs.memory(lambda x: block(block(x * 2)).cos().sum(), torch.ones(100))
    assert {row.operation: row.arrays for row in report.rows} == {"block": 2, "cos": 1}
