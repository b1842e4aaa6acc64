"""TensorFlow: operations, where they are run and where they are put into a graph."""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from types import FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, execute
from tensorflow.python.framework import op_def_library, op_def_registry
from tensorflow.python.ops import gradients_util

from ...core import trees
from ...core.patching import patched as attributes
from .replacement import replaced
from .scope import Target, is_due, saw
from .targets import refused
from .tensorflow_graphs import changed, traced
from .tensorflow_names import operation_of
from .tensorflow_python import eagerly


def target_of(given: Any) -> Target | None:
    """The name of an operation ("Relu"), or a function that is one operation."""
    kind = given if isinstance(given, str) else operation_of(given)
    if kind is None:
        return None
    if op_def_registry.get(kind) is None:
        near = get_close_matches(kind, dir(tf.raw_ops), 1, 0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise refused(given, f"TensorFlow has no operation of this name{hint}")
    shared = (_eager, _graphs, traced, *AFRESH)
    return Target(("tensorflow", kind), kind, (), shared, given, afresh=False)


AFRESH = (eagerly,)


@contextmanager
def _eager() -> Iterator[None]:
    """Operations that are run, by what all of TensorFlow's functions run them with."""
    run = pywrap_tfe.TFE_Py_FastPathExecute

    def running(ctx: Any, kind: str, name: Any, *args: Any) -> Any:
        key = ("tensorflow", kind)
        if not is_due(key) or _in_backward():
            saw(kind)
            return run(ctx, kind, name, *args)
        n = len(_input_names(kind))
        inputs, attrs = args[:n], args[n:]
        call = lambda *inputs: run(ctx, kind, name, *inputs, *attrs)
        inputs = trees.map(_read, inputs)
        offered = dict(zip(attrs[::2], attrs[1::2], strict=True))
        return replaced(key, kind, call, inputs, {}, offered=offered)

    with attributes(pywrap_tfe, TFE_Py_FastPathExecute=running):
        yield


@contextmanager
def _graphs() -> Iterator[None]:
    """Operations that are put into a graph, where a tape may be looking too."""
    build, record = op_def_library._apply_op_helper, execute.record_gradient
    ours: list[Any] = []  # what came last in the place of an operation's outputs

    def building(kind: str, name: Any = None, **given: Any) -> Any:
        key = ("tensorflow", kind)
        if not is_due(key) or _in_backward():
            saw(kind)
            return build(kind, name, **given)
        names = _input_names(kind)
        built: list[Any] = []

        def call(*inputs: Any) -> Any:
            named = dict(zip(names, inputs, strict=True))
            *built[:], outputs = build(kind, name, **given, **named)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

        inputs = trees.map(_read, tuple(given.pop(each) for each in names))
        ys = replaced(key, kind, call, inputs, {}, offered=given)
        ours[:] = ys if isinstance(ys, (tuple, list)) else [ys]
        changed(ours[0].graph)
        if not built:  # the caller wants a node of this type, which nobody will run
            call(*inputs)
        return (*built, [*ours])

    def recording(kind: str, inputs: Any, attrs: Any, outputs: Any) -> Any:
        """The tape knows these outputs already, with their own gradient."""
        if not (ours and outputs and outputs[0] is ours[0]):
            record(kind, inputs, attrs, outputs)

    with (
        attributes(op_def_library, _apply_op_helper=building),
        attributes(execute, record_gradient=recording),
    ):
        yield


def _input_names(kind: str) -> list[str]:
    definition: Any = op_def_registry.get(kind)
    return [arg.name for arg in definition.input_arg]


def _read(x: Any) -> Any:
    return tf.convert_to_tensor(x) if isinstance(x, tf.Variable) else x


_BACKWARD = {
    backprop._gradient_function.__code__,
    gradients_util._GradientsHelper.__code__,
}


def _in_backward() -> bool:
    """Whether a gradient is being computed, with the same operations."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _BACKWARD:
            return True
        frame = frame.f_back
    return False
