"""Which transformations `survives` is to run, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.errors import GradsmithError
from .._inputs import module_for
from .row import Row


def kit_for(name: str) -> Any:
    """The module with a framework's transformations."""
    return module_for(__package__ or "", {"numpy": "engine"}.get(name, name))


def chosen(
    rows: Sequence[Row], only: str | Iterable[str] | None, skip: str | Iterable[str]
) -> list[Row]:
    """The rows that were asked for."""
    known = [row.name for row in rows]
    wanted = known if only is None else _names(only, known)
    unwanted = _names(skip, known)
    return [row for row in rows if row.name in wanted and row.name not in unwanted]


def _names(names: str | Iterable[str], known: Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if name not in known:
            raise GradsmithError(
                f"there is no transformation {name!r} here; there are "
                f"{', '.join(known)}"
            )
    return found
