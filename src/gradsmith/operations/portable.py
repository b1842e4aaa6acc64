"""`gs.unbroadcast` and `gs.stop_gradient`, for the arrays of every framework."""

from __future__ import annotations

from typing import Any

from ..core import cotangent, transforms, trees
from ..core.arrays import FRAMEWORKS, NUMPY, framework_of, unwrapped
from ..core.errors import GradsmithError
from ..core.shapes import broadcast_axes


def unbroadcast(dy: Any, shape: Any) -> Any:
    """Sum a cotangent over the axes along which `shape` was broadcast.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])

    In a TensorFlow graph with unknown lengths, pass `gradsmith.numpy.shape(x)`.

    Raises
    ------
    GradsmithError
        If the shape leaves lengths open.
    ValueError
        If dy can't have been broadcast from that shape.
    """
    name = framework_of(dy)
    if name is None or name == NUMPY:
        return cotangent.unbroadcast(dy, tuple(shape))
    dy = unwrapped([dy], "gs.unbroadcast")[0]
    return unbroadcast_by(FRAMEWORKS[name].kernels, dy, shape)


def unbroadcast_by(K: Any, dy: Any, shape: Any) -> Any:
    """`unbroadcast` by the kernels of a framework."""
    shape = shape_of(shape)
    if any(n is None for n in shape):
        raise GradsmithError(
            f"unbroadcast was given the shape {shape}, whose unknown lengths don't "
            "say what was broadcast: pass gnp.shape(x) instead of x.shape"
        )
    given = K.shape(dy)
    if not all(isinstance(n, int) for n in (*given, *shape)):
        return K.unbroadcast(dy, shape)
    if given == shape:
        return dy
    axes = broadcast_axes(given, shape)
    return K.reshape(K.sum(dy, axes, False) if axes else dy, shape)


def shape_of(shape: Any) -> tuple[Any, ...]:
    """A shape as a tuple; a framework's own shape object becomes one too."""
    if isinstance(shape, tuple):
        return shape
    if hasattr(shape, "as_list"):
        return tuple(shape.as_list())
    return tuple(shape) if isinstance(shape, list) else (shape,)


def stop_gradient(x: Any) -> Any:
    """Return the same values as constants, which have no gradient.

    x is an array of any framework, or a tree of them.

    >>> import gradsmith as gs
    >>> gs.grad(lambda x: x * gs.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    name = framework_of(x)
    if name is None:
        return trees.map(_stopped, x)
    return _stopped(x)


def _stopped(leaf: Any) -> Any:
    name = framework_of(leaf)
    if name is None or name == NUMPY:
        return transforms.stop_gradient(leaf)
    leaf = unwrapped([leaf], "gs.stop_gradient")[0]
    return FRAMEWORKS[name].kernels.stop_gradient(leaf)
