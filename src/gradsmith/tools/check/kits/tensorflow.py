"""TensorFlow."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tensorflow as tf

version = tf.__version__

numbers = False  # a Python number among the outputs has no gradient


def array(x: np.ndarray, dtype: str) -> Any:
    return tf.cast(tf.constant(x), dtype)


def dtype_name(x: Any) -> str:
    return x.dtype.name


def numpy(x: Any) -> np.ndarray:
    x = tf.convert_to_tensor(x)  # of IndexedSlices
    return np.array((tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x).numpy())


def precision(dtype: str) -> AbstractContextManager[Any]:
    return nullcontext()


alone = nullcontext


def value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def vjp(fn: Any, xs: list[Any]) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        ys = fn(xs)

    def pull(dys: list[Any]) -> list[Any]:
        return _gradients(tape, ys, xs, dys)

    return ys, pull


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    with tf.autodiff.ForwardAccumulator(list(xs), list(dxs)) as accumulator:
        ys = fn(xs)
    return [
        tf.zeros_like(y) if dy is None else dy
        for y, dy in zip(ys, accumulator.jvp(ys), strict=True)
    ]


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    return twice(fn, xs, dys, vs)[0]


def twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    with tf.GradientTape() as outer:
        outer.watch([*xs, *dys])
        with tf.GradientTape() as inner:
            inner.watch(xs)
            ys = fn(xs)
        slope = _inner(_gradients(inner, ys, xs, dys), vs)
    if slope is None:
        return [None] * len(xs), [None] * len(dys)
    return outer.gradient(slope, (xs, dys))


def _inner(gradients: list[Any], vs: list[Any]) -> Any:
    parts = [
        tf.reduce_sum(tf.math.real(tf.math.conj(v) * tf.convert_to_tensor(g)))
        for g, v in zip(gradients, vs, strict=True)
        if g is not None
    ]
    return tf.add_n(parts) if parts else None


def _gradients(tape: Any, ys: list[Any], xs: list[Any], dys: list[Any]) -> list[Any]:
    return tape.gradient(ys, xs, output_gradients=dys)
