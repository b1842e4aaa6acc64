"""Trial runs: what a function returns, found out by running it on made-up values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import trees
from ..core.caches import remember
from ..core.cotangent import Spec, spec_of
from ..core.errors import GradsmithError
from ..core.specs import AnySpec

_SAY_THEM = "gs.python_op(spec=lambda x: gs.spec(x.shape, x.dtype))"


_SIZES = (8, 16)  # of open axes: what bodies take that want even ones, or powers of 2


def specs_by_trial(
    fn: Callable[[Sequence[Any]], Any], specs: Sequence[Spec], name: str
) -> Any:
    """The specs of what a function returns, in its structure.

    If an axis is open, two sizes of it are tried: where what is returned differs, it
    is open too. If its size is a symbol of a compiler, more are tried: what is returned
    is expressed in the symbols, or they become the numbers that they are now.
    """
    if _symbols(specs):
        try:
            return _symbolic_specs(fn, specs)
        except Exception:  # made-up sizes are not what the function is for
            specs = [Spec(tuple(map(int, s.shape)), s.dtype) for s in specs]
    if not _are_open(specs):
        return trees.map(spec_of, fn(_made_up(specs)))
    if any(spec.shape is None for spec in specs):
        raise GradsmithError(
            f"a trial run can't find the shapes that {name} returns, since the number "
            f"of an argument's axes is unknown. Give them: {_SAY_THEM}; or compile for "
            "arguments with a known number of axes."
        )
    small, large = (
        trees.map(spec_of, fn(_made_up([_closed(spec, n) for spec in specs])))
        for n in _SIZES
    )
    pairs = zip(trees.leaves(small), trees.leaves(large), strict=True)
    return trees.unflatten(small, [_common(a, b) for a, b in pairs])


def _are_open(specs: Sequence[Spec]) -> bool:
    return any(spec.shape is None or None in spec.shape for spec in specs)


def _closed(spec: Spec, size: int) -> Spec:
    return Spec(tuple(size if n is None else n for n in spec.shape), spec.dtype)


def _common(a: Spec, b: Spec) -> Spec:
    """What two trials agree on."""
    shape: Any = None
    if len(a.shape) == len(b.shape):
        pairs = zip(a.shape, b.shape, strict=True)
        shape = tuple(m if m == n else None for m, n in pairs)
    return Spec(shape, a.dtype)


# --- sizes that are symbols of a compiler --------------------------------------------

_BASE, _STEP, _OTHERS = 8, 4, (7, 2, 33)


def _symbols(specs: Sequence[Spec]) -> dict[str, Any]:
    """The symbols among the sizes of axes, by how they are written."""
    sizes = [n for spec in specs for n in spec.shape or ()]
    return {str(n): n for n in sizes if n is not None and not isinstance(n, int)}


def _symbolic_specs(fn: Callable[[Sequence[Any]], Any], specs: Sequence[Spec]) -> Any:
    """The specs of what a function returns, in terms of the symbols in its arguments'.

    A size is a sum of multiples of symbols or a multiple of their product. Which one is
    seen from trials in which one symbol at a time is larger. Others, in which all are
    different, odd, small (`x[:5]`) or larger, must confirm it; small and larger sizes
    may be refused by the function.
    """
    symbols = _symbols(specs)

    def tried(sizes: dict[str, int]) -> Any:
        shapes = [
            tuple(n if isinstance(n, int) else sizes[str(n)] for n in spec.shape)
            for spec in specs
        ]
        pairs = zip(shapes, specs, strict=True)
        return trees.map(
            spec_of, fn(_made_up([Spec(shape, spec.dtype) for shape, spec in pairs]))
        )

    base = dict.fromkeys(symbols, _BASE)
    points = [base, *({**base, name: _BASE + _STEP} for name in symbols)]
    trials = [tried(sizes) for sizes in points]
    for other in _OTHERS:
        sizes = {name: other + 2 * k for k, name in enumerate(symbols)}
        try:
            trials.append(tried(sizes))
            points.append(sizes)
        except Exception:
            if other == _OTHERS[0]:
                raise
    columns = zip(*map(trees.leaves, trials), strict=True)
    known = [[*symbols.values()], *([*sizes.values()] for sizes in points)]
    return trees.unflatten(trials[0], [_symbolic(column, known) for column in columns])


def _symbolic(trials: Sequence[Spec], known: list[list[Any]]) -> Spec:
    if len({spec.dtype for spec in trials}) > 1:
        raise ValueError("the dtype depends on the sizes")
    sizes = zip(*(spec.shape for spec in trials), strict=True)
    return Spec(tuple(_expressed(each, known) for each in sizes), trials[0].dtype)


def _expressed(sizes: Sequence[int], known: list[list[Any]]) -> Any:
    """The size of an axis in terms of symbols, from the sizes that were tried.

    `known` are the symbols and what stood for them in each trial.

    >>> known = [[100, 7], [8, 8], [12, 8], [8, 12], [7, 9]]
    >>> _expressed((17, 21, 21, 17), known), _expressed((64, 96, 96, 63), known)
    (108, 700)
    """
    symbols, *points = known
    first, *moved = sizes[: len(symbols) + 1]
    slopes = [(size - first) // _STEP for size in moved]
    rest = first - _BASE * sum(slopes)
    used = [i for i, slope in enumerate(slopes) if slope]
    factor = first // _BASE ** len(used)

    def total(values: list[Any]) -> Any:
        return sum((slopes[i] * values[i] for i in used), rest)

    def product(values: list[Any]) -> Any:
        return prod((values[i] for i in used), start=factor)

    for expression in (total, product):
        if all(n == expression(at) for n, at in zip(sizes, points, strict=True)):
            return expression(symbols)
    raise ValueError("no sum and no product")


def _made_up(specs: Sequence[Spec]) -> list[np.ndarray]:
    """Arrays to try a function with: positive values, all different.

    These are in most domains, and most matrices of them regular. Whole numbers are
    zeros, the index that every array has.
    """
    random = np.random.default_rng(0)
    return [
        np.asarray(0.5 + random.random(spec.shape), spec.dtype)
        if spec.dtype.kind in "fcV"
        else np.full(spec.shape, spec.dtype.kind == "b").astype(spec.dtype)
        for spec in specs
    ]


def try_rule(flat: Callable[..., Any], specs: Sequence[Spec]) -> None:
    """Let a rule that we refuse be seen before anything is compiled."""
    # Nothing says which of the open axes go together
    if _are_open(specs) or _symbols(specs):
        return
    try:
        flat(*_made_up(specs))
    except GradsmithError:
        raise
    except Exception:
        # Made-up values are not what the rule is for. If it fails with those that it is
        # for, its error is raised then.
        return


class Trials:
    """What trial runs of one operation found out, by the kind of call."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def once(self, what: Hashable, call: Any, run: Callable[[], Any], name: str) -> Any:
        """What `run` returns; it is run once for calls that differ in values alone."""
        key = (what, _kind_of(call))
        try:
            hash(key)
        except TypeError:  # a static argument that can't be a key
            return _tried(run, name)
        try:
            return self._found[key]
        except KeyError:
            pass  # what `run` raises has no other cause
        return remember(self._found, key, _tried(run, name))


def _kind_of(call: Any) -> Hashable:
    """Static arguments by their values, arrays by their specs."""
    return tuple(
        (name, (x.shape, str(x.dtype)) if isinstance(x, AnySpec) else (type(x), x))
        for name, x in trees.leaves_with_names(call.values)
    )


def _tried(run: Callable[[], Any], name: str) -> Any:
    try:
        return run()
    except GradsmithError:
        raise
    except Exception as error:
        error.add_note(
            f"raised by a trial run of {name} on made-up values, which finds the "
            "shapes and dtypes that it returns. If it can't take such values, give "
            f"them: {_SAY_THEM}."
        )
        raise
