"""Transformations of a framework, and the function that they are applied to.

A transformation is one way in which users differentiate, compile or map a function.
`survives` runs an operation through each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

GRADIENT = "gradient"  # the gradient of phi at t
TANGENT = "tangent"  # its derivative along dt
BATCH = "batch"  # its gradient at each of the points
SECOND = "second"  # the second derivative times dt
KINDS: tuple[str, ...] = (GRADIENT, TANGENT, BATCH, SECOND)


class ScalarFunction(Protocol):
    """A function of one array, with an operation somewhere inside of it."""

    @property
    def t(self) -> Any:
        """Where it is differentiated."""
        ...

    @property
    def dt(self) -> Any:
        """A direction, of the shape of t."""
        ...

    @property
    def points(self) -> Any:
        """Several t, stacked along the first axis."""
        ...

    @property
    def arrays(self) -> list[Any]:
        """All other arrays that it uses, and what else it is called with."""
        ...

    @property
    def dtype(self) -> Any:
        """That of its value."""
        ...

    def phi(self, t: Any) -> Any:
        """Its value, a scalar."""
        ...

    def vector(self, t: Any) -> Any:
        """The terms whose sum is phi."""
        ...

    def at(self, t: Any) -> ScalarFunction:
        """The same, to be differentiated at another t."""
        ...

    def with_arrays(self, arrays: list[Any]) -> ScalarFunction:
        """The same with others in place of `arrays`."""
        ...


@dataclass(frozen=True)
class Row:
    """A transformation: its name, the kind of its result, and how to run it.

    `run` returns an array of the kind's meaning, or None if the framework gives none;
    it may be `Noted`. What the framework refuses raises.
    """

    name: str
    kind: str
    run: Callable[[Any], Any]  # of a ScalarFunction
    keyword: bool = False  # the operation is called by keywords
    forward: bool = False  # decided by a forward rule, where there is one
    full: bool = False  # a whole matrix is computed: not for large arguments


@dataclass(frozen=True)
class Noted:
    """A result with something to say on how it was found."""

    result: Any
    note: str
