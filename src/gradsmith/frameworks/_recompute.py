"""What the frameworks' parts `recompute` share, and what they are given.

The plan of a scan, a call as a function of its arrays, the refusal of results that hide
arrays, and the comparison of a plain run with a recomputed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core import trees
from ..core.errors import GradsmithError
from ..core.reach import is_plain, reached
from ..core.tensor import unwrap

# Pairs of functions: whether a framework's compiler is tracing, and the `checkpoint`
# that it can trace. A framework adds its own in the part `early`.
COMPILERS: list[tuple[Callable[[], bool], Callable[..., Any]]] = []


class Action(NamedTuple):
    """One action of a schedule.

    `advance` from a step to another, with the state before it stored first if `store`
    says where; `record` one step, then reverse it; `load` a state, for the last time
    if `last`.
    """

    kind: str
    start: int
    stop: int = 0
    store: str = ""  # "ram" or "disk"
    last: bool = False


class ScanPlan(Protocol):
    """The steps of a scan, on the leaves of its state, and which states to store."""

    name: str  # of the step
    step: Callable[..., Any]  # the user's, on whole states; a framework may wrap it
    start: list[Any]  # the leaves of the first state
    folder: str | None  # for states on disk

    def take(self, leaves: list[Any], i: int) -> list[Any]:
        """Step i."""
        ...

    def in_turn(self) -> list[Any]:
        """All steps, with nothing stored."""
        ...

    def in_blocks(self, block: Block) -> list[Any]:
        """All steps; `block(leaves, inner)` is `inner(leaves)`, checkpointed."""
        ...

    def actions(self) -> Sequence[Action]:
        """The schedule, for who stores states itself."""
        ...


Block = Callable[[list[Any], Callable[[list[Any]], list[Any]]], list[Any]]


class FlatCall:
    """`fn(*args, **kwargs)` as a function from arrays to a list of arrays.

    All else, in the arguments and in the result, stays as it is. `is_array` says what
    counts as an array.
    """

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, is_array: Any
    ) -> None:
        self.fn = fn
        self.arguments = (args, kwargs)
        self.is_array = is_array
        named = [*trees.leaves_with_names(args, "args")]
        named += [
            pair
            for key, value in kwargs.items()
            for pair in trees.leaves_with_names(value, key)
        ]
        self.names = [name for name, x in named if is_array(x)]
        leaves = [x for _, x in named]
        self.arrays = [x for x in leaves if is_array(x)]
        self.rest = [None if is_array(x) else x for x in leaves]
        self.places = [i for i, x in enumerate(leaves) if is_array(x)]
        self.result: Any = None  # with a mark in place of each array

    def __call__(self, *arrays: Any) -> list[Any]:
        return self.of(self.fn, arrays)

    def of(self, fn: Callable[..., Any], arrays: Sequence[Any]) -> list[Any]:
        """The same call of another function."""
        leaves = list(self.rest)
        for i, x in zip(self.places, arrays, strict=True):
            leaves[i] = x
        args, kwargs = trees.unflatten(self.arguments, leaves)
        result = fn(*args, **kwargs)
        ys = trees.leaves(result)
        require_visible(ys, self.is_array, name_of(self.fn), self.fn, args, kwargs)
        found = [y for y in ys if self.is_array(y)]
        self.result = trees.map(lambda y: _ARRAY if self.is_array(y) else y, result)
        return found

    def restored(self, arrays: list[Any]) -> Any:
        """The last result, with these arrays in it."""
        rest = iter(arrays)
        return trees.map(lambda y: next(rest) if y is _ARRAY else y, self.result)


_ARRAY: Any = object()


def name_of(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def require_visible(
    leaves: Iterable[Any], is_array: Callable[[Any], bool], name: str, *roots: Any
) -> None:
    """Raise if an array is inside of a leaf, an object of a class that is no tree.

    It would have no gradient. What the function was given or captures (`roots`), a
    model say, may be returned.
    """
    for leaf in leaves:
        if is_plain(leaf) or is_array(leaf):
            continue
        is_leaf = lambda x, leaf=leaf: x is leaf
        if _is_in(is_array, leaf) and not _is_in(is_leaf, *roots):
            kind = type(leaf).__name__
            raise GradsmithError(
                f"gs.checkpoint: {name!r} returned an object of class {kind!r}, whose "
                "arrays have no gradient: Gradsmith can't look inside\n"
                "  expected: arrays, or tuples, lists, dicts, named tuples and "
                "dataclasses of them\n"
                f"  what to do: return the arrays, and build the {kind!r} from "
                "them outside; or make it a dataclass"
            )


def _is_in(stop: Callable[[Any], bool], *roots: Any) -> bool:
    return any(True for _ in reached(*roots, stop=stop))


def require_same(
    name: str,
    plain: dict[str, Any],
    recomputed: dict[str, Any],
    *,
    exact: bool,
    first: Callable[[], str] = str,
) -> None:
    """Raise if two runs of a function differ. Both are NumPy arrays by their names.

    `first` finds the operation at which they differ first, if that is known.
    """
    for what in dict.fromkeys((*plain, *recomputed)):
        if what not in plain or what not in recomputed:
            run = "plain" if what in plain else "checkpointed"
            words = f"is there in the {run} run alone"
        else:
            words = difference(plain[what], recomputed[what], exact=exact)
        if words:
            raise _disagreement(name, what, words, first())


def difference(plain: Any, recomputed: Any, *, exact: bool) -> str:
    """How far two results are apart, in words; nothing if they agree.

    Without `exact`, rounding is forgiven: a compiler may order sums in another way.

    >>> difference(1.0, 1.0, exact=True), difference(1.0, 3.0, exact=True)
    ('', '1.0 in the plain run, 3.0 when it is run again')
    """
    if plain is None or recomputed is None or isinstance(plain, (str, bytes)):
        same = plain is recomputed or (
            isinstance(plain, (str, bytes)) and plain == recomputed
        )
        return "" if same else f"{plain!r} at first, then {recomputed!r}"
    try:
        a, b = np.asarray(unwrap(plain)), np.asarray(unwrap(recomputed))
    except Exception:  # no arrays: nothing to compare
        return ""
    if a.dtype == object or b.dtype == object:
        return ""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} at first, then {b.dtype}{list(b.shape)}"
    bad = np.asarray((a != b) & ~((a != a) & (b != b)))  # two NaN agree
    if not exact and a.dtype.kind in "fc":
        eps = np.finfo(a.dtype).eps
        scale = np.nanmax(np.abs(a), initial=0.0)
        bad = bad & ~(np.abs(a - b) <= 100 * eps * scale)
    if not bad.any():
        return ""
    where = np.unravel_index(int(np.argmax(bad)), a.shape) if a.shape else ()
    at = f" at {[int(i) for i in where]}" if where else ""
    return f"{a[where]} in the plain run{at}, {b[where]} when it is run again"


def _disagreement(name: str, what: str, words: str, first: str) -> GradsmithError:
    lines = [
        f"gs.checkpoint: {name!r} computes something else when it is run again, so its "
        "gradient is wrong",
        f"  what differs: {what}: {words}",
    ]
    if first:
        lines.append(f"  first at: {first}")
    lines.append(
        "  what to do: let it depend only on its arguments and what it captures; pass "
        "random generators as arguments, and keep counters and files outside"
    )
    return GradsmithError("\n".join(lines))
