"""Operations on PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from ..._parameters import Bound
from . import _eager, _quick, _transformed  # noqa: F401  (_quick registers itself)


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that PyTorch differentiates it by its rule."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return _transformed.call(operation, bound)
    return _eager.call(operation, bound)
