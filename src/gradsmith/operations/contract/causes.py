"""Why a gradient came out wrong: from what was expected and got to words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import described
from ...core.shapes import broadcast_axes
from ...core.specs import AnySpec

Shape = Any  # a tuple of lengths, of which a graph may leave some open


def of_shape(name: str, expected: Shape, got: Shape) -> str:
    """The likely reason for a wrong shape."""
    if expected is None or None in (*expected, *got):  # in a graph: axes may be open
        return "it belongs to another array"
    if got == ():
        return (
            "a scalar was returned for an array; was it summed or averaged? The "
            "gradient has an entry for each element (if it is zero, return gs.zero)"
        )
    if len(got) > 1 and got == expected[::-1]:
        return f"it is transposed; transpose it back, to shape {expected}"
    if _broadcasts(expected, got):
        axes = broadcast_axes(got, expected)
        which = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes}"
        return (
            f"dy was not summed over the broadcast {which}; "
            f"return gs.unbroadcast(gradient, {name}.shape)"
        )
    if len(got) > 1 and sorted(got) == sorted(expected):
        return f"its axes are in another order; move them, to shape {expected}"
    if np.prod(got) == np.prod(expected):
        return f"it has the right number of elements; reshape it to {expected}"
    if _broadcasts(got, expected):
        return (
            "it was summed over an axis that the argument has; "
            f"broadcast it to {name}.shape"
        )
    return "it belongs to another array"


def _broadcasts(shape: Shape, target: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def of_dtype(name: str, expected: Any, got: Any) -> str:
    """The likely reason for a wrong dtype."""
    if got.kind == "c" and expected.kind != "c":
        return "the gradient of a real argument is real; return its real part"
    if got.kind in "iub":
        return (
            "integers and booleans can't be a gradient; multiply them by dy, "
            f"or cast them to {name}.dtype"
        )
    if got.kind == "f" and expected.kind == "c":
        return (
            "the imaginary part got lost (by taking the real part or abs); if it is 0, "
            f"cast the gradient to {name}.dtype"
        )
    return (
        "an array or NumPy scalar of another precision took part (np.float64(2) is "
        "one, 2.0 is not), or the output has another dtype; cast the gradient to "
        f"{name}.dtype"
    )


def of_type(leaf: Any) -> str:
    """The likely reason for something that is no array."""
    if callable(leaf):
        return "a function was returned; call it"
    if isinstance(leaf, (list, tuple, dict)):
        return "the argument is one array, so is its gradient: stack the parts"
    return "a gradient is an array, or gs.zero"


# --- words ---------------------------------------------------------------------------


def written(spec: AnySpec) -> str:
    shape = "unknown" if spec.shape is None else tuple(spec.shape)
    return f"shape {shape}, {spec.dtype}"


def describe(x: Any) -> str:
    """A value in words.

    >>> describe([np.ones(3), None])
    'a list of 2: [array(3,), None]'
    """
    spec = described(x)
    if spec is not None:
        return f"{_a(x)} of {written(spec)}"
    if isinstance(x, (tuple, list)):
        return f"{_a(x)} of {len(x)}: {outline(x)}"
    if isinstance(x, dict):
        return f"a dict with the keys {', '.join(map(repr, x))}" if x else "{}"
    if x is None or isinstance(x, (bool, int, float, complex)):
        return repr(x)
    return _a(x)


def _a(x: Any) -> str:
    name = type(x).__name__
    return f"{'an' if name[0] in 'aeio' or name == 'ndarray' else 'a'} {name}"


def outline(tree: Any) -> str:
    """The structure of a tree, with the shapes of its arrays."""
    text = str(trees.map(_Word, tree))
    return text if len(text) <= 120 else f"{text[:120]}..."


class _Word:
    """A leaf as it is shown in the outline of a tree."""

    def __init__(self, leaf: Any) -> None:
        array = hasattr(leaf, "shape")
        self.text = f"array{tuple(leaf.shape)}" if array else describe(leaf)

    def __repr__(self) -> str:
        return self.text
