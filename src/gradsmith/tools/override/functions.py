"""Python functions, by whomever they are held and called.

A model holds its functions in attributes, closures and tables, where none could be
exchanged. But all of them hold the same object, and that can be given other code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from ...operations.info import name_of, signature_of
from .replacement import replaced
from .scope import Target


def target_of(fn: Any) -> Target | None:
    """A function that was written in Python."""
    if not isinstance(fn, FunctionType):
        return None
    key = ("function", id(fn))
    return Target(key, name_of(fn), shared=(_Rewired(fn, key),), held=fn)


class _Rewired:
    """The context in which a function has our code; equal for the same function."""

    def __init__(self, fn: FunctionType, key: Any) -> None:
        self.fn = fn
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rewired) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __call__(self) -> Any:
        return rewired(self.fn, partial(replaced, self.key, name_of(self.fn)))


# How a framework that rewrites Python wants a function, if it is to run here and now
REWRITTEN: list[Callable[[Any], Any]] = []


def rewritten(fn: Any) -> Any:
    """A function as the frameworks want to run it, which do not look into our code."""
    for rewrite in REWRITTEN:
        fn = rewrite(fn)
    return fn


def _wire(*args: Any, __hook__: Any, **kwargs: Any) -> Any:
    return __hook__(args, kwargs)


def is_rewired(fn: Any) -> bool:
    """Whether a function has our code now."""
    return "__hook__" in (getattr(fn, "__kwdefaults__", None) or ())


@contextmanager
def rewired(fn: FunctionType, around: Any) -> Iterator[None]:
    """Let `around(original, args, kwargs, signature)` answer a function's calls."""
    signature = signature_of(fn)
    original = FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    original.__kwdefaults__ = fn.__kwdefaults__
    vars(original).update(vars(fn))
    before = fn.__code__, fn.__kwdefaults__, vars(fn).get("__signature__")

    def hook(args: Any, kwargs: Any) -> Any:
        return around(rewritten(original), args, kwargs, signature)

    fn.__kwdefaults__ = {"__hook__": hook}
    # New code must name as many captured variables as the function has; it needs none.
    freevars = fn.__code__.co_freevars
    fn.__code__ = _wire.__code__.replace(co_freevars=freevars, co_name=fn.__name__)
    if signature is not None:
        vars(fn)["__signature__"] = signature
    try:
        yield
    finally:
        fn.__code__, fn.__kwdefaults__, own = before
        if own is None:
            vars(fn).pop("__signature__", None)
        else:
            vars(fn)["__signature__"] = own
