"""What can't be traced: the error, with the line of the user's code and the way out."""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.errors import UnsupportedOperationError
from ..core.places import place_here
from ..core.rule import name_of


class OpenShapeError(UnsupportedOperationError):
    """What a result is like depends on elements."""


_WHY = ", and a traced function runs on arrays that have only a shape and a dtype"


def refuse(
    what: str, way: str, error: Any = UnsupportedOperationError, *, why: str = _WHY
) -> NoReturn:
    """Raise for what can't be traced, with the line and the way out."""
    place = place_here()
    line = "" if place is None else f"\n  at {place}: {place.source}"
    raise error(f"{what}{why}{line}\n  what to do: {way}")


def refuse_open(fn: Any, what: str = "shape") -> NoReturn:
    """Raise for a result whose shape (or dtype) depends on the elements."""
    name = "x[mask]" if fn.__name__ == "index" else name_of(fn)
    refuse(
        f"the {what} of what {name} gives depends on the elements",
        "keep the full shape: np.where(mask, x, 0), or np.take with a fixed number of "
        "positions; or compute it outside and pass it as an argument",
        OpenShapeError,
    )
