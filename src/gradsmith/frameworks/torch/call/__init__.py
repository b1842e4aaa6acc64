"""Operations on PyTorch's tensors: which way one goes, by what PyTorch is doing."""

from __future__ import annotations

from typing import Any

import torch

from ....core.arrays import KERNELS, QUICK
from ....core.errors import UnsupportedOperationError
from ....operations.parameters import Bound
from .. import kernels
from ..private import has_forward_level, is_exporting, is_scripting, is_transformed
from . import compiled, eager, export, quick, tracing, transformed  # noqa: F401
from .callbacks import host

__all__ = ["GRADIENTS_AHEAD", "call", "host"]

GRADIENTS_AHEAD = True


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that PyTorch differentiates it by its rule."""
    if torch.compiler.is_dynamo_compiling():
        return compiled.call(operation, bound)
    if is_exporting():
        return export.call(operation, bound)
    if any(isinstance(x, torch.fx.Proxy) for x in bound.leaves):
        return _traced(operation, bound)
    if is_scripting() is not None:
        return _scripted(operation, bound)
    if is_transformed() or has_forward_level():
        return transformed.call(operation, bound)
    if torch.Tensor not in QUICK:
        quick.register()
    return eager.call(operation, bound)


def _traced(operation: Any, bound: Bound) -> Any:
    """A node of torch.fx, which would else look into the body and see no rule."""
    tracer = next(x for x in bound.leaves if isinstance(x, torch.fx.Proxy)).tracer
    args, kwargs = bound.given_arguments()
    target = operation.original or operation
    return tracer.create_proxy("call_function", target, tuple(args), kwargs)


def _scripted(operation: Any, bound: Bound) -> Any:
    """The body alone: TorchScript knows no rules."""
    if torch.is_grad_enabled():
        raise UnsupportedOperationError(
            f"operation {operation.name!r} can't be traced by torch.jit with its rule\n"
            "  what to do: use torch.compile or torch.export, or trace it for "
            "inference, under torch.no_grad()"
        )
    return eager.plain(operation, bound.with_leaves([x.detach() for x in bound.leaves]))


quick.register()
# Here, since Dynamo lets nothing be remembered while it traces a rule
KERNELS.update(dict.fromkeys((torch.Tensor, torch.nn.Parameter), kernels))
KERNELS.update(dict.fromkeys((torch.dtype, torch.device)))
