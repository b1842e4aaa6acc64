"""Results that hide their arrays, which would have no gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...core.errors import GradsmithError
from ...core.reach import is_plain, reached


def require_open(
    leaves: Iterable[Any], is_array: Callable[[Any], bool], name: str, *roots: Any
) -> None:
    """Raise if an array is inside of a leaf, an object of a class that is no tree.

    What the function was given or captures (`roots`), a model say, may be returned.
    """
    for leaf in leaves:
        if is_plain(leaf) or is_array(leaf):
            continue
        is_leaf = lambda x, leaf=leaf: x is leaf
        if _is_in(is_array, leaf) and not _is_in(is_leaf, *roots):
            raise _hidden(name, type(leaf).__name__)


def _is_in(stop: Callable[[Any], bool], *roots: Any) -> bool:
    return any(True for _ in reached(*roots, stop=stop))


def _hidden(name: str, kind: str) -> GradsmithError:
    return GradsmithError(
        f"gs.checkpoint: {name!r} returned an object of class {kind!r}, whose arrays "
        "have no gradient: it can't be taken apart\n"
        "  expected: arrays, or tuples, lists, dicts, named tuples and dataclasses of "
        "them\n"
        f"  what to do: return the arrays, and make the {kind!r} of them outside; or "
        "make it a dataclass"
    )
