"""Compiled and vectorized functions in TensorFlow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from ..numpy import compiled as engine

JIT, VMAP = "tf.function", "tf.vectorized_map"
unrecorded = nullcontext  # stop_recording would also stop the tapes within


def jit(fn: Any) -> Any:
    return tf.function(lambda *lists: fn(*lists))


def vmap(fn: Any, *lists: Any) -> list[Any]:
    return tf.vectorized_map(
        lambda each: fn(*each), lists, fallback_to_while_loop=False
    )


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    if tf.executing_eagerly():
        return engine.loop(going, step, state)
    return tf.while_loop(going, lambda state: (step(state),), (state,))[0]


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
