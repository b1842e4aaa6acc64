"""What a gradient needs beside NumPy: constants, and sums over broadcast axes."""

from __future__ import annotations

from typing import Any

from ..core import cotangent, transforms, trees
from ..operations.portable import unbroadcast_by
from ._dispatch import NUMPY, kernels_of, portable
from ._operands import is_array


def stop_gradient(x: Any, /) -> Any:
    """The same values as constants, which no framework differentiates.

    x is an array or a tree of them.

    >>> import numpy as np
    >>> stop_gradient(np.ones(2))
    array([1., 1.])
    """
    K = kernels_of("stop_gradient", (x,))
    if K is NUMPY:
        return transforms.stop_gradient(x)
    if K is not None and is_array(K, x):
        return K.stop_gradient(x)
    return trees.map(_stopped, x)


def _stopped(leaf: Any) -> Any:
    K = kernels_of("stop_gradient", (leaf,))
    if K is NUMPY:
        return transforms.stop_gradient(leaf)
    return leaf if K is None else K.stop_gradient(leaf)


def _unbroadcast(dy: Any, shape: Any) -> Any:
    return cotangent.unbroadcast(dy, tuple(shape))


@portable(_unbroadcast)
def unbroadcast(K: Any, dy: Any, /, shape: Any) -> Any:
    """The sum of a cotangent over the axes along which `shape` was broadcast.

    In a TensorFlow graph whose lengths are open, give the shape as `gnp.shape(x)`.

    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    """
    return unbroadcast_by(K, dy, shape)
