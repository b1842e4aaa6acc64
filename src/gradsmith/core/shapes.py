"""What broadcasting does to shapes. Compilers of frameworks trace this as Python."""

from __future__ import annotations


def broadcast_axes(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of `shape` along which an array of shape `target` was repeated.

    >>> broadcast_axes((4, 3, 2), (3, 1))
    (0, 2)
    """
    extra = len(shape) - len(target)
    stretched = (
        extra + i for i, n in enumerate(target) if n == 1 and shape[extra + i] != 1
    )
    return (*range(extra), *stretched)
