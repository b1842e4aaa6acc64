"""Inside of operations of ours: the bodies and rules that run on NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.tensor import unwrap
from ...frameworks.numpy import call as adapter
from ...operations import engine_rule, python_callbacks
from ...operations.application import Application
from ...operations.info import replaced
from .arrays import plain, telling, telling_class
from .places import place_here
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
    run_body, call_rule = adapter.run_body, Application.call_rule

    def told(name: str, xs: Sequence[Any], ys: Sequence[Any], each: bool) -> None:
        numbers = [x for x in xs if isinstance(x, (np.ndarray, np.generic, float))]
        ins, outs = seen(numbers, key, "x"), seen(ys, key, "y")
        watch.saw(Call(name, phase(), place_here(), ins, outs, elementwise=each))

    cls = telling_class(told)

    def body(operation: Any, bound: Any) -> Any:
        watch.enter()
        leaves = [telling(x, cls) for x in bound.leaves]
        outputs, grad = run_body(operation, bound.with_leaves(leaves))
        return plain(outputs), grad

    def rule(self: Any, what: str, fn: Any, args: Any, kwargs: Any) -> Any:
        args = [telling(x, cls) for x in args]
        return plain(call_rule(self, what, fn, args, telling(kwargs, cls)))

    with (
        replaced(adapter, run_body=body),
        replaced(engine_rule, run_body=body),
        replaced(python_callbacks, run_body=body),
        replaced(Application, call_rule=rule),
    ):
        yield
