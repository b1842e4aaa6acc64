"""TensorFlow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from . import engine
from .engine import converted

__all__ = ["columns", "converted", "insist", "jvp", "loop", "quiet", "vjp"]


def vjp(fn: Any, xs: list[Any]) -> Any:
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(xs)
        ys = fn(xs)

    def pull(dys: list[Any]) -> list[Any]:
        zero = tf.UnconnectedGradients.ZERO
        return tape.gradient(ys, xs, dys, unconnected_gradients=zero)

    return ys, pull


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> Any:
    with tf.autodiff.ForwardAccumulator(xs, dxs) as forward:
        ys = fn(xs)
    return ys, [forward.jvp(y, unconnected_gradients="zero") for y in ys]


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    if tf.executing_eagerly():
        return engine.loop(going, step, state)
    return tf.while_loop(going, lambda state: (step(state),), (state,))[0]


def quiet() -> Any:
    return nullcontext()  # stop_recording would also stop the tapes within


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    eye = tf.eye(tf.shape(like)[0], dtype=like.dtype)
    return tf.transpose(tf.map_fn(push, eye))


def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if tf.executing_eagerly():
        return engine.insist(x, holds, text, **facts)
    # A graph says its text as it stands, and the numbers after it
    said = re.sub(r"{(\w+)[^}]*}", r"(\1)", text)
    tf.debugging.Assert(holds, [said, *sum(facts.items(), ())])
    return tf.where(holds, x, tf.constant(math.nan, x.dtype))  # XLA asserts nothing
