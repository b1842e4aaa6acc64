"""Operations and ways to differentiate them that the tests share."""

from types import SimpleNamespace

import tensorflow as tf

import gradsmith as gs

x3 = tf.constant([1.0, 2.0, 3.0])


@gs.custom_gradient
def canary(x):
    """x² with a wrong gradient, by which it is known that the rule was used."""
    return x * x, lambda dy: 10 * x * dy


@gs.operation
def canary_rule(x):
    return x * x


@canary_rule.vjp
def _(dy, y, x):
    return 10 * x * dy


@gs.custom_gradient
def _cube(x):
    square = x * x
    return square * x, lambda dy: 3 * square * dy


@gs.operation
def _cube_rule(x):
    return x**3


@_cube_rule.vjp
def _(dy, y, x):
    return 3 * x**2 * dy


@gs.operation
def _cube_jvp(x):
    return x**3


@_cube_jvp.jvp
def _(dx, y, x):
    return 3 * x**2 * dx


cube = SimpleNamespace(closure=_cube, rule=_cube_rule, jvp=_cube_jvp)


@gs.custom_gradient
def log1pexp(x):
    e = tf.exp(-tf.abs(x))
    y = tf.maximum(x, 0.0) + tf.math.log1p(e)
    return y, lambda dy: dy * tf.where(x > 0, 1.0, e) / (1 + e)


@gs.custom_gradient
def scaled(x, w):
    return x * w, lambda dy: (1000 * dy, tf.constant(-21.0))


def gradients(fn, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = fn(*xs)
    return tape.gradient(y, xs)


def orders(fn, x, n):
    """The value and the first n derivatives, by nested tapes."""
    if n == 0:
        return [fn(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = orders(fn, x, n - 1)
    return [*found, tape.gradient(found[-1], x)]


def jvp(fn, x, dx):
    with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:
        y = fn(x)
    return accumulator.jvp(y)
