"""Targets that run below Python: in TorchScript, or as a part of a larger operation."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .scope import hidden


class Hidden(TorchDispatchMode):
    """Sees all operations, also those that nobody called from Python."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # The way back computes with the same operations; it is not what is changed.
        if torch._C._current_autograd_node() is None:
            family = func.__name__.partition(".")[0].removesuffix("_")
            hidden(("torch", family))
        with torch._C.DisableTorchFunction():  # it is no call from Python
            return func(*args, **(kwargs or {}))
