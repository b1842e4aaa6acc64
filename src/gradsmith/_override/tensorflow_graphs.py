"""Functions that were traced before: concrete ones, and those of a loaded SavedModel.

Their Python is gone. If a target is in their graph, its operations are run one by one
instead, and each can be changed as any other.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from tensorflow.python.eager.polymorphic_function import (
    concrete_function,
    function_context,
)
from tensorflow.python.ops import resource_variable_ops

from .._subject import replaced as attributes
from .scope import is_due, numbers, saw
from .tensorflow_nodes import kinds_in, run

# Graphs in which something was changed when they were built
_changed: WeakSet[Any] = WeakSet()


def changed(graph: Any) -> None:
    """A call was changed while this graph, and those around it, were built."""
    while graph is not None:
        _changed.add(graph)
        graph = getattr(graph, "outer_graph", None)


@contextmanager
def traced() -> Iterator[None]:
    """Calls of traced functions; what is traced inside stays inside."""
    cls, make = (
        concrete_function.ConcreteFunction,
        function_context.make_function_context,
    )
    theirs = cls._call_flat

    def call(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
        kinds = () if self.graph in _changed else kinds_in(self.graph)
        if not any(is_due(("tensorflow", kind)) for kind in kinds):
            for kind in kinds:
                saw(kind)
            return theirs(self, tensor_inputs, captured_inputs)
        for variable in self.graph.variables:  # tapes that watch variables are told
            resource_variable_ops.variable_accessed(variable)
        flat = run(self.graph, [*tensor_inputs, *captured_inputs])
        return self.function_type.pack_output(flat)

    def function_key(scope_type: Any = None) -> Any:
        within = numbers()
        return make((scope_type, within) if within else scope_type)

    with (
        attributes(cls, _call_flat=call),
        attributes(function_context, make_function_context=function_key),
    ):
        yield
