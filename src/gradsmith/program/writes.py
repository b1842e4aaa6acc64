"""Writes into the arrays of a traced function: `x += y`, `x[key] = y`, `out=x`.

A program has no writes. Each becomes a step that computes the whole array as it is
afterwards, and the symbol stands for that from then on. So do all symbols that share
its memory, as NumPy's views do: a write into a view is one into what it is a view of,
whose other views are taken again.

Some functions return a view or a copy, by the layout of memory, which a symbol does not
have. What may share memory with an array that was written is refused when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ..core.places import place_here
from ..core.rule import index
from ..core.symbolic import Symbolic
from ..core.tape import state
from .code import PERMUTED, makes_new, permutation
from .graph import Step, changed, setitem
from .refusals import refuse

if TYPE_CHECKING:
    from .symbols import Symbol

# NumPy's functions that change their first argument, and return nothing
CHANGING = {
    np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask,
}  # fmt: skip
NEW_ARRAY = "make a new array: x = x + y instead of x += y, or np.where(mask, new, x)"
NEW_BEGINNING = (
    "begin with np.zeros_like(x, shape=...) of a traced array, in place of np.zeros; "
    "or make a new array: a = a + x"
)
_COPY = "copy it before the change: x.reshape(-1).copy()"


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """How a symbol lies in the memory of others, or may lie there.

    `take(x)` is the view of what x stands for now, and `put(x, new)` is x after `new`
    was written into the view; both are None where nobody knows.
    """

    of: tuple[Symbol, ...]
    take: Callable[[Symbol], Symbol] | None = None
    put: Callable[[Symbol, Symbol], Any] | None = None
    key: Any = None  # of an index


def link(y: Symbol, view: View) -> None:
    """Take note that y is a view."""
    y.view = view
    for x in view.of:
        x.views.append(ref(y))


def view_of(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], y: Symbol
) -> View | None:
    """How the result of a call lies in the memory of its arguments."""
    xs = tuple(symbols_in((args, kwargs)))
    if not xs or y.is_number or _is_new(fn, args):
        return None
    again = lambda x: x.trace.call(fn, (x, *args[1:]), kwargs)
    if xs[0] is not args[0]:
        return View(xs)
    if fn is index:
        put = lambda x, new: x.trace.call(changed, (setitem, x, args[1], new), {})
        return View(xs, again, put, args[1])
    if fn in PERMUTED:
        axes = permutation(Step(fn, args, kwargs, ()), xs[0].spec)
        back = tuple(map(axes.index, range(len(axes))))
        return View(xs, again, lambda x, new: np.transpose(new, back))
    if fn in (np.expand_dims, np.squeeze):
        return View(xs, again, lambda x, new: np.reshape(new, x.shape))
    return View(xs)


def symbols_in(x: Any) -> Iterator[Symbol]:
    """The symbols among arguments, also within lists, tuples and dicts."""
    if isinstance(x, Symbolic):
        yield x  # type: ignore[misc]
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from symbols_in(part)
    elif isinstance(x, dict):
        yield from symbols_in([*x.values()])


def _is_new(fn: Any, args: tuple[Any, ...]) -> bool:
    if isinstance(fn, np.ufunc) or isinstance(getattr(fn, "__self__", None), np.ufunc):
        return True
    if fn is not index:
        return makes_new(fn)
    key = args[1]
    parts = key if isinstance(key, tuple) else (key,)
    return not all(map(_is_basic, parts)) or _has_flag(parts)


def _is_basic(part: Any) -> bool:
    """Whether it takes a view, as a whole number does and an array of one does not."""
    if isinstance(part, Symbolic):
        return part.is_number and part.dtype.kind in "iu"  # type: ignore[attr-defined]
    return isinstance(part, _BASIC)


_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


def _has_flag(parts: Sequence[Any]) -> bool:
    return any(isinstance(part, (bool, np.bool_)) for part in parts)


def write(x: Symbol, new: Symbol) -> None:
    """Let x stand for `new` from now on, and so all that shares its memory."""
    require_known(x)
    _require_writable(x)
    x.trace.writes = True
    written = None
    while True:
        x.spec, x.overflows = new.spec, new.overflows
        _take_again(x, written)
        view = x.view
        if view is None:
            return
        if view.put is None:  # it may be a copy
            _lose(y for each in _above(x) if each is not x for y in _below(each, x))
            x.view = None
            return
        written, x = x, view.of[0]
        new = view.put(x, new)


def _require_writable(x: Symbol) -> None:
    if any(recorder.saves for recorder in state().recorders):
        refuse(
            "a traced derivative changes an array that a rule may have saved",
            NEW_ARRAY,
            why="",
        )
    if any(each.is_argument for each in _above(x)):
        refuse(
            "a traced function changes an argument in place, or a view of one: the "
            "array of the caller",
            f"change a copy: x = x.copy(); or {NEW_ARRAY}",
            why="",
        )
    if x.is_number:
        raise TypeError(
            "one of NumPy's numbers is written into, and only an array can be"
        )


def require_known(x: Symbol) -> None:
    """Refuse an array that nobody knows after a write into another one."""
    if x.lost:
        refuse(
            "an array is used that may share its memory with one that was changed in "
            f"place ({x.lost}): functions like np.reshape return a view or a copy, by "
            "the layout of memory",
            _COPY,
            why="",
        )


def _take_again(x: Symbol, written: Symbol | None) -> None:
    """Make the views of x again, but the one through which it was written."""
    stack = [x]
    while stack:
        x = stack.pop()
        for y in _views(x):
            if y is written:
                continue
            if y.view is None or y.view.take is None:
                _lose(_below(y, x))
            else:
                y.spec = y.view.take(x).spec
                stack.append(y)


def _lose(xs: Iterable[Symbol]) -> None:
    """What may have been written, or not, can't be used any more."""
    place = str(place_here() or "an unknown line")
    for x in [*xs]:
        x.lost = place


def _above(x: Symbol) -> Iterator[Symbol]:
    """x, and all in whose memory it may lie."""
    return _reached(x, lambda x: x.view.of if x.view else ())


def _below(x: Symbol, without: Symbol) -> Iterator[Symbol]:
    """x and all that may lie in its memory, but for one and what lies in that."""
    return _reached(x, lambda x: [y for y in _views(x) if y is not without])


def _reached(x: Symbol, following: Callable[[Symbol], Iterable[Symbol]]) -> Any:
    seen, stack = set[int](), [x]
    while stack:
        x = stack.pop()
        if id(x) not in seen:
            seen.add(id(x))
            stack.extend(following(x))
            yield x


def _views(x: Symbol) -> list[Symbol]:
    found = [(each, each()) for each in x.views]
    x.views[:] = [each for each, y in found if y is not None]
    return [y for _, y in found if y is not None]
