"""What `find_nan` found: the operation, its line, what went in, and why."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ...core.places import Place
from .values import Value


@dataclass(frozen=True)
class Stop:
    """An operation that NaN or inf went through on its way to the result."""

    operation: str
    phase: str
    kind: str
    where: Place | None


@dataclass(frozen=True)
class NanReport:
    """The result of `find_nan`.

    `phase` says in which pass the NaN or inf was born: "forward" or "backward"; it is
    "argument" if it was among the inputs, "constant" if the function had it from
    elsewhere. `where` is the line of the user's code, `inputs` and `outputs` are a few
    elements of what went in and came out there. `masked` says that a `where` (at
    `mask`) had taken the other branch. `trail` is the way to the result.
    """

    function: str
    framework: str
    version: str
    found: bool = False
    kind: str | None = None
    operation: str | None = None
    phase: str | None = None
    where: Place | None = None
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    masked: bool = False
    mask: Place | None = None
    explanation: str = ""
    repair: str = ""
    trail: tuple[Stop, ...] = ()
    reaches: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the value and all gradients are finite."""
        return not self.found

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers; NaN and inf as strings."""
        return {"ok": self.ok, **_written({**asdict(self)})}

    def to_json(self) -> str:
        """`as_dict` as a JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        from .words import text

        return text(self)

    def _repr_html_(self) -> str:
        from .words import html

        return html(self)


def _written(x: Any) -> Any:
    """JSON has no NaN, no inf and no complex numbers."""
    if isinstance(x, dict):
        return {key: _written(part) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        return [_written(part) for part in x]
    odd = isinstance(x, complex) or (isinstance(x, float) and x - x != 0)
    return str(x) if odd else x
