"""How an operation is checked: what the caller may choose."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from ...core.errors import GradsmithError
from ...operations.info import signature_of


@dataclass(frozen=True)
class CheckOptions:
    """The options of `check`.

    `framework` is the one to call the operation in, if its arrays don't say it; `seed`
    makes other random numbers; `thorough` compares compiled and vectorized calls and
    other frameworks too; `strict` accepts neither limits nor undeclared surrogates;
    `seconds` is the time after which the verdict so far is given (None: no limit);
    `surrogate` says of a rule that is not ours that it is not the derivative on
    purpose, and why.
    """

    framework: str | None = None
    seed: int = 0
    thorough: bool = False
    strict: bool = False
    seconds: float | None = 20.0
    surrogate: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise GradsmithError(
                f"seed={self.seed!r}: expected an integer, 0 or larger"
            )
        if self.seconds is not None and not (
            isinstance(self.seconds, Real) and self.seconds > 0
        ):
            raise GradsmithError(
                f"seconds={self.seconds!r}: expected a positive number, or None for no "
                "limit"
            )

    def changed(self, **options: Any) -> CheckOptions:
        """With some of the options changed."""
        names = [each.name for each in fields(self)]
        for name in options:
            if name not in names:
                raise GradsmithError(
                    f"check has no option {name!r}; it has {', '.join(names)}"
                )
        return replace(self, **options)


def refuse_options(op: Any, keywords: dict[str, Any]) -> None:
    """Options given as keywords of an operation that does not take them."""
    names = {each.name for each in fields(CheckOptions)} & set(keywords)
    signature = signature_of(op) if names else None
    if signature is None:
        return
    parameters = signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    for name in sorted(names - set(signature.parameters)):
        raise GradsmithError(
            f"check passes keywords to the operation, which takes no {name!r}\n  what "
            f"to do: give options of the check by gs.check.options({name}=...)(op, ...)"
        )
