"""The engine has no custom gradients but ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.tensor import unwrap
from .._recording import Seen


def read(x: Any) -> Seen | None:
    value = unwrap(x)  # not x.numpy(), by which it leaves a tape
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fciub":
        return None
    return Seen(value.shape, str(value.dtype), lambda: np.array(value))
