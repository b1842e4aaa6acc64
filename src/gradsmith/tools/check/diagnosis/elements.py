"""Which elements, in words."""

from __future__ import annotations

import numpy as np

from ..flat import Part

SHOWN = 4


def describe_elements(part: Part, wrong: np.ndarray) -> str | None:
    """The elements of an argument where `wrong` holds (one for each real number).

    >>> describe_elements(Part("x", 0, (3, 4)), np.arange(12) % 4 == 1)
    'column 1'
    """
    flags = _by_element(part, wrong)
    count, size = int(flags.sum()), flags.size
    if not part.shape or not count:
        return None
    if count == size:
        return "the only element" if size == 1 else f"all {size} elements"
    if count == 1:
        return f"element {_index(part, int(np.argmax(flags)))}"
    return describe_pattern(part, wrong) or _listed(part, flags)


def describe_pattern(part: Part, wrong: np.ndarray) -> str | None:
    """A row, a column, the end, every second one: if it is as regular as that."""
    flags = _by_element(part, wrong)
    if not 0 < flags.sum() < flags.size or not part.shape:
        return None
    return _slab(flags) or _run(flags.ravel()) or _stride(flags.ravel())


def _by_element(part: Part, wrong: np.ndarray) -> np.ndarray:
    pairs = np.reshape(wrong, (*part.shape, 1 + part.is_complex))
    return np.any(pairs, axis=-1)


def _slab(flags: np.ndarray) -> str | None:
    """All elements with one index along an axis, in arrays of two axes or more."""
    for axis in range(flags.ndim if flags.ndim > 1 else 0):
        lines = np.moveaxis(flags, axis, 0).reshape(flags.shape[axis], -1)
        chosen = np.flatnonzero(lines.all(axis=1))
        if len(chosen) == 1 and np.array_equal(lines.any(axis=1), lines.all(axis=1)):
            return _line(flags.ndim, axis, int(chosen[0]))
    return None


def _line(ndim: int, axis: int, k: int) -> str:
    if ndim == 2:
        return f"row {k}" if axis == 0 else f"column {k}"
    return f"index {k} along axis {axis}"


def _run(flags: np.ndarray) -> str | None:
    """One stretch of at least two, in the order of memory."""
    where = np.flatnonzero(flags)
    first, last = int(where[0]), int(where[-1])
    if last - first + 1 != where.size or where.size < 2:
        return None
    if last == flags.size - 1:
        return f"from element {first} on (flat)"
    if first == 0:
        return f"up to element {last} (flat)"
    return f"elements {first} to {last} (flat)"


def _stride(flags: np.ndarray) -> str | None:
    where = np.flatnonzero(flags)
    if where.size < 3:
        return None
    step, first = int(where[1] - where[0]), int(where[0])
    if not np.array_equal(where, np.arange(first, flags.size, step)) or first >= step:
        return None
    each = {2: "second", 3: "third"}.get(step, f"{step}th")
    return f"every {each} element" + (f", from element {first} on" if first else "")


def _listed(part: Part, flags: np.ndarray) -> str:
    where = np.flatnonzero(flags)
    named = [_index(part, int(i)) for i in where[:SHOWN]]
    more = ", ..." if len(where) > SHOWN else ""
    return f"{len(where)} of {flags.size} elements: {', '.join(named)}{more}"


def _index(part: Part, element: int) -> str:
    return str([int(k) for k in np.unravel_index(element, part.shape)])
