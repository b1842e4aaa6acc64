"""PyTorch's operations: `autograd.Function`, `library.custom_op`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
from torch._library import autograd, custom_ops
from torch.autograd import Function

from .hooks import Hooks
from .place import Place, place_of
from .recorder import Recorder
from .seen import Seen

_C: Any = torch._C  # whose private names have no types
_functorch = _C._functorch
_is_functional_tensor: Any = getattr(torch, "_is_functional_tensor")  # noqa: B009


def install(hooks: Hooks, module: Any) -> None:
    recorder = hooks.recorder
    hooks.replace(Function, "apply", partial(_recording_apply, recorder))
    hooks.replace(autograd, "make_autograd_impl", partial(_recording_impl, recorder))


# --- autograd.Function ---------------------------------------------------------------


def _recording_apply(recorder: Recorder, original: classmethod) -> classmethod:
    apply = original.__func__

    @wraps(apply)
    def recording(cls: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        record_function(recorder, cls, (args, kwargs), read)
        return apply(cls, *args, **kwargs)

    # Dynamo must not trace into it, and goes by the file: torch.compile(Cls.apply)
    shown: Any = recording
    file = apply.__code__.co_filename
    shown.__code__ = shown.__code__.replace(co_filename=file)
    return classmethod(recording)


def record_function(recorder: Recorder, cls: Any, inputs: Any, read: Any) -> None:
    recorder.record(
        "torch",
        cls,
        lambda: place_of(cls.__qualname__, cls, cls.forward, cls.backward),
        inputs,
        read,
        cls,
    )


# --- library.custom_op, library.register_autograd ------------------------------------


def _recording_impl(recorder: Recorder, make: Any) -> Any:
    """The kernel through which every call goes, by whichever name it is made."""

    @wraps(make)
    def recording_make(op: Any, info: Any) -> Any:
        impl = make(op, info)

        @wraps(impl)
        def recording(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if info._backward_fn is not None:
                given = info if isinstance(info, custom_ops.CustomOpDef) else op
                place = partial(_place_of_custom_op, op, info)
                recorder.record("torch", given, place, (args, kwargs), read)
            return impl(keyset, *args, **kwargs)

        return recording

    return recording_make


def _place_of_custom_op(op: Any, info: Any) -> Place:
    body = getattr(info, "_init_fn", None)
    return place_of(op._schema.name, body or info._backward_fn, info._backward_fn)


# --- tensors -------------------------------------------------------------------------


def read(x: Any) -> Seen | None:
    """What is seen of a tensor; inside of vmap one example of the batch."""
    if not isinstance(x, torch.Tensor):
        return None
    with _untraced():
        return _read(x)


def _read(x: Any) -> Seen:
    shape = tuple(n if type(n) is int else None for n in x.shape)
    dtype = str(x.dtype).removeprefix("torch.")
    asked = x.requires_grad
    inside = x
    while _functorch.is_functorch_wrapped_tensor(inside):
        asked = asked or _functorch.is_gradtrackingtensor(inside)
        inside = _unwrapped(inside)
    return Seen(shape, dtype, partial(_copy, x) if _has_values(inside) else None, asked)


def _has_values(x: Any) -> bool:
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.device.type != "meta"
        and not _is_functional_tensor(x)
        # A copy would become part of the graph that is captured.
        and not (x.is_cuda and torch.cuda.is_current_stream_capturing())
    )


def _copy(x: Any) -> Any:
    with _unseen():
        while _functorch.is_functorch_wrapped_tensor(x):
            axis = (
                _functorch.maybe_get_bdim(x) if _functorch.is_batchedtensor(x) else -1
            )
            x = _unwrapped(x)
            x = x.select(axis, 0) if axis >= 0 else x
        return x.detach().clone()


def _unwrapped(x: Any) -> Any:
    return _functorch.get_unwrapped(x)


@contextmanager
def _unseen() -> Iterator[None]:
    """Nobody who looks at PyTorch's operations, or traces them, sees ours."""
    with (
        _untraced(),
        _C._DisableTorchDispatch(),
        _C._DisableFuncTorch(),
        _C.DisableTorchFunction(),
        torch.no_grad(),
    ):
        yield


@contextmanager
def _untraced() -> Iterator[None]:
    """Without `torch.jit.trace`, for which even a shape is an operation."""
    tracing = _C._get_tracing_state()
    _C._set_tracing_state(None)
    try:
        yield
    finally:
        _C._set_tracing_state(tracing)
