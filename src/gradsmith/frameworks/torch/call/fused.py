"""Operations that run as kernels on eager tensors of the CPU, without a copy.

The kernel reads and writes the tensors' own memory. The gradient goes by the node of
the usual case (quick.py); what it can't do (higher orders, batched or traced upstream
gradients) is done by the composed form.
"""

from __future__ import annotations

from typing import Any

import torch

from ....core.cotangent import Spec
from ....operations.fusing import is_on

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
    size = 0
    for x in args:
        cls = x.__class__
        if cls in _TENSORS:
            if (
                not x.is_cpu
                or x.layout is not _strided
                or x.dtype not in _NAMES
                or x.is_neg()
                or (with_grad and x.is_inference())
            ):
                return None
            wanted = with_grad and x.requires_grad
            key.append((x.dtype, x.shape, wanted))
            size = max(size, x.numel())
        else:
            key.append((cls, x))
    try:
        return operation.fused.plan(
            tuple(key), lambda: _described(operation, args, key), size
        )
    except TypeError:  # what is no key
        return None


def _described(operation: Any, args: tuple[Any, ...], key: list[Any]) -> Any:
    """The call with specs in place of its tensors, and which of them have gradients."""
    bound = operation.signature.bind(args, {})
    specs: list[Any] = [Spec(tuple(x.shape), _NAMES[x.dtype]) for x in bound.leaves]
    tensors = [each for each in key if len(each) == 3]
    return bound.with_leaves(specs), [i for i, each in enumerate(tensors) if each[2]]


def run_forward(plan: Any, leaves: list[Any]) -> tuple[Any, list[Any]]:
    """The value, and what is saved for the gradient."""
    if plan.is_unary:  # 3 us less
        x, kernel = leaves[0], plan.forward
        if not x.is_contiguous():
            x = x.contiguous()
        y = _empty_like(x)
        if kernel.size and kernel.function(x.data_ptr(), y.data_ptr(), *kernel.tail):
            raise kernel.out_of_bounds()
        return y, []
    xs = [x if x.is_contiguous() else x.contiguous() for x in leaves]
    y = _empty(plan.y.shape, dtype=_DTYPES[plan.y_dtype])
    saved = [_empty(s.shape, dtype=_DTYPES[s.dtype.name]) for s in plan.saved]
    if plan.forward.size:
        plan.forward.run(
            [x.data_ptr() for x in xs],
            [y.data_ptr(), *[s.data_ptr() for s in saved]],
            _threads(),
        )
    return y, saved


class FusedGradient:
    """The gradient of one call; it stands where the gradient function does."""

    __slots__ = ("leaves", "plan", "saved", "y")

    def __init__(self, plan: Any, leaves: list[Any], y: Any, saved: list[Any]) -> None:
        self.plan, self.leaves, self.y, self.saved = plan, leaves, y, saved

    def __call__(self, dy: Any) -> list[Any]:
        """A gradient for each tensor, None for those without."""
        plan, leaves = self.plan, self.leaves
        kind, dy = _upstream(dy)
        kernel = plan.backward(kind)
        if plan.is_slope and kernel.is_direct and leaves[0].is_contiguous():
            x = leaves[0]  # 4 us less
            dx = _empty_like(x)
            given = dy.data_ptr(), x.data_ptr(), dx.data_ptr()
            if kernel.size and kernel.function(*given, *kernel.tail):
                raise kernel.out_of_bounds()
            return [dx]
        given = []
        held = [dy]
        for name, i in plan.sources:
            if name == "dy":
                x = dy
            elif name == "x":
                x = leaves[i]
            else:
                x = self.y if name == "y" else self.saved[i]
            if name != "dy" and not x.is_contiguous():
                x = x.contiguous()
                held.append(x)
            given.append(x.data_ptr())
        found: list[Any] = [None] * len(leaves)
        written = []
        for i in plan.wanted:
            x = leaves[i]
            dx = found[i] = _empty(x.shape, dtype=x.dtype)
            written.append(dx.data_ptr())
        if kernel.size:
            kernel.run(given, written, _threads())
        return found


def _upstream(dy: Any) -> tuple[str, Any]:
    """An upstream gradient as it is in memory: an expanded one is not written out."""
    if dy.is_contiguous():
        return "full", dy
    if not any(dy.stride()):
        return "scalar", dy
    return "full", dy.contiguous()
