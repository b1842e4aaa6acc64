"""The rule counts in each mode, order and transformation of MLX."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import gradsmith as gs

from .operations import EACH, closure, curvature, slope

X = mx.array(0.75)
XS = mx.array([0.5, -1.25, 2.0])
ONE = mx.array(1.0)
each = pytest.mark.parametrize("op", EACH, ids=lambda op: op.name)


def close(found, wanted):
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-5)


def pushed(op):
    return lambda x: mx.jvp(op, [x], [mx.ones_like(x)])[1][0]


def test_mlx_itself_drops_a_rule_in_forward_mode_and_under_vmap():
    native = mx.custom_function(mx.sin)
    native.vjp(lambda x, dy, y: 10 * dy)
    close(mx.grad(native)(X), 10)
    close(pushed(native)(X), mx.cos(X))
    close(mx.grad(lambda xs: mx.vmap(native)(xs).sum())(XS), mx.cos(XS))


@each
def test_first_order(op):
    close(op(X), mx.sin(X))
    for way in (mx.grad(op), pushed(op), lambda x: mx.value_and_grad(op)(x)[1]):
        close(way(X), slope(X))
        close(mx.compile(way)(X), slope(X))
    close(mx.grad(mx.compile(op))(X), slope(X))
    close(pushed(mx.compile(op))(X), slope(X))


@each
def test_second_order(op):
    ways = [
        mx.grad(mx.grad(op)),
        mx.grad(pushed(op)),
        pushed(mx.grad(op)),
        pushed(pushed(op)),
        mx.grad(mx.grad(mx.compile(op))),
        mx.grad(mx.compile(mx.grad(op))),
        mx.grad(mx.grad(mx.checkpoint(op))),
    ]
    for way in ways:
        close(way(X), curvature(X))
        close(mx.compile(way)(X), curvature(X))


@each
def test_third_order(op):
    third = mx.grad(curvature)(X)
    close(mx.grad(mx.grad(mx.grad(op)))(X), third)


@each
def test_vmap(op):
    total = lambda fn: lambda xs: fn(xs).sum()
    batch = mx.vmap(op)
    for way in (mx.vmap(mx.grad(op)), mx.grad(total(batch)), mx.vmap(pushed(op))):
        close(way(XS), slope(XS))
        close(mx.compile(way)(XS), slope(XS))
    close(pushed(batch)(XS), slope(XS))
    close(mx.vmap(mx.grad(mx.grad(op)))(XS), curvature(XS))
    close(mx.grad(total(mx.vmap(mx.grad(op))))(XS), curvature(XS))
    close(mx.grad(total(mx.grad(total(batch))))(XS), curvature(XS))
    nested = mx.vmap(mx.vmap(mx.grad(op)))
    close(nested(mx.stack([XS, -XS])), mx.stack([slope(XS), slope(-XS)]))


def test_vmap_over_some_arguments_and_other_axes():
    @gs.custom_gradient
    def scaled(x, w):
        return x * w, lambda dy: (10 * dy * w, (100 * dy * x).sum())

    x, w = mx.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), mx.array(2.0)
    run = lambda x, w: mx.vmap(scaled, (1, None), 1)(x, w).sum()
    dx, dw = mx.grad(run, argnums=(0, 1))(x, w)
    close(dx, mx.full(x.shape, 20.0))
    close(dw, 100 * x.sum())


@each
def test_checkpoint(op):
    for again in (mx.checkpoint, gs.checkpoint):
        close(mx.grad(again(op))(X), slope(X))
        close(pushed(again(op))(X), slope(X))
        close(mx.compile(mx.grad(again(op)))(X), slope(X))


def test_one_operation_inside_of_another():
    @gs.custom_gradient
    def outer(x):
        return closure(x) * 2, lambda dy: 3 * dy * closure(x)

    close(mx.grad(outer)(X), 3 * mx.sin(X))
    close(mx.grad(mx.grad(outer))(X), 3 * slope(X))


def test_a_rule_that_is_not_linear_has_no_forward_mode():
    @gs.custom_gradient(linear=False)
    def clipped(x):
        return x * 2, lambda dy: mx.clip(dy, -1, 1)

    close(mx.grad(lambda x: 5 * clipped(x))(X), 1)
    with pytest.raises(gs.NotDifferentiableError, match="no forward mode"):
        pushed(clipped)(X)


def test_a_rule_whose_arrays_are_in_an_object():
    class Kept:
        def __init__(self, x):
            self.x = x

    @gs.custom_gradient
    def op(x):
        kept = Kept(mx.tanh(x))
        return mx.sin(x), lambda dy: 10 * dy * kept.x

    close(mx.grad(op)(X), slope(X))
    close(mx.grad(mx.grad(op))(X), curvature(X))
    close(mx.grad(mx.compile(op))(X), slope(X))
    close(mx.vmap(mx.grad(op))(XS), slope(XS))


@each
def test_survives(op):
    assert gs.survives(op, XS).ok
    assert not [o for o in gs.survives(op, XS).outcomes if o.verdict != "honoured"]
