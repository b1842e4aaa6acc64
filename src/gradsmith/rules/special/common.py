"""What the rules of several families of special functions share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import inf
from typing import Any

import numpy as np

from ...core.errors import UnsupportedOperationError
from ...core.rule import RULES, elementwise, name_of
from ..arithmetic import finite, slope
from ..wide import in_float64


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


def special(fn: Any, *partials: Any, **facts: Any) -> None:
    """Declare a function of corresponding elements as `elementwise` does.

    Its partials see arrays only, in float64 if they are given in less: SciPy computes
    in float64 anyway, and many partials cancel or magnify the rounding of an argument.
    For the same reason they take y, which is rounded, only if their error is not more
    than its. Where they are infinite or undefined they count as 0; those of a single
    real argument that overflow inside its domain are infinite.
    """
    defined = _inside(**facts) if len(partials) == 1 else None
    tamed = [_tamed(p, defined) if callable(p) else p for p in partials]
    elementwise(fn, *tamed, **facts)


def _inside(
    domain: tuple[float, float] = (-inf, inf), kinks: tuple[float, ...] = (), **_: Any
) -> Any:
    """Whether x is inside a domain, and no kink."""
    low, high = domain

    def defined(x: Any) -> Any:
        ok = (x > low) & (x < high)
        for kink in kinks:
            ok = ok & (x != kink)
        return ok

    return defined


def like(fn: Any, other: Any) -> None:
    """Declare a function that is the same as another one, which has a rule."""
    rule: Any = RULES[other]
    special(fn, *rule.partials, domain=rule.domain, kinks=rule.kinks, note=rule.note)


def precise(y: Any, fn: Any, *xs: Any) -> Any:
    """y = fn(*xs) with all its digits, for a partial in float64: anew if it needs be.

    A y that came from float32 is rounded, which is no harm unless it is subnormal or
    has overflown.
    """
    if type(y) is np.ndarray and y.size:
        size = np.abs(y)
        if np.min(size) >= 2.0**-126 and np.max(size) < inf:
            return y
    return fn(*xs)


def _tamed(partial: Callable[..., Any], defined: Any) -> Callable[..., Any]:
    wide = in_float64(partial)
    names = signature(partial).parameters
    at = list(names).index("x") if defined and "x" in names else None

    @wraps(partial)
    def tamed(*args: Any) -> Any:
        dtypes = [x.dtype for x in args if hasattr(x, "dtype")]
        p = wide(*[_as_array(x, dtypes) for x in args])
        if at is not None and dtypes and p.dtype.kind == "f":
            return slope(p, defined, args[at])
        return finite(p) if dtypes else np.nan_to_num(p, posinf=0, neginf=0).item()

    return tamed


def _as_array(x: Any, dtypes: list[Any]) -> Any:
    """Return an array; a number does not promote the others."""
    if hasattr(x, "dtype"):
        return x
    real = [np.dtype(d.char.lower()) if d.kind == "c" else d for d in dtypes]
    return np.asarray(x, np.result_type(*(real or [float]), x))
