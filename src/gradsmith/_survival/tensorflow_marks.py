"""How TensorFlow's own operations are marked."""

from __future__ import annotations

from contextlib import nullcontext
from functools import wraps
from typing import Any

import tensorflow as tf

from .. import _tree
from .subject import Subject, is_floating, name_of, scaled, signature_of


def subject_of(op: Any) -> Subject | None:
    """What is known of a function decorated with `tf.custom_gradient`."""
    body = getattr(op, "__wrapped__", None)
    if type(op).__module__ != tf.custom_gradient.__module__ or body is None:
        return None

    def mark(factor: float) -> Any:
        return nullcontext(tf.custom_gradient(_marked(body, factor)))

    return Subject(name_of(op), op, signature_of(body), mark)


def _marked(body: Any, factor: float) -> Any:
    @wraps(body)
    def marked(*args: Any, **kwargs: Any) -> Any:
        y, grad = body(*args, **kwargs)
        return y, scaled(grad, factor, _scale)

    return marked


def _scale(answer: Any, factor: float) -> Any:
    def scale(g: Any) -> Any:
        if isinstance(g, tf.IndexedSlices):
            return tf.IndexedSlices(g.values * factor, g.indices, g.dense_shape)
        return g * factor if is_floating(g) else g

    return _tree.map(scale, answer)
