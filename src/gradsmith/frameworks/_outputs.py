"""The outputs of a body: its arrays flat, and how they are put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import trees


class _Place:
    """In a template of outputs: an array comes here."""


_PLACE = _Place()


def flattened(outputs: Any, as_array: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """The arrays in outputs, and the outputs with places for them.

    `as_array` gives the array of a leaf, None if it stays what it is.
    """
    whole = as_array(outputs)  # the usual case
    if whole is not None:
        return [whole], _PLACE
    ys: list[Any] = []

    def place(leaf: Any) -> Any:
        y = as_array(leaf)
        if y is None:
            return leaf
        ys.append(y)
        return _PLACE

    return ys, trees.map(place, outputs)


_KEEP: Any = object()


def rebuilt(template: Any, ys: Sequence[Any], static: Any = _KEEP) -> Any:
    """Outputs from their template and arrays; `static` replaces what is no array."""
    if template is _PLACE:
        return ys[0]
    rest = iter(ys)

    def fill(leaf: Any) -> Any:
        if leaf is _PLACE:
            return next(rest)
        return leaf if static is _KEEP else static

    return trees.map(fill, template)
