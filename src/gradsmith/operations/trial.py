"""Trial runs: what a function returns, found out by running it on made-up values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..core import trees
from ..core.cotangent import Spec, spec_of
from ..core.errors import GradsmithError

_SAY_THEM = "gs.python_op(spec=lambda x: gs.spec(x.shape, x.dtype))"


_SIZES = (8, 16)  # of open axes: what bodies take that want even ones, or powers of 2


def specs_by_trial(
    fn: Callable[[Sequence[Any]], Any], specs: Sequence[Spec], name: str
) -> Any:
    """The specs of what a function returns, in its structure.

    If an axis is open, two sizes of it are tried: where what is returned differs, it
    is open too.
    """
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
    if _are_open(specs):  # nothing says which of the open axes go together
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
        if key not in self._found:
            self._found[key] = _tried(run, name)
        return self._found[key]


def _kind_of(call: Any) -> Hashable:
    """Static arguments by their values, arrays by their specs."""
    return tuple(
        (name, (x.shape, str(x.dtype)) if isinstance(x, Spec) else (type(x), x))
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
