"""Recomputing on PyTorch: by torch.utils.checkpoint, without reentrance.

It replays PyTorch's global randomness alone; here generators that are passed or
captured are replayed too, and buffers that a module writes (BatchNorm's statistics) are
what they were. Its hooks don't work inside of torch.func's transforms: there the
function is an operation of ours, whose rules rerun it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint as native

from ....core.patching import patched
from ....operations.operation import Operation
from ..._randomness import KINDS, Replay, Stream, Streams
from ..._recompute import COMPILERS, FlatCall, ScanPlan, name_of
from ..private import is_transformed
from .buffers import buffers_of, given, written_since


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    if verify:
        from .verify import require_equal

        ours = lambda *args, **kwargs: checkpoint(fn, args, kwargs)
        require_equal(fn, ours, args, kwargs, streams_of(fn, args, kwargs))
    return _checkpointed(fn, args, kwargs, streams_of(fn, args, kwargs))


def _checkpointed(
    fn: Callable[..., Any], args: Any, kwargs: Any, streams: Streams
) -> Any:
    if is_transformed():
        return _transformed(fn, args, kwargs, streams)
    if not torch.is_grad_enabled():
        return fn(*args, **kwargs)
    block = _Block(fn, streams, args, kwargs)
    with patched(current, name=block.__name__):
        return native(block, *args, use_reentrant=False, **kwargs)


class _Current(threading.local):
    name = ""  # of the function that is checkpointed at the moment


current = _Current()


KINDS[torch.Generator] = lambda x: Stream(x.get_state, x.set_state)


def streams_of(*roots: Any) -> Streams:
    """The generators that a function reaches, and those of PyTorch's devices."""
    own = (torch.default_generator, *torch.cuda.default_generators)
    return Streams(*own, *roots)


def while_compiling(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    """What PyTorch's compiler makes a block of, of which it saves the inputs."""
    return native(fn, *args, use_reentrant=False, **kwargs)


COMPILERS.append((torch.compiler.is_compiling, while_compiling))


def scan(plan: ScanPlan) -> list[Any]:
    streams = streams_of(plan.step, plan.start)

    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return _checkpointed(inner, (leaves,), {}, streams)

    return plan.in_blocks(block)


def unstack(x: Any) -> Any:
    return torch.unbind(x)


@contextmanager
def unchanged(*roots: Any) -> Iterator[None]:
    """Let generators be afterwards what they were; buffers are not touched at all."""
    with streams_of(*roots).unchanged(), given(buffers_of(*roots)):
        yield


def rewinding(*roots: Any) -> Callable[[], Any]:
    return streams_of(*roots).unchanged


class _Block:
    """A function whose rerun finds generators and buffers as the first run did.

    What it draws and writes then is gone afterwards.
    """

    def __init__(self, fn: Callable[..., Any], streams: Streams, *roots: Any) -> None:
        self.fn = fn
        self.__name__ = name_of(fn)
        self.streams: Streams | None = streams
        self.replay: Replay | None = None
        self.buffers = buffers_of(fn, *roots)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.streams is None:
            with (self.replay or nullcontext)(), given(self.buffers):
                return self.fn(*args, **kwargs)
        streams, self.streams = self.streams, None
        before = streams.begin()
        result = self.fn(*args, **kwargs)
        self.replay = streams.drawn_since(before)
        self.buffers = written_since(self.buffers)
        return result


def _transformed(
    fn: Callable[..., Any], args: Any, kwargs: Any, streams: Streams
) -> Any:
    """The function as an operation, whose rules rerun it."""
    block = _Block(fn, streams, args, kwargs)
    flat = FlatCall(block, args, kwargs, lambda x: isinstance(x, torch.Tensor))

    def body(*arrays: Any) -> Any:
        return tuple(flat(*arrays))

    body.__name__ = block.__name__
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
