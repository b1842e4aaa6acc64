"""Surrogates that are declared, inside of a function or model that is checked.

The gradient of the function is not its derivative then, and is not meant to be: it is
the derivative of another function, in which each declared operation is the linear map
that its rule says it is,

    y0 + J (x - x0),    J the transpose of the rule at x0,

about what it was called with at the point of the comparison. Differences are taken of
that, so that a mistake elsewhere shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from ...core import trees
from ...core.arrays import is_array
from ...core.hooks import CALL
from ...operations.info import is_floating
from .problem import Arrays, Problem

Answer = Callable[[Callable[[], Any], Any, Any], Any]


@dataclass(frozen=True)
class DeclaredCall:
    """An operation that was called, with what, and what it returned."""

    operation: Any
    inputs: Any
    outputs: Any


def declared_operations(problem: Problem) -> list[Any]:
    """The declared operations that a function calls, in order.

    Nothing is computed if the framework can do without: JAX would compile each of its
    operations for that.
    """
    found: list[Any] = []

    def note(proceed: Callable[[], Any], operation: Any, inputs: Any) -> Any:
        found.append(operation)
        return proceed()

    with problem.precision(), _answered(note, problem.info.call):
        xs = problem.to_native(problem.xs)
        with suppress(Exception):  # it looks at values
            if problem.calculus.abstract(problem.native, xs):
                return found
        found.clear()
        problem.native(xs)
    return found


def declared_calls(problem: Problem, xs: Arrays) -> list[DeclaredCall]:
    """The calls of declared operations in one call of a function, in order."""
    found: list[DeclaredCall] = []

    def note(proceed: Callable[[], Any], operation: Any, inputs: Any) -> Any:
        outputs = proceed()
        found.append(DeclaredCall(operation, inputs, outputs))
        return outputs

    with problem.precision(), _answered(note, problem.info.call):
        problem.native(problem.to_native(xs))
    return found


def factored(problem: Problem, xs: Arrays) -> Problem:
    """The function in which declared operations are linear maps about xs."""
    calls, calculus = declared_calls(problem, xs), problem.calculus

    def call(*args: Any, **kwargs: Any) -> Any:
        left = iter(calls)

        def linear(proceed: Callable[[], Any], operation: Any, inputs: Any) -> Any:
            about = next(left, None)
            if about is None or about.operation is not operation:
                raise ValueError("another operation is called than at the point")
            return _linear(calculus, about, inputs)

        with _answered(linear, problem.info.call):
            return problem.call(*args, **kwargs)

    return replace(problem, call=call)


def _linear(calculus: Any, about: DeclaredCall, inputs: Any) -> Any:
    """What the operation returned, and how far its rule says that it moves."""
    at = [x for x in trees.leaves(about.inputs) if _is_moved(x)]
    now = [x for x in trees.leaves(inputs) if _is_moved(x)]

    def run(xs: Any) -> list[Any]:
        given = iter(xs)
        args, kwargs = trees.map(
            lambda x: next(given) if _is_moved(x) else x, about.inputs
        )
        ys = about.operation(*args, **kwargs)
        return [y for y in trees.leaves(ys) if _is_moved(y)]

    along = [b - a for a, b in zip(at, now, strict=True)]
    moved = iter(calculus.jvp(run, at, along, nested=True)[1])
    return trees.map(lambda y: y + next(moved) if _is_moved(y) else y, about.outputs)


def _is_moved(x: Any) -> bool:
    return is_array(x) and is_floating(x)


@contextmanager
def _answered(answer: Answer, itself: Any) -> Iterator[None]:
    """Let calls of declared operations be answered, those of this thread.

    Not those inside of another operation, which has a rule of its own.
    """
    owner, inside = threading.get_ident(), [False]

    def wrapper(proceed: Any, operation: Any, args: Any, kwargs: Any) -> Any:
        if inside[0] or threading.get_ident() != owner:
            return proceed(operation, args, kwargs)
        inside[0] = True
        try:
            run = lambda: proceed(operation, args, kwargs)
            plain = operation.surrogate is None and operation.linear
            if plain or operation is itself:
                return run()
            return answer(run, operation, (args, kwargs))
        finally:
            inside[0] = False

    with CALL.wrapped(wrapper):
        yield
