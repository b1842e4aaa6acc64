"""Which of the gradients that a rule returned belongs to which argument."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...core import trees
from ..arguments import Argument, Kind
from .causes import describe
from .leaves import MisfitError, fits
from .words import is_word

# A rule returns a gradient for each array argument. One that is written for floating
# arrays alone, or for an argument that is a number in this call, is understood too.
_FLOATING, _INTEGER, _NUMBER, _WHOLE = list(Kind)[:4]
_COUNTED = (
    {_FLOATING, _INTEGER},
    {_FLOATING},
    {_FLOATING, _INTEGER, _NUMBER},
    {_FLOATING, _NUMBER},
    {_FLOATING, _INTEGER, _NUMBER, _WHOLE},
    {_FLOATING, _NUMBER, _WHOLE},
)


def by_argument(
    returned: Any, arguments: Sequence[Argument], needed: Collection[str], each: str
) -> Sequence[Any]:
    """One gradient (or tree of them) for each argument, None for a static one.

    `each` says in messages what there is one gradient for.
    """
    arrays = [argument for argument in arguments if argument.has_arrays]
    if not arrays:
        return [None] * len(arguments)
    if len(arrays) == 1 and _is_bare(returned, arrays[0]):
        return [returned if a is arrays[0] else None for a in arguments]
    try:
        if isinstance(returned, dict):
            return _by_name(returned, arguments, needed)
        return _by_order(returned, arguments, arrays)
    except _UnclearError as error:
        what, cause = error.args
        names = ", ".join(argument.name for argument in arrays)
        expected = f"{len(arrays)}, one for each {each} ({names}), or a dict by name"
        raise MisfitError(what, expected, describe(returned), cause) from None


class _UnclearError(Exception):
    """What is wrong with the gradients together, and its likely cause."""


def _is_bare(returned: Any, argument: Argument) -> bool:
    """Whether the gradient of the only argument came without a tuple or dict around."""
    if fits(argument.specs, returned):
        return True
    if isinstance(returned, dict):
        return isinstance(argument.specs, dict) and argument.name not in returned
    return not isinstance(returned, (tuple, list))


def _by_name(
    returned: dict[str, Any], arguments: Sequence[Argument], needed: Collection[str]
) -> list[Any]:
    names = [argument.name for argument in arguments]
    for name in returned:
        if name not in names:
            cause = f"there is no argument {name!r}"
            raise _UnclearError("names the wrong arguments", cause)
    for name in needed:
        if name not in returned:
            cause = f"{name!r} is missing; give it None if it has no gradient"
            raise _UnclearError("names too few arguments", cause)
    return [returned.get(name) for name in names]


def _by_order(
    returned: Any, arguments: Sequence[Argument], arrays: Sequence[Argument]
) -> list[Any]:
    if not isinstance(returned, (tuple, list)):
        cause = "return a tuple, with None where there is no gradient"
        raise _UnclearError("has the wrong number of entries", cause)
    ways: list[list[bool]] = []
    for kinds in _COUNTED:
        way = [argument.kind in kinds for argument in arguments]
        if sum(way) == len(returned) and way not in ways:
            ways.append(way)
    if not ways:
        raise _UnclearError(
            "has the wrong number of entries", _count_cause(returned, arrays)
        )
    rest = iter(returned)
    found = [next(rest) if counts else None for counts in ways[0]]
    for argument, gradient in zip(arguments, found, strict=True):
        if len(ways) > 1 and argument.kind is Kind.INTEGER and not is_word(gradient):
            raise _UnclearError(
                "can be read in two ways",
                f"either {argument.name!r} is counted, which has no gradient since it "
                "is not floating, or a number; return a dict by name",
            )
    return found


def _count_cause(returned: Sequence[Any], arrays: Sequence[Argument]) -> str:
    if len(arrays) == 1 and not trees.is_leaf(arrays[0].specs):
        return "the gradient of a tree is one entry, a tree of the same structure"
    if len(arrays) == 1 and all(type(part) in (int, float) for part in returned):
        return "the argument is one array, so is its gradient: np.array(gradient)"
    if len(returned) > len(arrays):
        return "an argument that is no array (a string, say) has no gradient"
    return "one is missing; return None for an argument that has no gradient"
