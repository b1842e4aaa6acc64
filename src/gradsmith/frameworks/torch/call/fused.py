"""Operations that run as kernels on eager tensors, without a copy.

The kernel reads and writes the tensors' own memory. The gradient goes by the node of
the usual case (quick.py); what it can't do (higher orders, batched or traced upstream
gradients) is done by the composed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from ....core.cotangent import Spec
from ....core.pool import FRESH, ask_for_large_pages
from ....operations import fusing
from ....operations.fusing import is_on, runs_on_cpu, runs_on_gpu
from .eager_call import changed_in_place

_Tensor, _Parameter, _strided = torch.Tensor, torch.nn.Parameter, torch.strided
_TENSORS = {_Tensor, _Parameter}
NAMES = {
    torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32",
    torch.float64: "float64", torch.bool: "bool", torch.int8: "int8",
    torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
}  # fmt: skip
DTYPES = {name: dtype for dtype, name in NAMES.items()}
_empty, _empty_like, _threads = torch.empty, torch.empty_like, torch.get_num_threads
_uint8 = torch.uint8
# So many parts one program of a GPU adds up and rounds: an eager cross entropy of
# 8192 x 32768 in bfloat16 takes 1.14 of a copy, and 1.155 by PyTorch's two kernels.
# Python takes longer to start it, which a large kernel before it hides.
_FEW, _LARGE = 1 << 14, 1 << 25


def plan_of(operation: Any, args: tuple[Any, ...], with_grad: bool) -> Any:
    """The plan of a call, or None if it is not for a kernel."""
    if not is_on():
        return None
    key: list[Any] = []
    size, device, gpu = 0, None, False
    for x in args:
        cls = x.__class__
        if cls in _TENSORS:
            if x.is_cpu:
                if gpu or not runs_on_cpu():
                    return None
            elif not (gpu or device is None) or not (x.is_cuda and runs_on_gpu()):
                return None  # the composed form says what is wrong
            else:
                gpu = True
                if device is not None and x.device != device:
                    return None
            device = device or x.device
            if (
                x.layout is not _strided
                or x.dtype not in NAMES
                or x.is_neg()
                or (with_grad and x.is_inference())
            ):
                return None
            key.append((x.dtype, x.shape, with_grad and x.requires_grad))
            size = max(size, x.numel())
        else:
            key.append((cls, repr(x) if cls is float and x == 0 else x))
    if gpu and size < fusing.SMALL and not operation.fused.strict:
        return None  # Triton takes half a second for each kernel
    key.append(gpu)
    try:
        return operation.fused.plan(
            tuple(key),
            lambda: (*_described(operation, args, key[:-1]), gpu, True),
            size,
        )
    except TypeError:  # what is no key
        return None


def _described(operation: Any, args: tuple[Any, ...], key: list[Any]) -> Any:
    """The call with specs in place of its tensors, and which of them have gradients."""
    bound = operation.signature.bind(args, {})
    names: list[Any] = [NAMES[x.dtype] for x in bound.leaves]
    pairs = zip(bound.leaves, names, strict=True)
    specs = [Spec(tuple(x.shape), name) for x, name in pairs]
    tensors = [each for each in key if len(each) == 3]
    return bound.with_leaves(specs), [i for i, each in enumerate(tensors) if each[2]]


def run_forward(plan: Any, leaves: list[Any]) -> tuple[Any, Any]:
    """The value, and what is saved for the gradient.

    On a CPU, the latter is one block, and then the gradients that were made ahead; on a
    GPU, it is all as the plan has it.
    """
    x, kernel = leaves[0], plan.forward
    if plan.same is not None:
        return leaves[plan.same], None
    if not x.is_cpu:
        return _forward_on_gpu(plan, leaves)
    if plan.is_like_first:
        y = _like(x)
    else:
        shape, dtype = (plan.parts or plan.y).shape, DTYPES[plan.written_dtype]
        y = _empty(shape, dtype=dtype, device=x.device)
    made = [_like(leaves[i]) for i in plan.wanted] if plan.ahead else []
    if not kernel.size:
        return _total(plan, y), [None, *made]
    held = [x if x.is_contiguous() else x.contiguous() for x in leaves]
    given, written, block = [x.data_ptr() for x in held], [y.data_ptr()], None
    if plan.small:
        starts, size = plan.places
        block = _empty(size, dtype=_uint8, device=x.device)
        first = block.data_ptr()
        written += [first + start for start in starts]
    written += [x.data_ptr() for x in made]
    if kernel.is_small:
        kernel.run_small(given + written)
    else:
        kernel.run(given, written, _threads())
    return _total(plan, y), [block, *made]


def _total(plan: Any, y: Any) -> Any:
    """The value, if its parts were computed."""
    if plan.parts is None:
        return y
    dtype = DTYPES[plan.y_dtype]
    is_hidden = plan.forward.size >= _LARGE and y.numel() <= _FEW
    if y.dtype is dtype or y.is_cpu or not is_hidden:
        return y.sum().to(dtype)
    total = _empty((), dtype=dtype, device=y.device)
    _start(plan.total, [y], [total])
    return total


def _like(x: Any) -> Any:
    """New memory for a value or a gradient."""
    if x.is_contiguous():
        y = _empty_like(x)  # 1 us less
    else:
        y = _empty(x.shape, dtype=x.dtype, device=x.device)
    if x.nbytes >= FRESH and x.is_cpu:
        ask_for_large_pages(y.data_ptr(), y.nbytes)
    return y


def _forward_on_gpu(plan: Any, leaves: list[Any]) -> tuple[Any, Any]:
    device = leaves[0].device
    shape = (plan.parts or plan.y).shape
    y = _empty(shape, dtype=DTYPES[plan.written_dtype], device=device)
    saved = [
        _empty(s.shape, dtype=DTYPES[s.dtype.name], device=device)
        for s in plan.saved[: plan.small]
    ]
    saved += [_like(leaves[i]) for i in plan.wanted] if plan.ahead else []
    if plan.forward.size:
        _start(plan.forward, leaves, [y, *saved])
    return _total(plan, y), saved


def run_backward(
    plan: Any, leaves: Sequence[Any], y: Any, saved: Any, dy: Any, again: bool
) -> list[Any]:
    """A gradient for each tensor, None for those without.

    One that was made ahead is given away, unless it may be asked for again.
    """
    _require_same(plan, leaves)
    if plan.passes_on:
        return [dy if i in plan.wanted else None for i in range(len(leaves))]
    is_scalar = is_repeated(dy)
    kernel = plan.backward("scalar" if is_scalar else "full")
    found: list[Any] = [None] * len(leaves)
    # Behind the block, or what there is in its place on a GPU
    made = saved[1 if dy.is_cpu else plan.small :] if plan.ahead else []
    for k, i in enumerate(plan.wanted):
        found[i] = made[k] if made and not again else _like(leaves[i])
    if not kernel.size:
        return found
    if not dy.is_cpu:
        of = {"dy": [dy], "x": leaves, "y": [y], "saved": saved}
        given = [of[name][i] for name, i in plan.sources]
        _start(kernel, given, [found[i] for i in plan.wanted])
        return found
    held, addresses = [], []
    for name, i in plan.sources:
        if name == "saved":
            if i < plan.small:
                start = _address(saved[0]) + plan.places[0][i]
            else:
                start = made[i - plan.small].data_ptr()
            addresses.append(start)
            continue
        x = dy if name == "dy" else leaves[i] if name == "x" else y
        if not x.is_contiguous() and not (is_scalar and x is dy):
            x = x.contiguous()
            held.append(x)  # as long as the kernel runs
        addresses.append(x.data_ptr())
    written = [found[i].data_ptr() for i in plan.wanted]
    if kernel.is_small:
        kernel.run_small(addresses + written)
    else:
        kernel.run(addresses, written, _threads())
    return found


def _address(block: Any) -> int:
    """Where memory starts that is a tensor's, or that a builtin kernel was given."""
    is_tensor = block.__class__ is _Tensor
    return (block if is_tensor else torch.frombuffer(block, dtype=_uint8)).data_ptr()


