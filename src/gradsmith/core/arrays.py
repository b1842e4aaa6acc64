"""Whose arrays these are: NumPy's (with the engine's tensors) or a framework's.

No framework is named here. `gradsmith.frameworks` registers a row for each; one whose
array we are given is imported already, so nothing is imported to find out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .caches import remember
from .cotangent import Spec
from .errors import GradsmithError
from .symbolic import Symbolic
from .tape import Traced


class Known(Protocol):
    """What is asked of a framework to find out whether an array is one of its own."""

    name: str  # by which users give framework=
    title: str  # how messages call it
    roots: tuple[str, ...]  # the packages whose classes its arrays are of
    packages: tuple[str, ...]  # all that it consists of, these included
    example: str  # how an array of another framework is converted into one of its own
    generated: str  # how the names of files begin into which it writes Python code
    derivatives: str  # how users differentiate a function of its arrays

    def owns(self, x: Any) -> bool:
        """Whether an object of one of its classes counts as an array."""
        ...


class Wrapper(Protocol):
    """A package whose variables have an array of some framework inside."""

    root: str

    def framework_of(self, x: Any) -> str | None:
        """The framework of the array inside; None if x is no such variable."""
        ...

    def inside(self, x: Any, caller: str) -> Any:
        """The array, or an error if x has no values."""
        ...


NUMPY = "numpy"
FRAMEWORKS: dict[str, Any] = {}  # by name, in the order of their rows
_by_root: dict[str, Known] = {}
_wrappers: dict[str, Wrapper] = {}
_known: dict[type, str | None] = {}
_wrapping: dict[
    type, Wrapper
] = {}  # those of the known types that have an array inside

# How a framework runs an operation, by the type of the first argument, if the call is
# of the usual kind; else it returns NotImplemented, before the body has run.
QUICK: dict[type, Callable[[Any, tuple[Any, ...]], Any]] = {}

# What `gradsmith.numpy` computes with, by the type of an argument, as far as is known.
KERNELS: dict[type, Any] = {}


def register(framework: Known) -> None:
    """Let a framework's arrays be known."""
    FRAMEWORKS[framework.name] = framework
    for root in framework.roots:
        _by_root[root] = framework
    _known.clear()


def unregister(framework: Known) -> None:
    """Forget a framework."""
    del FRAMEWORKS[framework.name]
    for root in framework.roots:
        del _by_root[root]
    _known.clear()


def register_wrapper(wrapper: Wrapper) -> None:
    """Let the variables of a package that runs on several frameworks be known."""
    _wrappers[wrapper.root] = wrapper


def packages() -> set[str]:
    """The packages that frameworks consist of: not what a user wrote.

    >>> "numpy" in packages()
    True
    """
    known = {name for each in FRAMEWORKS.values() for name in each.packages}
    return known.union(_wrappers)


def generated_files() -> tuple[str, ...]:
    """How the names of files begin into which frameworks write Python code."""
    known = [each.generated for each in FRAMEWORKS.values()]
    return tuple(filter(None, known))


def title_of(name: str) -> str:
    """How messages call a framework.

    >>> title_of("numpy")
    'NumPy'
    """
    return FRAMEWORKS[name].title


def framework_of(x: Any) -> str | None:
    """The framework that an array belongs to; None for what is no array.

    >>> framework_of(np.ones(3)), framework_of(3.0)
    ('numpy', None)
    """
    cls = type(x)
    try:
        return _known[cls]
    except KeyError:
        return remember(_known, cls, _find(x))


def _find(x: Any) -> str | None:
    if isinstance(x, (Traced, np.ndarray, Symbolic)):
        return NUMPY
    for base in type(x).__mro__:  # a user's subclass is from another module
        root = base.__module__.partition(".")[0]
        if root not in sys.modules:
            continue
        if root in _by_root:
            framework = _by_root[root]
            return framework.name if framework.owns(x) else None
        if root in _wrappers:
            name = _wrappers[root].framework_of(x)
            if name is not None:
                _wrapping[type(x)] = _wrappers[root]
            return name if name in FRAMEWORKS else None
    return None


def is_array(x: Any) -> bool:
    """Whether an argument counts as an array; all else, numbers too, is static."""
    return framework_of(x) is not None


def unwrapped(arrays: Sequence[Any], caller: str) -> Sequence[Any]:
    """The same arrays; of variables that wrap one, what is inside."""
    if _wrapping and any(type(x) in _wrapping for x in arrays):
        return [
            _wrapping[type(x)].inside(x, caller) if type(x) in _wrapping else x
            for x in arrays
        ]
    return arrays


def common_framework(arrays: Iterable[Any], caller: str) -> str:
    """The framework that all of these arrays belong to; `caller` is who was given them.

    >>> common_framework([np.ones(3), np.zeros(2)], "operation 'add'")
    'numpy'
    """
    first: Any = None
    name = None
    for x in arrays:
        found = framework_of(x)
        if name is None:
            first, name = x, found
        elif found != name:
            raise _mixed(caller, first, x)
    return name or NUMPY


def _mixed(caller: str, x: Any, other: Any) -> GradsmithError:
    mine, others = (
        f"a {title_of(framework_of(each) or NUMPY)} array ({type(each).__name__})"
        for each in (x, other)
    )
    *conversions, last = [framework.example for framework in FRAMEWORKS.values()]
    return GradsmithError(
        f"{caller} was given arrays of two frameworks: {mine} and {others}\n"
        "  expected: all of one framework, since no derivative passes from one into "
        "another\n"
        f"  what to do: convert one of them first: {', '.join(conversions)} or {last}"
    )


def require_plain(x: Any, what: str) -> None:
    """Raise if `what` is an array of another framework, which the engine can't follow.

    >>> require_plain(np.ones(3), "x")
    """
    name = framework_of(x)
    if name is None or name == NUMPY:
        return
    framework = FRAMEWORKS[name]
    raise GradsmithError(
        f"{what} is a {framework.title} array ({type(x).__name__}), and gs.grad, the "
        "tape and their like differentiate NumPy code\n"
        f"  what to do: differentiate by {framework.derivatives}, which honour the "
        "rules of operations too; or convert it, and the code, to NumPy: "
        f"{FRAMEWORKS[NUMPY].example}"
    )


def described(x: Any) -> Spec | None:
    """The spec of an array of any framework; None for what is no array."""
    name = framework_of(x)
    if name is not None and name != NUMPY:
        return FRAMEWORKS[name].arrays.spec(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return Spec(tuple(x.shape), x.dtype)
    return None


def same_shape(got: Any, expected: Any) -> bool:
    """Whether shapes agree, as far as they are known: a graph may leave axes open."""
    if got is None or expected is None:
        return True
    pairs = zip(got, expected, strict=False)
    return len(got) == len(expected) and all(m == n or None in (m, n) for m, n in pairs)
