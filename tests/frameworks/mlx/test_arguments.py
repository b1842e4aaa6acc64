"""What an operation is given and gives back: trees, keywords, captures, dtypes."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

X = mx.array([0.5, -1.25, 2.0])


def close(found, wanted):
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-5)


def test_keywords_and_static_arguments():
    @gs.custom_gradient
    def op(x, scale=1.0, *, name="none"):
        return x * scale, lambda dy: 10 * dy * scale

    for options in ({"scale": 3.0}, {"name": "a", "scale": 3.0}):
        loss = lambda x, options=options: op(x=x, **options).sum()
        close(mx.grad(loss)(X), mx.full(3, 30.0))
    close(mx.grad(lambda x: op(x, 3.0).sum())(X), mx.full(3, 30.0))


def test_trees_in_and_out():
    @gs.custom_gradient
    def op(weights, i):
        a, b = weights["a"], weights["b"][0]

        def grad(dy):
            return {"a": 5 * dy["y"], "b": [7 * dy["z"][0]]}, None

        return {"y": a[i] * 2, "z": (b,), "label": "text"}, grad

    weights = {"a": X, "b": [mx.array(3.0)]}
    i = mx.array([0, 1, 2])
    found = op(weights, i)
    assert found["label"] == "text"

    def loss(weights):
        y = op(weights, i)
        return y["y"].sum() + y["z"][0]

    slopes = mx.grad(loss)(weights)
    close(slopes["a"], mx.full(3, 5.0))
    close(slopes["b"][0], 7.0)


def test_what_a_body_captures_keeps_its_gradient():
    def loss(x, w):
        @gs.custom_gradient
        def op(x):
            return x * w, lambda dy: 10 * dy * w

        return op(x)

    x, w = mx.array(2.0), mx.array(3.0)
    for run in (loss, mx.compile(loss), mx.checkpoint(loss)):
        dx, dw = mx.grad(run, argnums=(0, 1))(x, w)
        close(dx, 30)
        close(dw, 2)
    close(mx.jvp(loss, [x, w], [x, x])[1][0], 64)
    close(mx.grad(lambda w: mx.grad(loss)(x, w))(w), 10)  # of the rule, by w
    dx, dw = mx.vmap(mx.grad(loss, argnums=(0, 1)))(X, 2 * X)
    close(dx, 20 * X)
    close(dw, X)


def test_whole_numbers_have_no_gradient():
    @gs.custom_gradient
    def pick(x, i):
        return (x[i], i + 1), lambda dx, _: (mx.zeros_like(x).at[i].add(10 * dx), None)

    close(mx.grad(lambda x: pick(x, mx.array(1))[0])(X), [0, 10, 0])
    _, j = pick(X, mx.array(1))
    assert j.dtype == mx.int32
    assert j.item() == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_stay(dtype):
    dtype = getattr(mx, dtype)

    @gs.custom_gradient
    def op(x):
        return gnp.exp(x), lambda dy: 10 * dy * gnp.exp(x)

    x = mx.zeros(3, dtype)
    assert op(x).dtype == dtype
    assert mx.grad(lambda x: op(x).sum())(x).dtype == dtype


def test_complex_gradients_are_the_direction_of_ascent():
    @gs.custom_gradient
    def square(z):
        return z * z, lambda dz: dz * mx.conj(2 * z)

    z = mx.array(1 + 2j)
    native = mx.grad(lambda z: mx.real(z * z))(z)
    close(mx.grad(lambda z: mx.real(square(z)))(z), native)
    assert gs.check(square, z).ok


def test_a_numpy_array_among_outputs_is_refused():
    @gs.custom_gradient
    def op(x):
        return np.array(x) * 2, lambda dy: dy

    with pytest.raises(gs.UnsupportedOperationError, match=r"gs\.python_op"):
        op(X)


def test_arrays_of_two_frameworks_are_refused():
    @gs.custom_gradient
    def add(x, y):
        return x + y, lambda dy: (dy, dy)

    with pytest.raises(gs.GradsmithError, match=r"(?s)two frameworks.*mx\.array\(x\)"):
        add(X, np.ones(3))


def test_random_numbers_in_a_body():
    @gs.custom_gradient
    def noisy(x):
        noise = mx.tanh(x + mx.random.uniform())
        return x * noise, lambda dy: dy * noise

    mx.grad(lambda x: noisy(x).sum())(X)
    with pytest.raises(gs.UnsupportedOperationError, match="draw with key="):
        mx.grad(lambda x: mx.grad(lambda x: noisy(x).sum())(x).sum())(X)


def test_a_body_that_returns_no_array():
    """MLX itself ends Python where a custom function returns none."""
    op = gs.custom_gradient(lambda x: ("text", lambda dy: dy))
    assert op(mx.ones(3)) == "text"
