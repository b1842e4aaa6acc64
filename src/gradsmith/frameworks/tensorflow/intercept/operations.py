"""Operations where they are run, and where they are put into a graph."""

# pyright: reportAttributeAccessIssue=false
# (pywrap_tfe has no source)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from ....core import trees
from ....core.patching import patched
from ..._intercept import (
    ProcessWide,
    call_intercepted,
    is_called_by,
    is_intercepted,
    note_call,
)
from ..private import (
    GRADIENT_BUILDERS,
    built_by,
    execute,
    op_def_registry,
    operation_builder,
    pywrap_tfe,
)
from .nodes import note_changed


@ProcessWide
@contextmanager
def eager_operations() -> Iterator[None]:
    """Operations that are run, by what all of TensorFlow's functions run them with."""
    run = pywrap_tfe.TFE_Py_FastPathExecute

    def running(ctx: Any, kind: str, name: Any, *args: Any) -> Any:
        key = ("tensorflow", kind)
        if not is_intercepted(key) or is_called_by(GRADIENT_BUILDERS):
            note_call(kind)
            return run(ctx, kind, name, *args)
        n = len(_input_names(kind))
        inputs, attrs = args[:n], args[n:]
        call = lambda *inputs: run(ctx, kind, name, *inputs, *attrs)
        inputs = trees.map(_read, inputs)
        offered = dict(zip(attrs[::2], attrs[1::2], strict=True))
        return call_intercepted(key, kind, call, inputs, {}, offered=offered)

    with patched(pywrap_tfe, TFE_Py_FastPathExecute=running):
        yield


@ProcessWide
@contextmanager
def graph_operations() -> Iterator[None]:
    """Operations that are put into a graph, where a tape may be looking too."""
    build, record = operation_builder(), execute.record_gradient
    ours: list[Any] = []  # what came last in the place of an operation's outputs

    def building(kind: str, name: Any = None, **given: Any) -> Any:
        key = ("tensorflow", kind)
        if not is_intercepted(key) or is_called_by(GRADIENT_BUILDERS):
            note_call(kind)
            return build(kind, name, **given)
        names = _input_names(kind)
        built: list[Any] = []

        def call(*inputs: Any) -> Any:
            named = dict(zip(names, inputs, strict=True))
            *built[:], outputs = build(kind, name, **given, **named)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

        inputs = trees.map(_read, tuple(given.pop(each) for each in names))
        ys = call_intercepted(key, kind, call, inputs, {}, offered=given)
        ours[:] = ys if isinstance(ys, (tuple, list)) else [ys]
        note_changed(ours[0].graph)
        if not built:  # the caller wants a node of this type, which nobody will run
            call(*inputs)
        return (*built, [*ours])

    def recording(kind: str, inputs: Any, attrs: Any, outputs: Any) -> Any:
        """The tape knows these outputs already, with their own gradient."""
        if not (ours and outputs and outputs[0] is ours[0]):
            record(kind, inputs, attrs, outputs)

    with (
        built_by(building),
        patched(execute, record_gradient=recording),
    ):
        yield


def _input_names(kind: str) -> list[str]:
    definition: Any = op_def_registry.get(kind)
    return [arg.name for arg in definition.input_arg]


def _read(x: Any) -> Any:
    return tf.convert_to_tensor(x) if isinstance(x, tf.Variable) else x
