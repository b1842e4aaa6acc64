"""gs.checkpoint on PyTorch: by torch.utils.checkpoint, without reentrance.

It replays PyTorch's global randomness; here generators that are passed or captured are
replayed too, and buffers that a module writes (BatchNorm's statistics) are written
once. Its hooks don't work inside of torch.func's transforms: there the function is an
operation of ours, whose rules run it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.utils.checkpoint import checkpoint as native

from .._operation import Operation
from .flat import Flat
from .plan import Plan
from .randomness import Replay, Streams
from .torch_modules import buffers_of, kept


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    if verify:
        from .torch_verify import require_equal

        ours = lambda *args, **kwargs: checkpoint(fn, args, kwargs)
        require_equal(fn, ours, args, kwargs)
    if peek_interpreter_stack() is not None:
        return _transformed(fn, args, kwargs)
    again = _Again(fn, args, kwargs)
    return native(again, *args, use_reentrant=False, **kwargs)


def while_compiling(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    """What PyTorch's compiler makes a block of, of which it saves the inputs."""
    return native(fn, *args, use_reentrant=False, **kwargs)


def scan(plan: Plan) -> list[Any]:
    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return checkpoint(inner, (leaves,), {})

    return plan.in_blocks(block)


def unstacked(x: Any) -> Any:
    return torch.unbind(x)


class _Again:
    """A function whose second run draws what the first one drew, and writes nothing."""

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.fn = fn
        self.streams: Streams | None = Streams(fn, args, kwargs)
        self.replay: Replay | None = None
        self.buffers = buffers_of(fn, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.streams is None:
            with (self.replay or nullcontext)(), kept(self.buffers):
                return self.fn(*args, **kwargs)
        streams, self.streams = self.streams, None
        before = streams.read()
        result = self.fn(*args, **kwargs)
        self.replay = streams.drawn_since(before)
        return result


def _transformed(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function as an operation, whose rules run it again."""
    flat = Flat(fn, args, kwargs, lambda x: isinstance(x, torch.Tensor))

    def body(*arrays: Any) -> Any:
        return tuple(flat(*arrays))

    body.__name__ = getattr(fn, "__name__", type(fn).__name__)
    operation = Operation(body, closure=False)

    def vjp(dy: Any, y: Any, *arrays: Any) -> Any:
        pull: Any = torch.func.vjp(body, *arrays)[1]
        return pull(tuple(dy))

    def jvp(dx: Any, y: Any, *arrays: Any) -> Any:
        dx = dx if len(arrays) > 1 else (dx,)
        return torch.func.jvp(body, tuple(arrays), tuple(dx))[1]

    operation.vjp(vjp)
    operation.jvp(jvp)
    return flat.restored(list(operation(*flat.arrays)))
