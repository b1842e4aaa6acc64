"""Elementwise functions of two arrays of any shapes that broadcast, in any dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import gradsmith as gs

OPERATIONS = {
    np.add: lambda a, b: (1, 1),
    np.subtract: lambda a, b: (1, -1),
    np.multiply: lambda a, b: (b, a),
    np.true_divide: lambda a, b: (1 / b, -a / b**2),
    np.power: lambda a, b: (b * a ** (b - 1), a**b * np.log(a)),
    np.maximum: lambda a, b: (a > b, a < b),
    np.hypot: lambda a, b: (a / np.hypot(a, b), b / np.hypot(a, b)),
    np.arctan2: lambda a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
    np.logaddexp: lambda a, b: (1 / (1 + np.exp(b - a)), 1 / (1 + np.exp(a - b))),
}
SHAPES = mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)
DTYPES = st.sampled_from([np.float16, np.float32, np.float64])


def distinct(shape, dtype, start):
    """Positive numbers, none of them in two arrays that start differently."""
    size = int(np.prod(shape))
    return np.asarray(start + 0.125 * (np.arange(size) % 8), dtype).reshape(shape)


def summed(full, shape):
    """Add up what belongs to one element, element by element."""
    total = np.zeros(shape)
    spread = np.broadcast_to(np.arange(total.size).reshape(shape), full.shape)
    np.add.at(total.reshape(-1), spread.reshape(-1), full.reshape(-1))
    return total


@pytest.mark.parametrize("fn", OPERATIONS, ids=lambda fn: fn.__name__)
@given(SHAPES, DTYPES, DTYPES)
@settings(max_examples=40)
def test_gradients_are_summed_over_what_was_broadcast(fn, shapes, dtype1, dtype2):
    x1 = distinct(shapes.input_shapes[0], dtype1, 1.0)
    x2 = distinct(shapes.input_shapes[1], dtype2, 0.5625)
    y, pull = gs.vjp(fn, x1, x2)
    u = distinct(shapes.result_shape, y.dtype, -0.5)
    exact = [np.broadcast_to(np.asarray(x, float), u.shape) for x in (x1, x2)]
    partials = OPERATIONS[fn](*exact)
    for dx, x, partial in zip(pull(u), (x1, x2), partials, strict=True):
        assert dx.shape == x.shape
        assert dx.dtype == x.dtype
        terms = u.astype(float) * partial
        size = summed(np.abs(terms) * np.ones(u.shape), x.shape)
        eps = max(np.finfo(t.dtype).eps for t in (x1, x2))
        error = np.abs(dx - summed(terms * np.ones(u.shape), x.shape))
        assert np.all(error <= 8 * (1 + u.size) * eps * size + np.finfo(dx.dtype).tiny)


@given(SHAPES)
@settings(max_examples=40)
def test_tangents_are_broadcast(shapes):
    x1 = distinct(shapes.input_shapes[0], np.float32, 1.0)
    x2 = distinct(shapes.input_shapes[1], np.float32, 0.5625)
    y, dy = gs.jvp(np.multiply, (x1, x2), (x2.sum() * np.ones_like(x1), x2))
    assert dy.shape == y.shape
    assert dy.dtype == y.dtype == np.float32
    np.testing.assert_allclose(dy, x2.sum() * x2 + x1 * x2, rtol=1e-5)
    _, half = gs.jvp(lambda t: t + x2, (x1,), (x1,))  # the other has no tangent
    np.testing.assert_array_equal(half, np.broadcast_to(x1, y.shape))
