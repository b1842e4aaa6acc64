"""Operations on PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from ..._arrays import QUICK
from ..._parameters import Bound
from . import _compiled, _eager, _export, _quick, _tracing, _transformed  # noqa: F401
from ._host import host


__all__ = ["call", "host"]


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that PyTorch differentiates it by its rule."""
    if torch.compiler.is_dynamo_compiling():
        return _compiled.call(operation, bound)
    if torch.compiler.is_exporting():
        return _export.call(operation, bound)
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return _transformed.call(operation, bound)
    if not QUICK:
        _quick.register()
    return _eager.call(operation, bound)


_quick.register()
