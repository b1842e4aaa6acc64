"""What an audit is asked for, checked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ...core.errors import GradsmithError
from .formats import Format
from .model import Domain
from .sampling import ends
from .targets import Target


@dataclass(frozen=True)
class Asked:
    """The options of one audit."""

    target: Target
    form: Format
    domain: Domain | dict[str, Domain] | None
    points: int | None
    exhaustive: bool | None
    seed: int
    executor: Executor | None
    progress: Callable[[int, int], None] | None
    jobs: int | None = None
    resume: str | Path | None = None

    def __post_init__(self) -> None:
        names = self.target.arguments
        unknown = [name for name in self.domain or () if name not in names]
        if isinstance(self.domain, dict) and unknown:
            raise GradsmithError(
                f"domain= names {unknown[0]!r}, and {self.target.name} takes "
                f"{', '.join(names)}"
            )
        for name in names:
            if self.domain_of(name) is not None:
                ends(self.domain_of(name), self.form)  # raises if there is no number

    def domain_of(self, name: str) -> Domain | None:
        if isinstance(self.domain, dict):
            return self.domain.get(name)
        return self.domain


def require(domain: Any, points: Any, seed: Any) -> None:
    if points is not None and (not isinstance(points, Integral) or points < 1):
        raise GradsmithError(f"points={points!r}: how many, 1 or more")
    if not isinstance(seed, Integral) or seed < 0:
        raise GradsmithError(f"seed={seed!r}: it is a number, 0 or 1 or 2 ...")
    given = domain if isinstance(domain, dict) else {"": domain}
    for name, one in given.items():
        pair = isinstance(one, (tuple, list)) and len(one) == 2
        if one is None or (pair and all(isinstance(end, Real) for end in one)):
            continue
        shown = f"domain={{{name!r}: {one!r}}}" if name else f"domain={one!r}"
        raise GradsmithError(f"{shown}: give (low, high), such as (-10, 10)")
