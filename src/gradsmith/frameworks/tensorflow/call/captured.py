"""What a body captures: found from its function, or when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import CodeType
from typing import Any

import tensorflow as tf

from ....core.arity import arity_of
from ....core.reach import reached
from ....operations.parameters import Bound
from ..private import add_op_callback, orders_of, remove_op_callback
from .specs import is_floating


def captured_by_closure(fn: Any, bound: Bound) -> list[Any]:
    """Variables and tensors with gradients that a function captures."""
    given = {id(x) for x in bound.leaves}
    return [
        x
        for x in reached(fn, *bound.values, stop=_is_tensor)
        if id(x) not in given and (isinstance(x, tf.Variable) or is_floating(x))
    ]


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (tf.Tensor, tf.Variable))


def followed(captured: Sequence[Any]) -> list[Any]:
    """Those that somebody differentiates, as tensors.

    Of variables only those are among them that a tape does not see when they are read.
    """
    found = []
    for x in captured:
        if isinstance(x, tf.Variable):
            x = None if x.trainable else x.handle
        if x is not None and orders_of([x]):
            found.append(x)
    return found


class Uses:
    """The tensors that eager operations use and did not make, beside the known ones.

    Finds what is hidden from a search, in a ContextVar say.
    """

    def __init__(self, known: Sequence[Any]) -> None:
        # What comes from outside is alive all the time: no result gets its id.
        self._known = {id(x) for x in known}
        self._used: dict[int, Any] = {}

    def __enter__(self) -> Uses:
        add_op_callback(self._see)
        return self

    def __exit__(self, *exception: Any) -> None:
        remove_op_callback(self._see)

    def _see(
        self, kind: str, xs: Any, attrs: Any, ys: Any, op_name: Any = None, graph=None
    ) -> None:
        if graph is None:
            for x in xs:
                if id(x) not in self._known and is_floating(x):
                    self._used[id(x)] = x
            self._known.update(id(y) for y in ys)

    def followed(self) -> list[Any]:
        """Those that somebody differentiates."""
        return [x for x in self._used.values() if orders_of([x])]


def takes_variables(operation: Any) -> bool:
    """Whether its rule takes `variables`, as far as is known before the body runs."""
    if not operation.closure:
        rule = operation.vjp_rule
        return rule is not None and arity_of(rule).variables
    code = getattr(operation.fn, "__code__", None)
    return code is not None and _has_variables(code)


@cache
def _has_variables(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return any("variables" in c.co_varnames or _has_variables(c) for c in inner)
