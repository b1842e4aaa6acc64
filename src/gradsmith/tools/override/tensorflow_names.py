"""Which operation a function of TensorFlow's or Keras' is, if it is one."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import inspect
from typing import Any

import keras
import tensorflow as tf


def operation_of(fn: Any) -> str | None:
    """The type of the operation that a function is: "Relu" of `tf.nn.relu`.

    It is tried on symbols. What is made of several operations is none; it can be
    changed as the function that it is.
    """
    if not callable(fn) or inspect.isclass(fn):
        return None
    root = (getattr(fn, "__module__", None) or "").partition(".")[0]
    if root == "keras" and keras.backend.backend() != "tensorflow":
        return None
    if root not in ("tensorflow", "keras"):
        return None
    raw = [name for name in dir(tf.raw_ops) if getattr(tf.raw_ops, name) is fn]
    return raw[0] if raw else next(filter(None, map(_tried, [fn] * 3, (1, 2, 3))), None)


def _tried(fn: Any, n: int) -> str | None:
    with tf.Graph().as_default() as graph:
        xs = [tf.compat.v1.placeholder(tf.float32, [2, 2]) for _ in range(n)]
        before = len(graph.get_operations())
        try:
            y = fn(*xs)
        except Exception:  # these arguments are not what it wants
            return None
        made = graph.get_operations()[before:]
    if len(made) != 1 or getattr(y, "op", None) is not made[0]:
        return None
    same = len(made[0].inputs) == n and all(
        map(lambda a, b: a is b, made[0].inputs, xs)
    )
    return made[0].type if same else None
