"""Which way an operation goes, by what PyTorch is doing."""

from __future__ import annotations

from typing import Any

import torch

from ..._arrays import QUICK
from ..._parameters import Bound
from . import _compiled, _eager, _export, _quick, _tracing, _transformed  # noqa: F401
from ._private import has_forward_level, is_transformed


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that PyTorch differentiates it by its rule."""
    if torch.compiler.is_dynamo_compiling():
        return _compiled.call(operation, bound)
    if torch.compiler.is_exporting():
        return _export.call(operation, bound)
    if is_transformed() or has_forward_level():
        return _transformed.call(operation, bound)
    if torch.Tensor not in QUICK:
        _quick.register()
    return _eager.call(operation, bound)


_quick.register()
