"""gs.memory: what a gradient keeps alive."""

from __future__ import annotations

import builtins
import gc
import tracemalloc
from xml.etree import ElementTree

import numpy as np
import pytest

import gradsmith as gs

W = gs.Variable(np.ones((100, 100)))
SIZE = 50 * 100 * 8  # bytes of one activation


def block(x):
    return np.tanh(x @ W) * 1.5


def network(x):
    for _ in range(4):
        x = block(x)
    return np.sum(np.exp(x))


X = np.ones((50, 100))


def test_each_operation_with_its_line():
    report = gs.memory(network, X)
    found = {row.operation: row for row in report.rows}
    assert {name: row.nbytes for name, row in found.items()} == {
        "np.tanh": 4 * SIZE,
        "np.matmul": 3 * SIZE,  # its inputs, of which the first is the argument
        "np.exp": SIZE,
    }
    assert found["np.tanh"].arrays == 4
    place = found["np.tanh"].place
    assert place.file == __file__
    assert place.source == "return np.tanh(x @ W) * 1.5"
    assert report.by_function() == {"block": 7 * SIZE, "network": SIZE}
    assert (report.total, report.checkpointed, report.saved) == (8 * SIZE, 0, 8 * SIZE)


def test_the_total_is_what_is_really_allocated():
    report = gs.memory(network, X)
    x = gs.Tensor(X)
    with gs.GradientTape() as tape:
        tape.watch(x)
        tracemalloc.start()
        y = network(x)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert y is not None
    assert report.total == pytest.approx(kept, rel=0.05)


def test_checkpointed_parts_keep_their_inputs():
    inner = gs.checkpoint(block)

    def parts(x):
        for _ in range(4):
            x = inner(x)
        return np.sum(np.exp(x))

    report = gs.memory(parts, X)
    assert {row.operation: row.nbytes for row in report.rows} == {
        "block": 3 * SIZE,
        "np.exp": SIZE,
    }


def test_a_scan_keeps_its_snapshots_and_one_step():
    def scanned(x):
        return np.sum(gs.checkpoint_scan(np.sin, x, 50, snapshots=5))

    x = np.ones(10_000)
    report = gs.memory(scanned, x)
    assert report.total == pytest.approx(5 * x.nbytes, rel=0.01)


def test_what_leads_nowhere_is_not_kept():
    def wasteful(x):
        np.exp(x)
        return np.sum(x * 2.0)

    assert gs.memory(wasteful, X).total == 0


def test_the_words_and_the_plot():
    report = gs.memory(network, X)
    shown = str(report)
    assert shown.startswith("The gradient of network in NumPy keeps 320 kB alive")
    assert "160 kB    50%       4  np.tanh" in shown
    assert "test_memory.py:" in shown
    assert "gs.checkpoint(network) would keep 0 B: 320 kB less" in shown
    assert "by function: block 280 kB, network 40 kB" in shown
    plot = ElementTree.fromstring(report.svg())
    assert len(plot.findall("{http://www.w3.org/2000/svg}rect")) == 3
    assert "<svg" in report._repr_html_()


def test_it_shows_itself_with_rich_and_without(monkeypatch, capsys):
    report = gs.memory(network, X)
    report.show()
    assert "np.tanh" in capsys.readouterr().out
    real = builtins.__import__

    def without_rich(name, *rest):
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    report.show()
    assert capsys.readouterr().out == f"{report}\n"


def test_bad_input():
    with pytest.raises(gs.GradsmithError, match=r"gs.memory\(fn, x\), not"):
        gs.memory(3.0)


def test_torch():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(100, 100)

    def inside(x):
        return torch.tanh(layer(x)) * 1.5

    def total(x):
        return torch.exp(inside(inside(x))).sum()

    report = gs.memory(total, torch.ones(50, 100))
    one = 50 * 100 * 4
    found = {row.operation: row.nbytes for row in report.rows}
    assert found == {"tanh": 2 * one, "linear": one, "exp": one}
    assert report.by_function() == {"inside": 3 * one, "total": one}
    assert report.rows[0].place.source == "return torch.tanh(layer(x)) * 1.5"
    assert report.checkpointed == 0


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def total(x, power=2):
        return jnp.sum(jnp.exp(jnp.sin(x)) ** power)

    report = gs.memory(total, jnp.ones(1000), power=3)
    assert report.total >= 2 * 4000
    assert {"exp", "cos"} <= {row.operation for row in report.rows}
    assert report.rows[0].place.file == __file__
    assert report.checkpointed == 0
    assert "XLA" in str(report)


def test_jax_keeps_nothing_of_it():
    """Of what is traced; JAX's own caches keep the tree of a pullback."""
    jnp = pytest.importorskip("jax").numpy
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: 2 * x * dy))

    def count():
        gc.collect()
        return sum(type(x).__name__ == "LinearMap" for x in gc.get_objects())

    gs.memory(op, jnp.ones(5))
    before = count()
    for _ in range(5):
        gs.memory(op, jnp.ones(5))
    assert count() == before


def test_tensorflow():
    tf = pytest.importorskip("tensorflow")
    w = tf.Variable(tf.ones((100, 100)))

    @tf.function
    def total(x):
        return tf.reduce_sum(tf.exp(tf.tanh(x @ w)))

    report = gs.memory(total, tf.ones((50, 100)))
    one = 50 * 100 * 4
    assert {row.operation: row.nbytes for row in report.rows} == {
        "Tanh": one,
        "Exp": one,
    }
    assert report.rows[0].place.file == __file__
    assert report.checkpointed < one
    assert "eager mode only" in str(report)
