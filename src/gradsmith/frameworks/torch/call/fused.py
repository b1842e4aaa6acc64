"""Operations that run as kernels on eager tensors, without a copy.

The kernel reads and writes the tensors' own memory. The gradient goes by the node of
the usual case (quick.py); what it can't do (higher orders, batched or traced upstream
gradients) is done by the composed form.
"""

from __future__ import annotations

from typing import Any

import torch

from ....core.cotangent import Spec
from ....operations.fusing import is_on, runs_on_cpu, runs_on_gpu

_Tensor, _Parameter, _strided = torch.Tensor, torch.nn.Parameter, torch.strided
_TENSORS = {_Tensor, _Parameter}
_NAMES = {
    torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32",
    torch.float64: "float64", torch.bool: "bool", torch.int8: "int8",
    torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_empty, _empty_like, _threads = torch.empty, torch.empty_like, torch.get_num_threads


def plan_of(operation: Any, args: tuple[Any, ...], with_grad: bool) -> Any:
    """The plan of a call, or None if it is not for a kernel."""
    if not is_on():
        return None
    key: list[Any] = []
    size, device = 0, None
    for x in args:
        cls = x.__class__
        if cls in _TENSORS:
            if (
                not (runs_on_cpu() if x.is_cpu else x.is_cuda and runs_on_gpu())
                or x.layout is not _strided
                or x.dtype not in _NAMES
                or x.is_neg()
                or (with_grad and x.is_inference())
            ):
                return None
            wanted = with_grad and x.requires_grad
            key.append((x.dtype, x.shape, wanted))
            size = max(size, x.numel())
            device = device or x.device
            if x.device != device:
                return None  # the composed form says what is wrong
        else:
            key.append((cls, x))
    try:
        gpu = device is not None and device.type != "cpu"
        return operation.fused.plan(
            (*key, gpu), lambda: (*_described(operation, args, key), gpu), size
        )
    except TypeError:  # what is no key
        return None


def _described(operation: Any, args: tuple[Any, ...], key: list[Any]) -> Any:
    """The call with specs in place of its tensors, and which of them have gradients."""
    bound = operation.signature.bind(args, {})
    names: list[Any] = [_NAMES[x.dtype] for x in bound.leaves]
    pairs = zip(bound.leaves, names, strict=True)
    specs = [Spec(tuple(x.shape), name) for x, name in pairs]
    tensors = [each for each in key if len(each) == 3]
    return bound.with_leaves(specs), [i for i, each in enumerate(tensors) if each[2]]


def run_forward(plan: Any, leaves: list[Any]) -> tuple[Any, list[Any]]:
    """The value, and what is saved for the gradient."""
    x = leaves[0]
    if plan.is_unary and x.is_cpu:  # 3 us less
        kernel = plan.forward
        if not x.is_contiguous():
            x = x.contiguous()
        y = _empty_like(x)
        if kernel.size and kernel.function(x.data_ptr(), y.data_ptr(), *kernel.tail):
            raise kernel.out_of_bounds()
        return y, []
    y = _empty(plan.y.shape, dtype=_DTYPES[plan.y_dtype], device=x.device)
    saved = [
        _empty(s.shape, dtype=_DTYPES[s.dtype.name], device=x.device)
        for s in plan.saved
    ]
    _run(plan.forward, leaves, [y, *saved])
    return y, saved


class FusedGradient:
    """The gradient of one call; it stands where the gradient function does."""

    __slots__ = ("leaves", "plan", "saved", "y")

    def __init__(self, plan: Any, leaves: list[Any], y: Any, saved: list[Any]) -> None:
        self.plan, self.leaves, self.y, self.saved = plan, leaves, y, saved

    def __call__(self, dy: Any) -> list[Any]:
        """A gradient for each tensor, None for those without."""
        plan, leaves = self.plan, self.leaves
        x, is_repeated = leaves[0], _is_repeated(dy)
        kernel = plan.backward("scalar" if is_repeated else "full")
        if (
            plan.is_slope
            and kernel.is_direct
            and x.is_cpu
            and x.is_contiguous()
            and (is_repeated or dy.is_contiguous())
        ):  # 4 us less
            dx = _empty_like(x)
            given = dy.data_ptr(), x.data_ptr(), dx.data_ptr()
            if kernel.size and kernel.function(*given, *kernel.tail):
                raise kernel.out_of_bounds()
            return [dx]
        of = {"dy": [dy], "x": leaves, "y": [self.y], "saved": self.saved}
        found: list[Any] = [None] * len(leaves)
        for i in plan.wanted:
            x = leaves[i]
            found[i] = _empty(x.shape, dtype=x.dtype, device=x.device)
        given = [of[name][i] for name, i in plan.sources]
        _run(kernel, given, [found[i] for i in plan.wanted])
        return found


def _is_repeated(x: Any) -> bool:
    """Whether it is one number, expanded, which is not written out."""
    return not x.is_contiguous() and not any(x.stride())


def _run(kernel: Any, given: list[Any], written: list[Any]) -> None:
    """Run a kernel where its tensors are; those that it reads lie in any order."""
    if not kernel.size:
        return
    if written[0].is_cuda:
        _start(kernel, given, written)
        return
    given = [
        x if x.is_contiguous() or kind == "scalar" else x.contiguous()
        for x, (kind, _) in zip(given, kernel.nest.inputs, strict=False)
    ]
    addresses = [x.data_ptr() for x in given], [y.data_ptr() for y in written]
    kernel.run(*addresses, _threads())


def _start(kernel: Any, given: list[Any], written: list[Any]) -> None:
    """Run on a GPU: what has rows and columns is read by its own strides."""
    gpu, device = kernel.on_gpu, written[0].device
    nest = gpu.nest
    given = [*given, *(torch.as_tensor(c, device=device) for c in nest.constants)]
    strides: list[int] = []
    for i, (x, (kind, _)) in enumerate(zip(given, nest.inputs, strict=True)):
        own = gpu.strides(kind)
        if not x.is_contiguous() and kind != "scalar":
            if kind == "full" and x.shape == (nest.rows, nest.columns):
                own = x.stride()
            else:
                given[i] = x.contiguous()
        strides += own
    with torch.cuda.device(device):
        gpu.start([*given, *written], strides)