def _require_same(plan: Any, leaves: Sequence[Any]) -> None:
    """Raise if a tensor was given other data, which has no version: `x.data = ...`."""
    kernel = plan.forward
    for x, v, name in zip(leaves, kernel.program.inputs, kernel.storage, strict=False):
        if x.shape != v.shape or NAMES.get(x.dtype) != name:
            raise changed_in_place()


def is_repeated(x: Any) -> bool:
    """Whether it is one number, expanded, which is not written out."""
    return not x.is_contiguous() and not any(x.stride())


def _start(kernel: Any, given: list[Any], written: list[Any]) -> None:
    """Run on a GPU: what has rows and columns is read by its own strides."""
    device = written[0].device
    gpu = kernel.on_gpu.for_gpu(_processors(device))
    nest, words = gpu.nest, []
    given = [*given, *(torch.as_tensor(c, device=device) for c in nest.constants)]
    strides: list[int] = []
    for i, (x, (kind, _)) in enumerate(zip(given, nest.inputs, strict=True)):
        own = gpu.strides(kind)
        if not x.is_contiguous() and kind != "scalar":
            is_near = nest.columns * x.stride(-1) < 1 << 31  # columns have 32 bits
            if kind == "full" and x.shape == (nest.rows, nest.columns) and is_near:
                own = x.stride()
            else:
                given[i] = x.contiguous()
        strides += own
    if gpu.words:
        words = [torch.zeros(gpu.words, dtype=torch.int64, device=device)]
    with torch.cuda.device(device):
        gpu.start([*given, *written, *words], strides, _processors(device))


@cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
