"""`gs.unbroadcast` and `gs.stop_gradient`, for the arrays of every framework.

NumPy's arrays and tensors go the engine's way; the portable namespace is loaded when a
framework's array is first seen.
"""

from __future__ import annotations

from typing import Any

from ..core import cotangent, transforms, trees
from ..core.arrays import framework_of


def unbroadcast(dy: Any, shape: Any) -> Any:
    """Sum a cotangent over the axes along which `shape` was broadcast.

    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])

    In a TensorFlow graph that leaves lengths open, give `gradsmith.numpy.shape(x)`.
    """
    if framework_of(dy) in (None, "numpy"):
        return cotangent.unbroadcast(dy, tuple(shape))
    from ..numpy import unbroadcast

    return unbroadcast(dy, shape)


def stop_gradient(x: Any) -> Any:
    """Return the same values as constants, which nothing differentiates.

    x is an array of any framework, or a tree of them.
    """
    if framework_of(x) == "numpy" or not any(map(_is_foreign, trees.leaves(x))):
        return transforms.stop_gradient(x)
    from ..numpy import stop_gradient

    return stop_gradient(x)


def _is_foreign(x: Any) -> bool:
    return framework_of(x) not in (None, "numpy")
