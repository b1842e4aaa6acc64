"""tf.function around and inside of what is recomputed.

A traced function does not call Python any more, so that nobody sees which stateful
operations it runs. One that is checkpointed as a whole is traced with the checkpoint
inside of it; one that is called in a checkpointed function, and has such operations, is
run by its Python code. A concrete function, or one of a loaded SavedModel, has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

from ....core.compilers import not_rewritten
from ....core.errors import GradsmithError
from ..private import (
    Function,
    around_traced_calls,
    autographed,
    copy_of,
    is_autographed,
    without_autograph,
)
from .replay import STATEFUL_KINDS, is_rerun, is_running, paused

_with_checkpoint: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def with_checkpoint_inside(fn: Any, checkpoint: Callable[..., Any]) -> Any:
    """The tf.function of the checkpoint, for the checkpoint of a tf.function."""
    if fn not in _with_checkpoint:
        inner = fn.python_function

        @not_rewritten
        @wraps(inner)
        def run(*args: Any, **kwargs: Any) -> Any:
            return checkpoint(inner, args, kwargs)

        _with_checkpoint[fn] = copy_of(fn, run)
    return _with_checkpoint[fn]


def _by_python(traced: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(traced)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_running():
            return traced(self, *args, **kwargs)
        with paused():
            graph = self.get_concrete_function(*args, **kwargs).graph
            if not _is_stateful(graph):
                return traced(self, *args, **kwargs)
        context = None if is_autographed(self) else without_autograph()
        return autographed(self.python_function, context)(*args, **kwargs)

    return run


def _refused(traced: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(traced)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_rerun() and _is_stateful(self.graph):
            raise GradsmithError(
                f"a checkpointed function calls {self.graph.name!r}, which was traced "
                "before and has no Python code: it draws random numbers or assigns, "
                "and would do so again when it is run again\n"
                "  what to do: call the tf.function that it was traced from; or call "
                "it outside the checkpoint"
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
        _stateful[graph] = not kinds.isdisjoint(STATEFUL_KINDS)
    return _stateful[graph]


Function.__call__ = _by_python(Function.__call__)
around_traced_calls(_refused)
