"""Functions that were traced before: concrete ones, and those of a loaded SavedModel.

Their Python is gone. If a target is in their graph, its operations are run one by one
instead, and each can be changed as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from ....core.errors import GradsmithError
from ....core.patching import patched
from ..._intercept import ProcessWide, cache_key, is_intercepted, note_call
from ..private import function_context, traced_calls_by, variable_accessed
from .nodes import has_gradient_in, kinds_in, run

# Graphs in which something was changed when they were built
_changed: WeakSet[Any] = WeakSet()


def note_changed(graph: Any) -> None:
    """A call was changed while this graph, and those around it, were built."""
    while graph is not None:
        _changed.add(graph)
        graph = getattr(graph, "outer_graph", None)


def _computed_before(function: Any, kind: str) -> GradsmithError:
    return GradsmithError(
        f"{kind} can't be changed in the traced function {function.graph.name!r}: it "
        "also computes a gradient, built when it was traced, which can't change\n"
        "  what to do: call the Python function that it was traced from; or trace (and "
        "save) the function without its gradient, and compute that in the scope"
    )


def _intercepting(theirs: Any) -> Any:
    def call(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
        kinds = set() if self.graph in _changed else kinds_in(self.graph)
        due = [kind for kind in kinds if is_intercepted(("tensorflow", kind))]
        if not due:
            for kind in kinds:
                note_call(kind)
            return theirs(self, tensor_inputs, captured_inputs)
        if has_gradient_in(self.graph) or any(f"{kind}Grad" in kinds for kind in due):
            raise _computed_before(self, due[0])
        for variable in self.graph.variables:  # tapes that watch variables are told
            variable_accessed(variable)
        flat = run(self.graph, [*tensor_inputs, *captured_inputs])
        return self.function_type.pack_output(flat)

    return call


@ProcessWide
@contextmanager
def traced_functions() -> Iterator[None]:
    """Calls of traced functions; what is traced inside stays inside."""
    make = function_context.make_function_context

    def function_key(scope_type: Any = None) -> Any:
        within = cache_key()
        return make((scope_type, within) if within else scope_type)

    with (
        traced_calls_by(_intercepting),
        patched(function_context, make_function_context=function_key),
    ):
        yield
