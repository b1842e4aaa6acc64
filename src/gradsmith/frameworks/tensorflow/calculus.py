"""Derivatives by TensorFlow."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .._calculus import Script

REPRODUCER = Script(
    imports=("import tensorflow as tf",),
    array="tf.constant",
    total="tf.reduce_sum",
    gradient=(
        "v = tf.constant({x})",
        "with tf.GradientTape() as tape:",
        "    tape.watch(v)",
        "    total = loss(v)",
        "rule = tape.gradient(total, v).numpy()",
    ),
)


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    xs = list(xs)
    with tf.GradientTape(persistent=True, watch_accessed_variables=not nested) as tape:
        tape.watch(xs)
        ys = fn(xs)
    unconnected = "zero" if nested else "none"

    def pull(dys: Any) -> list[Any]:
        return tape.gradient(ys, xs, list(dys), tf.UnconnectedGradients(unconnected))

    return ys, pull


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    with tf.autodiff.ForwardAccumulator(list(xs), list(dxs)) as forward:
        ys = fn(xs)
    return ys, [forward.jvp(y, unconnected_gradients="zero") for y in ys]


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    xs, dys = list(xs), list(dys)
    with tf.GradientTape() as outer:
        outer.watch([*xs, *dys])
        slope = _slope(vjp(fn, xs)[1](dys), vs)
    if slope is None:
        return [None] * len(xs), [None] * len(dys)
    return outer.gradient(slope, (xs, dys))


def _slope(gradients: list[Any], vs: Any) -> Any:
    parts = [
        tf.reduce_sum(tf.math.real(tf.math.conj(v) * tf.convert_to_tensor(g)))
        for g, v in zip(gradients, vs, strict=True)
        if g is not None
    ]
    return tf.add_n(parts) if parts else None
