"""tf.function and AutoGraph around and inside of what is run again.

A traced function does not call Python any more, so that nobody sees which stateful
operations it runs. One that is checkpointed as a whole is traced with the checkpoint
inside of it; one that is called in a checkpointed function, and has such operations, is
run by its Python code. A concrete function, or one of a loaded SavedModel, has none.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow.python.autograph.core import ag_ctx, converter
from tensorflow.python.autograph.impl import api
from tensorflow.python.eager.polymorphic_function.concrete_function import (
    ConcreteFunction,
)
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from ...core.errors import GradsmithError
from ...frameworks.tensorflow.private import executing_eagerly
from .api import checkpoint
from .tensorflow_replay import STATEFUL, is_repeated, is_running, unseen


def autograph_status() -> Any:
    """Whether AutoGraph converts what is called here."""
    return ag_ctx.control_status_ctx().status


def call(status: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function as a `tf.function` that calls it would.

    AutoGraph does not look into our code, and would not come to it by itself.
    """
    if executing_eagerly():
        return fn(*args, **kwargs)
    features: Any = None  # as a tf.function has it
    options = converter.ConversionOptions(True, optional_features=features)
    with ag_ctx.ControlStatusCtx(status=status, options=options):
        return api.converted_call(fn, args, kwargs, options=options)


_turned: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def inside_out(fn: Any) -> Any:
    """The tf.function of the checkpoint, for the checkpoint of a tf.function."""
    if not isinstance(fn, Function) or not executing_eagerly():
        return None
    if fn not in _turned:
        _turned[fn] = fn._clone(checkpoint(fn.python_function))
    return _turned[fn]


def _by_python(traced: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(traced)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_running():
            return traced(self, *args, **kwargs)
        with unseen():
            graph = self.get_concrete_function(*args, **kwargs).graph
            if not _is_stateful(graph):
                return traced(self, *args, **kwargs)
        disabled = ag_ctx.Status.DISABLED
        status = autograph_status() if self._autograph else disabled
        return call(status, self.python_function, *args, **kwargs)

    return run


def _refused(traced: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(traced)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_repeated() and _is_stateful(self.graph):
            raise GradsmithError(
                f"a checkpointed function calls {self.graph.name!r}, which was traced "
                "before and has no Python code: it draws random numbers or assigns, "
                "and would do so again when it is run again\n"
                "  what to do: call the tf.function that it was made of; or leave the "
                "call out of the checkpoint"
            )
        return traced(self, *args, **kwargs)

    return run


_stateful: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def _is_stateful(graph: Any) -> bool:
    """Whether it draws random numbers or assigns, or a function that it calls does."""
    if graph not in _stateful:
        kinds = {op.type for op in graph.get_operations()}
        for each in graph.as_graph_def().library.function:
            kinds.update(node.op for node in each.node_def)
        _stateful[graph] = not kinds.isdisjoint(STATEFUL)
    return _stateful[graph]


Function.__call__ = _by_python(Function.__call__)
ConcreteFunction._call_flat = _refused(ConcreteFunction._call_flat)
