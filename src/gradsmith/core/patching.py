"""Other attributes for an object of somebody else's, or other code, for a while."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def patched(obj: Any, **attributes: Any) -> Any:
    """Give an object other attributes for a while, also if an exception ends it."""
    missing = object()
    before = {name: vars(obj).get(name, missing) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(obj, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(obj, name)
            else:
                setattr(obj, name, value)


@contextmanager
def patched_function(fn: FunctionType, call: Callable[..., Any]) -> Iterator[None]:
    """Let `call(original, args, kwargs)` answer a function's calls, whoever holds it.

    Attributes, closures and tables hold the same object, and that gets other code.

    >>> def double(x):
    ...     return 2 * x
    >>> table = {"held": double}
    >>> with patched_function(double, lambda fn, args, kwargs: -fn(*args, **kwargs)):
    ...     table["held"](x=3)
    -6
    """
    original = FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    original.__kwdefaults__ = fn.__kwdefaults__
    vars(original).update(vars(fn))
    # New code must name as many captured variables as the function has; it needs none.
    freevars = fn.__code__.co_freevars
    code = _redirected.__code__.replace(co_freevars=freevars, co_name=fn.__name__)
    before = fn.__kwdefaults__ or {}
    redirect = {"__redirect__": lambda args, kwargs: call(original, args, kwargs)}
    with patched(fn, __signature__=inspect.signature(fn)):
        # Other threads may call it at any time: old and new code find what they need.
        fn.__kwdefaults__ = {**before, **redirect}
        fn.__code__ = code
        try:
            yield
        finally:
            fn.__code__ = original.__code__
            fn.__kwdefaults__ = original.__kwdefaults__


def _redirected(*args: Any, __redirect__: Any, **kwargs: Any) -> Any:
    return __redirect__(args, kwargs)


def is_patched_function(fn: Any) -> bool:
    """Whether a function has other code now."""
    return "__redirect__" in (getattr(fn, "__kwdefaults__", None) or ())
