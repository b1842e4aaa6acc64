"""Operations on PyTorch's tensors."""

from __future__ import annotations

from typing import Any

from ..._parameters import Bound
from . import _eager, _quick  # noqa: F401  (registers itself)


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that PyTorch differentiates it by its rule."""
    return _eager.call(operation, bound)
