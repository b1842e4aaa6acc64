"""The contract is checked when a rule runs, and while MLX traces."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import gradsmith as gs

X = mx.array([0.5, -1.25, 2.0])


def summed(op):
    return lambda x: op(x).sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda dy: dy.sum(), "wrong shape"),
        (lambda dy: dy[:, None], "wrong shape"),
        (lambda dy: dy.astype(mx.float16), "wrong dtype"),
        (lambda dy: (dy, dy), "gradient"),
        (lambda dy: "text", "not an array"),
    ],
)
def test_wrong_gradients(rule, words, compiled):
    op = gs.custom_gradient(lambda x: (x * 2, rule))
    run = mx.grad(summed(op))
    with pytest.raises(gs.GradientContractError, match=words):
        (mx.compile(run) if compiled else run)(X)
    with pytest.raises(gs.GradientContractError, match=words):
        mx.jvp(op, [X], [X])


@pytest.mark.parametrize("word", [None, gs.zero])
def test_none_and_zero_are_zeros(word):
    op = gs.custom_gradient(lambda x, y: (x * y, lambda dy: (dy, word)))
    dx, dy = mx.grad(lambda x, y: op(x, y).sum(), argnums=(0, 1))(X, X)
    np.testing.assert_array_equal(np.array(dx), 1)
    np.testing.assert_array_equal(np.array(dy), 0)


def test_the_users_exception_passes_through_with_a_note():
    @gs.custom_gradient
    def op(x):
        def grad(dy):
            raise KeyError("mine")

        return x * 2, grad

    with pytest.raises(KeyError, match="mine") as info:
        mx.grad(summed(op))(X)
    assert "the gradient of operation 'op'" in "\n".join(info.value.__notes__)


def test_values_that_are_not_there():
    @gs.custom_gradient
    def op(x):
        if x.sum() > 0:
            return x * 2, lambda dy: dy * 2
        return x, lambda dy: dy

    np.testing.assert_array_equal(np.array(mx.grad(summed(op))(X)), 2)
    with pytest.raises(ValueError, match="eval") as info:
        mx.compile(op)(X)
    assert "gnp.where" in "\n".join(info.value.__notes__)


def test_no_memory_is_kept():
    op = gs.custom_gradient(lambda x: (mx.sin(x), lambda dy: dy * mx.cos(x)))
    gradient = mx.grad(summed(op))
    x = mx.ones(10_000)
    mx.eval(gradient(x))
    mx.clear_cache()
    before = mx.get_active_memory()
    for _ in range(20):
        mx.eval(gradient(x))
    assert mx.get_active_memory() - before < x.nbytes
