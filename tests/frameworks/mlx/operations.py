"""The operation of these tests: its rule is 10 times what the value says.

So a result tells whether the rule was used: the body's derivative is cos(x).
"""

from __future__ import annotations

import mlx.core as mx

import gradsmith as gs


@gs.custom_gradient
def closure(x):
    t = mx.tanh(x)
    return mx.sin(x), lambda dy: 10 * dy * t


@gs.operation
def by_vjp(x):
    return mx.sin(x)


@by_vjp.vjp
def _(dy, y, x):
    return 10 * dy * mx.tanh(x)


@gs.operation
def by_jvp(x):
    return mx.sin(x)


@by_jvp.jvp
def _(dx, y, x):
    return 10 * dx * mx.tanh(x)


EACH = [closure, by_vjp, by_jvp]


def slope(x):
    return 10 * mx.tanh(x)


def curvature(x):
    return 10 * (1 - mx.tanh(x) ** 2)
