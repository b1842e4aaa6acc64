"""What the user's code returned stays as it is, and is copied only if it must be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.operations import buffers

BUFFER = np.empty(4)


@gs.operation
def fresh(x):
    return np.exp(x)


@fresh.vjp
def _(dy, y, x):
    return dy * y


@gs.custom_gradient
def captured(x):
    y = np.exp(x)
    return y, lambda dy: dy * y


@gs.custom_gradient
def argument(x):
    return x, lambda dy: dy


@gs.custom_gradient
def views(x):
    y = np.exp(x)
    return {"y": y.reshape(2, 2), "z": x * 2}, lambda dy: dy["y"].ravel() * y


@pytest.mark.parametrize("op", [fresh, captured, argument, views], ids=lambda f: f.name)
def test_nothing_is_copied_that_nobody_else_holds(op, monkeypatch, request):
    alone = buffers._references([np.empty(1).view()].pop())
    if alone != (buffers._ALONE, buffers._BASE):  # a compiler runs Python's frames now
        place = f"{__file__}::{request.node.name}"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        assert subprocess.run([*command, place], check=False).returncode == 0
        return
    copies = []

    x = gs.Tensor(np.arange(4.0))
    monkeypatch.setattr(buffers, "_copied", lambda y: copies.append(y) or y.copy())
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    tape.gradient(y, x)
    assert not copies


def into_buffer(x):
    return np.exp(x, out=BUFFER)


def into_view(x):
    return np.exp(x, out=BUFFER)[:]


@pytest.mark.parametrize("body", [into_buffer, into_view])
@pytest.mark.parametrize("closure", [False, True])
def test_a_buffer_that_a_body_uses_again(body, closure):
    def with_gradient(x):
        y = body(x)
        return y, lambda dy: dy * y

    op = gs.custom_gradient(with_gradient) if closure else gs.operation(body)
    if not closure:
        op.vjp(lambda dy, y, x: dy * y)
    a, b = gs.Tensor(np.zeros(4)), gs.Tensor(np.ones(4))
    with gs.GradientTape() as tape:
        tape.watch([a, b])
        y, z = op(a), op(b)
    assert (y.numpy()[0], z.numpy()[0]) == (1, np.e)
    da, db = tape.gradient([y, z], [a, b])
    assert (da.numpy()[0], db.numpy()[0]) == (1, np.e)
    assert op(a).numpy()[0] == 1 != op(b).numpy()[0]


def test_a_buffer_that_a_rule_uses_again():
    @gs.operation
    def op(x):
        return x * 2

    @op.vjp
    def _(dy, y, x):
        return np.multiply(dy, x, out=BUFFER)

    f = lambda a, b: np.sum(op(a) + op(b))
    a, b = np.ones(4), np.full(4, 2.0)
    da, db = gs.grad(f, argnums=(0, 1))(a, b)
    assert (da[0], db[0]) == (1, 2)


OWN_MEMORY = """
import numpy as np
import gradsmith as gs

made = []

@gs.custom_gradient
def double(x):
    def grad(dy):
        dx = dy * 2
        made.append(dx.ctypes.data)
        return dx

    return x * 2, grad

for size in (10**5, 10**6):
    weights = np.arange(float(size))
    dx = gs.grad(lambda x, w=weights: np.sum(double(x) * w))(np.ones(size))
    assert dx.ctypes.data == made[-1]
    assert dx.flags.writeable
    np.testing.assert_array_equal(dx, 2 * weights)
"""


def test_a_gradient_that_nobody_else_sees_is_not_copied():
    """Neither an array of its own, nor one in memory that is used again.

    In a process of its own: references are counted, and what watches the process, such
    as a debugger or what other tests left, may hold some.
    """
    subprocess.run([sys.executable, "-c", OWN_MEMORY], check=True)


def test_a_gradient_that_the_rule_keeps_is_copied():
    kept = []

    @gs.custom_gradient
    def double(x):
        def grad(dy):
            kept.append(dy * 2)
            return kept[-1]

        return x * 2, grad

    dx = gs.grad(lambda x: np.sum(double(x)))(np.ones(10**5))
    dx += 1
    np.testing.assert_array_equal(kept[-1], 2)


def test_gradients_that_share_memory_are_two_arrays():
    @gs.custom_gradient
    def total(x, y):
        return x + y, lambda dy: (dy, dy)

    ones = np.ones(10**5)
    dx, dy = gs.grad(lambda x, y: np.sum(2 * total(x, y)), (0, 1))(ones, ones)
    dx += 1
    np.testing.assert_array_equal(dy, 2)
