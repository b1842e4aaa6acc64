"""Recomputing on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....core import trees
from ....core.reach import reached
from ....core.tape import state
from ....core.tensor import Variable
from ..._randomness import Streams
from ..._recompute import name_of
from .block import checkpointed
from .scan import scan

__all__ = ["checkpoint", "scan", "unchanged", "unstack"]


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    def block() -> Any:
        return fn(*args, **kwargs)

    if not state().recorders:
        return block()
    name = name_of(fn)
    streams = Streams(fn, args, kwargs)
    if verify:
        from .verify import require_equal

        require_equal(block, name, streams, _names(args, kwargs))
    return checkpointed(block, name, streams)


def _names(args: Any, kwargs: Any) -> dict[int, str]:
    """How messages call the arrays of a call."""
    named = [(f"argument {i}", x) for i, x in enumerate(args)]
    named += [(f"argument {key}", x) for key, x in kwargs.items()]
    return {
        id(leaf): name
        for root, x in named
        for name, leaf in trees.leaves_with_names(x, root)
    }


def unstack(x: Any) -> Any:
    return np.unstack(x)


@contextmanager
def unchanged(*roots: Any) -> Iterator[None]:
    """Let generators and variables be afterwards what they were."""
    variables = reached(*roots, stop=lambda x: isinstance(x, Variable))
    before = [(x, x.value) for x in variables]
    try:
        with Streams(*roots).unchanged():
            yield
    finally:
        for x, value in before:
            x.value = value


def rewinding(*roots: Any) -> Callable[[], Any]:
    return Streams(*roots).unchanged
