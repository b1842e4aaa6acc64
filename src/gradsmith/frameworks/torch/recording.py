"""Recording PyTorch's own operations: `autograd.Function`, `library.custom_op`.

What `torch.compile` traces without calling it is recorded by the compiler: Functions,
and operations of ours too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any

import torch
from torch.autograd import Function

from ...core.import_hooks import once_imported
from ...core.patching import patched
from ...operations.operation import Operation
from .._recording import Recorder, Seen
from .private import (
    before_custom_ops,
    before_traced_calls,
    dispatched_unseen,
    functorch,
    is_functional,
    unscripted,
)

MACHINERY = ("torch._",)


@contextmanager
def recorded(recorder: Recorder) -> Iterator[None]:
    def compiler(module: Any) -> None:
        if not over:
            with recorder.guarded(f"hooking into {module.__name__}"):
                stack.enter_context(_recorded_by_compiler(recorder))

    over = False
    with (
        patched(Function, apply=_recorded_apply(vars(Function)["apply"], recorder)),
        before_custom_ops(partial(_record_custom_op, recorder)),
        ExitStack() as stack,
    ):
        once_imported("torch._dynamo", compiler)
        try:
            yield
        finally:
            over = True


# --- autograd.Function ---------------------------------------------------------------


def _recorded_apply(original: classmethod, recorder: Recorder) -> classmethod:
    apply = original.__func__

    @wraps(apply)
    def recording(cls: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        _record_function(recorder, cls, (args, kwargs), read)
        return apply(cls, *args, **kwargs)

    # Dynamo must not trace into it, and goes by the file: torch.compile(Cls.apply)
    shown: Any = recording
    file = apply.__code__.co_filename
    shown.__code__ = shown.__code__.replace(co_filename=file)
    return classmethod(recording)


def _record_function(recorder: Recorder, cls: Any, inputs: Any, read: Any) -> None:
    definitions = (cls, cls.forward, cls.backward)
    recorder.record("torch", cls, cls.__qualname__, definitions, inputs, read)


# --- library.custom_op, library.register_autograd ------------------------------------


def _record_custom_op(
    recorder: Recorder, op: Any, name: str, definitions: Any, args: Any, kwargs: Any
) -> None:
    recorder.record("torch", op, name, definitions, (args, kwargs), read)


# --- torch.compile -------------------------------------------------------------------


@contextmanager
def _recorded_by_compiler(recorder: Recorder) -> Iterator[None]:
    def see(called: Any, inputs: Any) -> None:
        if isinstance(called, Operation):
            recorder.record_operation(called, inputs, _read_traced, "torch")
        else:
            _record_function(recorder, called, inputs, _read_traced)

    def nothing(operation: Any, args: Any, kwargs: Any) -> None:
        return None

    # It traces an operation as if nobody looked.
    torch.compiler.substitute_in_graph(recorder.see)(nothing)
    with before_traced_calls(see, Operation):
        yield


def _read_traced(x: Any) -> Seen | None:
    seen = read(x)
    return seen and Seen(seen.shape, seen.dtype, None, seen.differentiated)


# --- tensors -------------------------------------------------------------------------


def read(x: Any) -> Seen | None:
    """What is seen of a tensor; inside of vmap one example of the batch."""
    if not isinstance(x, torch.Tensor):
        return None
    with unscripted():
        return _read(x)


def _read(x: Any) -> Seen:
    shape = tuple(n if type(n) is int else None for n in x.shape)
    dtype = str(x.dtype).removeprefix("torch.")
    differentiated = x.requires_grad
    inside = x
    while functorch.is_functorch_wrapped_tensor(inside):
        differentiated = differentiated or functorch.is_gradtrackingtensor(inside)
        inside = functorch.get_unwrapped(inside)
    copy = partial(_copy, x) if _has_values(inside) else None
    return Seen(shape, dtype, copy, differentiated)


def _has_values(x: Any) -> bool:
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.device.type != "meta"
        and not is_functional(x)
        # A copy would become part of the graph that is captured.
        and not (x.is_cuda and torch.cuda.is_current_stream_capturing())
    )


def _copy(x: Any) -> Any:
    with dispatched_unseen():
        while functorch.is_functorch_wrapped_tensor(x):
            batched = functorch.is_batchedtensor(x)
            axis = functorch.maybe_get_bdim(x) if batched else -1
            x = functorch.get_unwrapped(x)
            x = x.select(axis, 0) if axis >= 0 else x
        return x.detach().clone()
