"""How an operation is checked: what the caller may choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from ...operations.info import signature_of

Arguments = str | int | Sequence[str | int] | None
Inputs = Callable[[np.random.Generator], Any] | Iterable[Any]


@dataclass(frozen=True)
class CheckOptions:
    """The options of `check`.

    `framework` is the one to call the operation in, if its arrays don't say it; `seed`
    makes other random numbers; `thorough` compares compiled and vectorized calls and
    other frameworks too; `strict` accepts neither limits nor undeclared surrogates;
    `seconds` is the time after which the verdict so far is given (None: no limit);
    `surrogate` says of a rule that is not ours that it is not the derivative on
    purpose, and why. `wrt` names the arguments to differentiate by (all others are kept
    as given), `data` those not to: names or positions, one or several. `inputs` gives
    more inputs of the same kind: a function of a NumPy generator that returns a tuple
    of arguments or a dict of keywords, or an iterable of these.
    """

    framework: str | None = None
    seed: int = 0
    thorough: bool = False
    strict: bool = False
    seconds: float | None = 20.0
    surrogate: str | None = None
    wrt: Arguments = None
    data: Arguments = None
    inputs: Inputs | None = None

    def __post_init__(self) -> None:
        for option in ("wrt", "data"):
            _require_arguments(option, getattr(self, option))
        if not (
            self.inputs is None
            or callable(self.inputs)
            or isinstance(self.inputs, Iterable)
        ):
            raise GradsmithError(
                f"inputs={self.inputs!r}: expected a function of a NumPy generator, "
                "such as lambda random: (random.normal(size=3),), or an iterable of "
                "inputs"
            )
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


def _require_arguments(option: str, given: Any) -> None:
    for each in as_list(given):
        if not isinstance(each, (str, Integral)) or isinstance(each, bool):
            raise GradsmithError(
                f"{option}={given!r}: expected names or positions of arguments, such "
                f'as {option}="x" or {option}=(0, 2)'
            )


def as_list(given: Any) -> list[Any]:
    """One name or position, or several, or none."""
    if given is None:
        return []
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return list(given) if several else [given]


def constants_among(
    options: CheckOptions, names: Sequence[str], positional: Sequence[str]
) -> set[str]:
    """The arrays to keep as given, of those with these names.

    `positional` are the names of the positional arguments, in order.
    """
    data = _chosen("data", options.data, names, positional)
    wrt = _chosen("wrt", options.wrt, names, positional)
    if wrt & data:
        both = ", ".join(sorted(wrt & data))
        raise GradsmithError(f"wrt= and data= both name {both}")
    if options.wrt is not None:
        data = set(names) - wrt
    if data >= set(names):
        raise GradsmithError(
            "nothing is left to differentiate by: wrt= and data= leave none of "
            f"{', '.join(names)}"
        )
    return data


def _chosen(
    option: str, given: Any, names: Sequence[str], positional: Sequence[str]
) -> set[str]:
    found: set[str] = set()
    for each in as_list(given):
        name = each
        if not isinstance(each, str):
            inside = -len(positional) <= int(each) < len(positional)
            name = positional[int(each)] if inside else ""
        parts = {
            n for n in names if n == name or n.startswith((f"{name}[", f"{name}."))
        }
        if not name or not parts:
            raise GradsmithError(
                f"{option}={given!r}: {each!r} is no argument with floating numbers; "
                f"these are {', '.join(names)}"
            )
        found |= parts
    return found
