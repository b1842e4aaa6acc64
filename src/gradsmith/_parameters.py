"""What a user's function can be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple


class _Parameters(NamedTuple):
    positional: float
    named: frozenset[str]


_known: dict[Any, _Parameters] = {}


def accepts(fn: Callable[..., Any] | None, what: str | int) -> bool:
    """Whether a function has a parameter of a name, or takes so many by position.

    >>> accepts(lambda dz, dw, needs=None: 0, 2), accepts(lambda dy: 0, "needs")
    (True, False)
    """
    if fn is None:
        return False
    code = getattr(fn, "__code__", None)
    parameters = _known.get(code) if code is not None else None
    if parameters is None:
        parameters = _read(fn)
        if code is not None:
            _known[code] = parameters
    if isinstance(what, str):
        return what in parameters.named
    return what <= parameters.positional


def _read(fn: Callable[..., Any]) -> _Parameters:
    """Reserved names count as options, not as positional parameters."""
    positional, named = 0.0, set()
    for p in inspect.signature(fn).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            positional = float("inf")
        elif p.name in ("needs", "variables"):
            named.add(p.name)
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            positional += 1
    return _Parameters(positional, frozenset(named))
