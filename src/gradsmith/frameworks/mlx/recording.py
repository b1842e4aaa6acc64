"""Recording on MLX: calls of our operations, and what is seen of its arrays.

Its own mx.custom_function shows neither its function nor its rules, so that nobody
could find it in the source, or check it after the test.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mx
import numpy as np

from .._recording import Seen
from .arrays import dtype_name, numpy
from .call.captured import is_known


def read(x: Any) -> Seen | None:
    """What is seen of an array; MLX does not tell whether it is differentiated."""
    if isinstance(x, (np.ndarray, np.generic)):
        return Seen(x.shape, str(x.dtype), partial(np.array, x))
    if not isinstance(x, mx.array):
        return None
    return Seen(x.shape, dtype_name(x), partial(numpy, x) if is_known([x]) else None)
