"""Products of arrays and linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._rule import bilinear


def _h(x: Any) -> Any:
    """The conjugate transpose of a stack of matrices."""
    return np.conj(np.swapaxes(x, -1, -2))


bilinear(
    np.matmul,
    lambda dy, y, x1, x2: np.matmul(dy, _h(x2)),
    lambda dy, y, x1, x2: np.matmul(_h(x1), dy),
)
