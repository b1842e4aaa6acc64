"""Trial runs: what a function returns, found out by running it on made-up values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from . import _tree
from ._cotangent import Spec
from ._errors import GradsmithError

_SAY_THEM = "gs.python_op(spec=lambda x: gs.spec(x.shape, x.dtype))"


def made_up(specs: Sequence[Spec], name: str) -> list[np.ndarray]:
    """Arrays to try a function with."""
    random = np.random.default_rng(0)
    return [_made_up(spec, random, name) for spec in specs]


def _made_up(spec: Spec, random: np.random.Generator, name: str) -> np.ndarray:
    """Positive values, all different: in most domains, and most matrices regular.

    Whole numbers are zeros, the index that every array has.
    """
    if spec.shape is None or None in spec.shape:
        raise GradsmithError(
            f"the shapes that {name} returns can't be found out by a trial run, since "
            f"that of an argument is open: {spec.shape}. Say them: {_SAY_THEM}; or "
            "compile for fixed shapes."
        )
    if spec.dtype.kind not in "fcV":
        return np.full(spec.shape, spec.dtype.kind == "b").astype(spec.dtype)
    return np.asarray(0.5 + random.random(spec.shape), spec.dtype)


def try_rule(flat: Callable[..., Any], specs: Sequence[Spec]) -> None:
    """Let a rule that we refuse be seen before anything is compiled."""
    if any(spec.shape is None or None in spec.shape for spec in specs):
        return
    try:
        flat(*made_up(specs, "the rule"))
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
        for name, x in _tree.leaves_with_names(call.values)
    )


def _tried(run: Callable[[], Any], name: str) -> Any:
    try:
        return run()
    except GradsmithError:
        raise
    except Exception as error:
        error.add_note(
            f"raised by a trial run of {name} on made-up values, which finds out the "
            "shapes and dtypes that it returns. If it can't take such values, say "
            f"them: {_SAY_THEM}."
        )
        raise
