"""What an audit found: errors of the value and of the gradient."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Accuracy:
    """How far results are from the truth.

    `max_ulp` is the largest error in units in the last place; it may be `slack` more,
    which is what is not known of the true values. `beyond` is the share of points that
    are more than 4 ULP off. Points at kinks are judged by the subgradients between
    both sides; those outside of the domain are not judged.
    """

    max_ulp: float
    slack: float
    mean_ulp: float
    mean_bits: float
    beyond: float
    worst_inputs: tuple[str, ...]
    judged: int
    undecided: int
    kinks: int
    outside: int


@dataclass(frozen=True)
class Audit:
    """The result of an audit of a unary operation."""

    operation: str
    dtype: str
    domain: tuple[float, float] | None
    exhaustive: bool
    points: int
    value: Accuracy
    gradient: Accuracy
    seed: int
    seconds: float = 0.0

    @property
    def undecided(self) -> int:
        """How many points are open after all, of the value or of the gradient."""
        return max(self.value.undecided, self.gradient.undecided)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers."""
        return asdict(self)

    def to_json(self) -> str:
        """`as_dict` as a JSON text; what is infinite is null."""
        return json.dumps(_finite(self.as_dict()), indent=2, ensure_ascii=False)


def _finite(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _finite(part) for name, part in x.items()}
    if isinstance(x, (tuple, list)):
        return [_finite(part) for part in x]
    return None if isinstance(x, float) and x - x != 0 else x
