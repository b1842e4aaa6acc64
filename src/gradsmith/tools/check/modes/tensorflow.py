"""TensorFlow."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

NAMES = {"compiled": "tf.function", "mapped": "tf.vectorized_map"}


def compiled(fn: Any) -> Any:
    return tf.function(lambda *lists: fn(*lists))


def mapped(fn: Any, *lists: list[Any]) -> list[Any]:
    return tf.vectorized_map(
        lambda each: fn(*each), lists, fallback_to_while_loop=False
    )


def gradient(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch(xs)
        ys = fn(xs)
    return tape.gradient(
        ys, xs, output_gradients=dys, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


def stack(arrays: list[Any]) -> Any:
    return tf.stack(arrays)
