"""TensorFlow: each eager operation is told of, and each gradient function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...core import trees
from ...operations.info import is_floating
from .inside import looking_inside
from .tensorflow_eye import Eye, key
from .watch import Watch

version = tf.__version__
WHERE = "tf.where"


def array(x: Any) -> Any:
    return x if isinstance(x, (tf.Tensor, tf.Variable)) else tf.constant(x)


def numpy(x: Any) -> np.ndarray | None:
    """Tensors of floating numbers; nothing of what can't be NaN."""
    if isinstance(x, tf.IndexedSlices):
        x = x.values
    if not is_floating(x):
        return None
    x = x.numpy() if hasattr(x, "numpy") else np.asarray(x)
    return x if x.dtype.kind in "fc" else np.asarray(x, np.float32)  # bfloat16


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    for name, x in named:
        watch.given(name, x, key(x))
    eye = Eye(watch, _backward.__code__)
    with eye.open(), looking_inside(watch, lambda: eye.phase):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x for _, x in named])
            returned = fn(*args, **kwargs)
        with eye.closed():
            ys = [*trees.leaves_with_names(returned, "the value")]
            found = [watch.result(name, y, key(y)) for name, y in ys]
        results = [each for each in found if each is not None]
        if results:
            return watch, results, []
        targets = [y for _, y in ys if is_floating(y) and isinstance(y, tf.Tensor)]
        return watch, *_backward(eye, tape, targets, named)


def _backward(eye: Eye, tape: Any, targets: Any, named: Any) -> Any:
    known = {id(x) for _, x in named}
    sources = [*named]
    sources += [(v.name, v) for v in tape.watched_variables() if id(v) not in known]
    eye.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    if all(dx is None for dx in gradients):
        return [], ["the value does not depend on the inputs: no gradient to look at"]
    with eye.closed():
        found = [
            eye.watch.gradient(name, dx, key(dx))
            for (name, _), dx in zip(sources, gradients, strict=True)
        ]
    return [each for each in found if each is not None], []
