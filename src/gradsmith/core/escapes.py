"""Values that leave the recorders' sight: who is told of it, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import UnsupportedOperationError
from .tape import INSIDE, Traced, state

_TENSORS = (__name__, f"{__name__.rpartition('.')[0]}.tensor")
LEFT = "it returns a plain array, which no tape follows"

# What to write instead, by how a value becomes a constant
FOR_NUMBERS = (
    "np.sin instead of math.sin, np.stack of a list instead of array[i] = x, and "
    "NumPy's functions on tensors in general"
)
FOR_ARRAYS = (
    "np.stack([a, b]) or gnp.array([a, b]) instead of np.array([a, b]), gnp.full "
    "instead of np.full, np.where instead of an assignment to elements, "
    "np.asarray(table) for a table of another library"
)
FOR_OTHERS = "NumPy's functions on tensors"


def tell_lost(xs: Sequence[Traced], where: str, why: str) -> None:
    for recorder in state().recorders:
        if not recorder.private:
            recorder.lost(xs, INSIDE.get() or where, why)


def traced_in(x: Any, types: Any = Traced) -> Iterator[Any]:
    """The tensors in lists, tuples and dicts; or what else is of these types."""
    if isinstance(x, types):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from traced_in(part, types)
    elif isinstance(x, dict):
        yield from traced_in(list(x.values()), types)


def is_followed(x: Traced) -> bool:
    if x.dtype.kind in "fcO":
        for recorder in state().recorders:  # 0.5 us less than in `any`
            if recorder.mark_of(x) is not None:
                return True
    return False


def refuse_conversion(x: Traced, how: str, instead: str = FOR_OTHERS) -> None:
    """A value that is being differentiated becomes no constant without a word."""
    if not (state().recorders and is_followed(x)):
        return
    by, only_compares = _library_function()
    if only_compares:
        return
    from .places import place_here  # nearly never needed

    place = place_here()
    line = "" if place is None else f"\n  at {place}: {place.source}"
    raise UnsupportedOperationError(
        f"{by or how} would make a constant of a value that is being differentiated: "
        f"its part of the gradient would be lost{line}\n"
        f"  to keep it: {instead}; gs.with_gradient gives a function a rule\n"
        "  if a constant is meant: gs.stop_gradient(x), or x.numpy() for a plain array"
    )


def _library_function() -> tuple[str, bool]:
    """The function of NumPy's or SciPy's that converts, and if it only compares."""
    name, package = "", ""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame:
        module = frame.f_globals.get("__name__", "")
        if module in _TENSORS:  # without a frame where it is compiled
            frame = frame.f_back
            continue
        if not module.startswith(("numpy.", "scipy.")):
            break
        function = frame.f_code.co_qualname.partition(".")[0]
        package = module.partition("._")[0]
        name = f"{package}.{function}"
        frame = frame.f_back
    return name, package.startswith("numpy.testing")
