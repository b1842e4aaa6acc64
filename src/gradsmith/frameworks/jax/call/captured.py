"""Finding traced values that a body or a rule captures."""

from __future__ import annotations

from typing import Any

from jax.core import Tracer

from ....core.arrays import framework_of
from ....core.reach import reached


class CapturedError(Exception):
    """A body turned out to capture a traced value, and must be staged to follow it."""


def tracers_in(*things: Any) -> list[Any]:
    """The traced values that functions and objects hold, as far as can be seen."""
    found = reached(*things, stop=_is_array, globals=False)
    return [x for x in found if isinstance(x, Tracer)]


def _is_array(x: Any) -> bool:
    return isinstance(x, Tracer) or framework_of(x) == "jax"
