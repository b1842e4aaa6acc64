"""NumPy's functions on tensors, which operators and methods stand for too."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...core import trees
from ...core.hooks import FUNCTION
from ...core.rule import find_rule, name_of
from ...core.tape import Traced
from .._intercept import ProcessWide, Target, call_intercepted

TARGETS = "a function of NumPy's"
RECOMPILE = ()


def target_of(given: Any) -> Target | None:
    """A function of NumPy's that the engine knows."""
    known = isinstance(given, Hashable) and find_rule(given) is not None
    if not known and not isinstance(given, np.ufunc):
        return None
    return Target(_key(given), name_of(given), (_functions,), given)


def _key(fn: Any) -> Hashable:
    return ("numpy", id(fn))


@ProcessWide
def _functions() -> AbstractContextManager[None]:
    return FUNCTION.wrapped(_call)


def _call(proceed: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    def original(*args: Any, **kwargs: Any) -> Any:
        followed = any(isinstance(x, Traced) for x in trees.leaves((args, kwargs)))
        return proceed(fn, args, kwargs) if followed else fn(*args, **kwargs)

    return call_intercepted(_key(fn), name_of(fn), original, args, kwargs)
