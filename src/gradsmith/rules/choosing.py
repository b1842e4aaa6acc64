"""Choosing between arrays, element by element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..core.cotangent import Spec, unbroadcast
from ..core.rule import composite, convert, differentiable, index, linear
from .indexing import scatter


# y = x1 where c, else x2
def where_jvp(dx: Any, y: Any, c: Any, x1: Any, x2: Any) -> Any:
    return np.where(c, dx[1], dx[2])


differentiable(
    np.where,
    (
        lambda dy, y, c, x1, x2: None,
        lambda dy, y, c, x1, x2: np.where(c, dy, 0),
        lambda dy, y, c, x1, x2: np.where(c, 0, dy),
    ),
    where_jvp,
    saves="c",
    arrays=3,
)


# y is the first choice whose condition holds, else the default.
def select_vjp(
    dy: Any, y: Any, condlist: Any, choicelist: Any, default: Any = 0
) -> list[Any]:
    left, cotangents = True, []
    for condition in condlist:
        cotangents.append(np.where(np.logical_and(condition, left), dy, 0))
        left = np.logical_and(np.logical_not(condition), left)
    return [*cotangents, np.where(left, dy, 0)]


def select_jvp(
    dx: Any, y: Any, condlist: Any, choicelist: Any, default: Any = 0
) -> Any:
    dx = dx if isinstance(dx, list) else [dx]
    n = len(choicelist)
    return np.select(condlist, dx[:n], dx[n] if len(dx) > n else 0)


differentiable(np.select, select_vjp, select_jvp, arrays=slice(1, 3), list_at=1)


def choose_transpose(
    dy: Any, y: Any, a: Any, choices: Any, out: Any = None, mode: str = "raise"
) -> Any:
    stacked = isinstance(choices, Spec)  # one array, whose first axis is chosen from
    n = choices.shape[0] if stacked else len(choices)
    if mode == "wrap":
        a = np.remainder(a, n)
    elif mode == "clip":
        a = np.clip(a, 0, n - 1)
    cotangents = [np.where(np.equal(a, i), dy, 0) for i in range(n)]
    if not stacked:
        return cotangents
    return np.stack([unbroadcast(dx, choices.shape[1:]) for dx in cotangents])


linear(np.choose, choose_transpose, arrays=slice(1, 2), list_at=1)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> Any:
    conditions = _conditions(condlist, np.ndim(x))
    if len(funclist) == len(conditions) + 1:
        conditions.append(np.logical_not(reduce(np.logical_or, conditions)))
    elif len(funclist) != len(conditions):
        n = len(conditions)
        raise ValueError(
            f"with {n} condition(s), either {n} or {n + 1} functions are expected"
        )
    y = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        y = _replaced(y, condition, x, function, args, kwargs)
    return y


def _conditions(condlist: Any, ndim: int) -> list[Any]:
    """A list of conditions, also if one was given without its list."""
    single = np.ndim(condlist) == 0 or (ndim > 0 and np.ndim(condlist[0]) == 0)
    return [convert(c, bool) for c in ([condlist] if single else condlist)]


def _replaced(
    y: Any, condition: Any, x: Any, function: Any, args: Any, kwargs: Any
) -> Any:
    """y, with a function of x where the condition holds."""
    chosen = index(x, condition)
    if callable(function):
        if not chosen.size:
            return y
        function = function(chosen, *args, **kwargs)
    values = np.broadcast_to(convert(function, x.dtype), chosen.shape)
    mask = np.reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
    return np.where(mask, scatter(values, condition, x.shape), y)


composite(np.piecewise, piecewise, lists=True)
