"""Checkpoints on MLX."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs

mx = pytest.importorskip("mlx.core")
X = mx.array([0.5, -1.0, 2.0])


def close(found, wanted):
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-5)


def total(x):
    return mx.tanh(mx.sin(x) * 2).sum()


def test_every_order_mode_and_transformation():
    again = gs.checkpoint(total)
    close(again(X), total(X))
    close(mx.grad(again)(X), mx.grad(total)(X))
    close(mx.jvp(again, [X], [X])[1][0], mx.jvp(total, [X], [X])[1][0])
    second = lambda fn: mx.grad(lambda x: (mx.grad(fn)(x) * X).sum())
    close(second(again)(X), second(total)(X))
    close(mx.compile(mx.grad(again))(X), mx.grad(total)(X))
    xs = mx.stack([X, 2 * X])
    close(mx.vmap(mx.grad(again))(xs), mx.vmap(mx.grad(total))(xs))


def test_captured_arrays_keep_their_gradient_which_mlx_itself_drops():
    def loss(checkpoint):
        return lambda w: checkpoint(lambda x: mx.tanh(x * w).sum())(X)

    plain = mx.grad(loss(lambda fn: fn))(mx.array(3.0))
    close(mx.grad(loss(gs.checkpoint))(mx.array(3.0)), plain)
    close(mx.grad(loss(mx.checkpoint))(mx.array(3.0)), 0.0)


def test_a_module():
    nn = pytest.importorskip("mlx.nn")
    layer = nn.Linear(3, 2)
    run = lambda call: nn.value_and_grad(layer, lambda x: (call(x) ** 2).sum())(X)
    value, gradients = run(layer)
    again, found = run(gs.checkpoint(layer))
    close(again, value)
    close(found["weight"], gradients["weight"])
    close(found["bias"], gradients["bias"])


def test_random_numbers_are_refused():
    noisy = gs.checkpoint(lambda x: (x * mx.random.uniform(shape=x.shape)).sum())
    with pytest.raises(gs.UnsupportedOperationError, match="draw with key="):
        mx.grad(noisy)(X)


def test_scan_and_verify():
    step = lambda x, _=None: mx.sin(x) * 1.5
    plain = X
    for _ in range(7):
        plain = step(plain)
    close(gs.checkpoint_scan(step, X, steps=7, snapshots=3), plain)
    scan = lambda x: gs.checkpoint_scan(step, x, steps=7, snapshots=3).sum()

    def loop(x):
        for _ in range(7):
            x = step(x)
        return x.sum()

    close(mx.grad(scan)(X), mx.grad(loop)(X))
    close(gs.checkpoint(total, verify=True)(X), total(X))


def test_memory():
    report = gs.memory(total, mx.ones(1000))
    assert report.checkpointed == 0
    assert report.total == 4000 * len(report.rows)
    assert {row.operation for row in report.rows} <= {"mx.multiply", "mx.tanh"}
