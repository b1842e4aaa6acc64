"""JAX's operations as they are run, for functions that can't be traced.

Such a function looks at values (`if x > 0`), so each primitive is run at once, without
compilation, and noted. What has a rule of its own is traced by itself.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax.core import Tracer
from jax.extend.core import Primitive

from ...core import trees
from ...core.patching import patched
from ...core.places import place_here
from ...frameworks.jax import call as adapter
from .jax_code import kind_of_name
from .jax_walk import Walk


@contextmanager
def noting(walk: Walk) -> Iterator[None]:
    """A context in which a walk takes note of all that is run."""
    theirs, ours = Primitive.bind, adapter.call
    busy = False

    def bind(self: Any, *args: Any, **params: Any) -> Any:
        nonlocal busy
        if busy or any(isinstance(x, Tracer) for x in args):
            return theirs(self, *args, **params)

        def run(*args: Any) -> Sequence[Any]:
            ys = theirs(self, *args, **params)
            return ys if self.multiple_results else [ys]

        busy = True
        try:
            ys = _noted(walk, run, list(args), self.name)
        finally:
            busy = False
        return ys if self.multiple_results else ys[0]

    def call(operation: Any, bound: Any) -> Any:
        nonlocal busy
        if busy or any(isinstance(x, Tracer) for x in bound.leaves):
            return ours(operation, bound)
        returned: list[Any] = []

        def run(*leaves: Any) -> Sequence[Any]:
            returned[:] = [ours(operation, bound.with_leaves(list(leaves)))]
            return trees.leaves(returned[0])

        busy = True
        try:
            ys = _traced(walk, run, bound.leaves)
        finally:
            busy = False
        return trees.unflatten(returned[0], ys)

    with (
        jax.disable_jit(),
        patched(Primitive, bind=bind),
        patched(adapter, call=call),
    ):
        yield


def _noted(walk: Walk, run: Callable[..., Any], args: list[Any], name: str) -> Any:
    kind = kind_of_name(name)
    if kind.custom:
        return _traced(walk, run, args)
    return walk.apply(run, args, name, place_here(), kind)


def _traced(walk: Walk, run: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """Trace what has a rule of its own, and run it step by step."""
    code = jax.make_jaxpr(run)(*args)
    return walk.run(code.jaxpr, code.consts, args, place_here())
