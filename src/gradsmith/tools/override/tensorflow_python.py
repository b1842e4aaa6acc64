"""Python that TensorFlow has compiled, or rewrites: it runs again, in its own way."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core.ag_ctx import control_status_ctx
from tensorflow.python.autograph.impl import conversion
from tensorflow.python.autograph.impl.api import tf_convert
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from ...core.patching import patched as attributes
from . import functions


@contextmanager
def eagerly() -> Iterator[None]:
    """What was compiled is out of reach: let its Python run again."""
    before = tf.config.functions_run_eagerly()
    theirs = polymorphic_function.Function.__call__
    known = conversion.is_in_allowlist_cache

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if before or tf.executing_eagerly() or not self._autograph:
            return theirs(self, *args, **kwargs)
        return autographed(self.python_function)(*args, **kwargs)

    def leave_alone(fn: Any, options: Any) -> bool:
        # What replaces a function is not its source; the original is rewritten later.
        return functions.is_rewired(fn) or known(fn, options)

    tf.config.run_functions_eagerly(True)
    try:
        with (
            warnings.catch_warnings(),
            attributes(polymorphic_function.Function, __call__=call),
            attributes(conversion, is_in_allowlist_cache=leave_alone),
        ):
            # The functions of a tf.data pipeline stay compiled, which nobody minds.
            warnings.filterwarnings("ignore", "Even though the `tf.config.experimental")
            yield
    finally:
        tf.config.run_functions_eagerly(before)


def autographed(fn: Any) -> Any:
    """A function as it runs in a graph, if TensorFlow is rewriting what it calls."""
    return fn if tf.executing_eagerly() else tf_convert(fn, control_status_ctx())


functions.REWRITTEN.append(autographed)
