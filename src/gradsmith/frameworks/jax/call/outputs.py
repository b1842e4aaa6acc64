"""The outputs of a body: its arrays flat, and how they are put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....core import trees


class _Place:
    """In a template of outputs: an array comes here."""


_PLACE = _Place()


def flattened(outputs: Any) -> tuple[list[Any], Any]:
    """The arrays in outputs, and the outputs with places for them."""
    if isinstance(outputs, jax.Array):
        return [outputs], _PLACE
    ys: list[Any] = []

    def place(y: Any) -> Any:
        if isinstance(y, jax.Array):
            ys.append(y)
        elif isinstance(y, (np.ndarray, np.generic, float, complex)):
            ys.append(jnp.asarray(y))
        else:
            return y
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
