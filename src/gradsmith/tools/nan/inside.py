"""Inside of operations of ours: the bodies and rules that run on NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core import hooks
from ...core.arrays import NUMPY, common_framework
from ...core.places import place_here
from ...core.tensor import unwrap
from .arrays import plain, telling, telling_class
from .steps import Call, seen
from .watch import Watch


def key(x: Any) -> Any:
    """By which an array is known again, also as a view of it."""
    x = unwrap(x)
    if isinstance(x, np.ndarray):
        return (x.__array_interface__["data"][0], x.shape)
    return id(x)


@contextmanager
def looking_inside(watch: Watch, phase: Callable[[], str]) -> Iterator[None]:
    """Run the bodies and the rules of operations on arrays that tell.

    `phase` is that which is running.
    """

    def told(name: str, xs: Sequence[Any], ys: Sequence[Any], each: bool) -> None:
        numbers = [x for x in xs if isinstance(x, (np.ndarray, np.generic, float))]
        ins, outs = seen(numbers, key, "x"), seen(ys, key, "y")
        watch.saw(Call(name, phase(), place_here(), ins, outs, elementwise=each))

    cls = telling_class(told)

    def body(proceed: Any, operation: Any, bound: Any) -> Any:
        if common_framework(bound.leaves, operation.name) != NUMPY:
            return proceed(operation, bound)
        watch.enter()
        leaves = [telling(x, cls) for x in bound.leaves]
        outputs, grad = proceed(operation, bound.with_leaves(leaves))
        return plain(outputs), grad

    def rule(
        proceed: Any, call: Any, what: str, fn: Any, args: Any, kwargs: Any
    ) -> Any:
        args = [telling(x, cls) for x in args]
        return plain(proceed(call, what, fn, args, telling(kwargs, cls)))

    with hooks.BODY.wrapped(body), hooks.RULE.wrapped(rule):
        yield
