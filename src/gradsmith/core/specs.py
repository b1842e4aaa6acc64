"""Specs of the arrays of frameworks, beside the engine's own."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .cotangent import Spec


class FrameworkSpec:
    """The shape and dtype of a framework's array.

    No subclass of `Spec`, which may be compiled: torch.compile follows the calls of
    operations, in which specs are made, and makes no objects of compiled classes.
    """

    __slots__ = ("dtype", "shape")

    shape: Any
    dtype: Any

    def __repr__(self) -> str:
        return f"Spec(shape={self.shape}, dtype={self.dtype})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def describes(self, x: Any) -> bool:
        """Whether x is an array of this shape and dtype."""
        raise NotImplementedError


AnySpec = Spec | FrameworkSpec
