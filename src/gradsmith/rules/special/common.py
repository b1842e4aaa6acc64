"""What the rules of several families of special functions share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..._errors import UnsupportedOperationError
from ..._rule import RULES, elementwise, name_of
from ..arithmetic import guard


def refused(fn: Any, argument: str) -> Any:
    """The partial derivative for an argument that has no formula: it raises."""

    def partial(x1: Any) -> Any:
        name = name_of(fn)
        raise UnsupportedOperationError(
            f"{name} can't be differentiated with respect to its argument {argument}, "
            f"which is being differentiated. Pass gs.stop_gradient({argument}) if it "
            "should count as a constant."
        )

    partial.refused = True  # pyright: ignore[reportFunctionMemberAccess]
    return partial


def like(fn: Any, other: Any) -> None:
    """Declare a function that is the same as another one, which has a rule."""
    rule = RULES[other]
    elementwise(
        fn, *rule.partials, domain=rule.domain, kinks=rule.kinks, note=rule.note
    )


def several(fn: Any, *partials: Any, **facts: Any) -> None:
    """Declare a function of several arguments, of which some may be Python numbers."""
    elementwise(fn, *[partial and _of_arrays(partial) for partial in partials], **facts)


def _of_arrays(partial: Callable[..., Any]) -> Callable[..., Any]:
    """Let a partial see arrays only, of a dtype that does not promote the others."""

    @wraps(partial)
    def with_arrays(*args: Any) -> Any:
        dtypes = [x.dtype for x in args if hasattr(x, "dtype")]
        if len(dtypes) == len(args):
            return partial(*args)
        p = partial(*[_as_array(x, dtypes or [np.dtype(float)]) for x in args])
        return p if dtypes else p.item()

    return with_arrays


def _as_array(x: Any, dtypes: list[Any]) -> Any:
    if hasattr(x, "dtype"):
        return x
    real = [np.dtype(d.char.lower()) if d.kind == "c" else d for d in dtypes]
    return np.asarray(x, np.result_type(*real, np.float16, x))


def finite(p: Any) -> Any:
    """p where it is finite, else 0."""
    return guard(p, np.isfinite(p))
