"""What is seen: operations, and those of them whose results are not finite."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...core.places import Place
from .values import Value

SUM = "the sum of the gradients of a value that is used more than once"


class Seen(NamedTuple):
    """An array that went in or came out, and the key by which it is known again."""

    name: str
    x: Any
    key: Hashable


def seen(xs: Iterable[Any], key: Callable[[Any], Hashable], name: str) -> list[Seen]:
    """Arrays by one name, with numbers if there are several.

    >>> [each.name for each in seen([1.0, 2.0], id, "x")]
    ['x1', 'x2']
    """
    xs = list(xs)
    names = [name] if len(xs) == 1 else [f"{name}{i + 1}" for i in range(len(xs))]
    return [Seen(n, x, key(x)) for n, x in zip(names, xs, strict=True)]


@dataclass
class Call:
    """One operation, as a framework saw it."""

    operation: str
    phase: str  # "forward", "backward"
    place: Place | None
    ins: Sequence[Seen]
    outs: Sequence[Seen]
    elementwise: bool = False  # y[i] depends on x[i] alone
    selects: bool = False  # takes from one branch or another, like where
    whole: bool = False  # the calls since `enter` were made inside of it

    def back(self, ins: Sequence[Seen], outs: Sequence[Seen]) -> Call:
        """The gradient of this call, from what and to what."""
        return replace(self, phase="backward", ins=ins, outs=outs, whole=True)


@dataclass
class Step:
    """An operation whose result was NaN or inf, and where it had that from."""

    operation: str
    phase: str  # "forward", "backward", "argument", "constant"
    place: Place | None
    kind: str  # "nan" or "inf"
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    parent: Step | None = None
    masked: bool = False  # a `where` had taken the other branch
    mask: Place | None = None  # and where that is
    chooser: str = ""  # and what it is called
    zero_upstream: bool = False  # the gradient that came in is 0

    def chain(self) -> list[Step]:
        """All steps on the way here, the first one first."""
        steps: list[Step] = [self]
        while steps[-1].parent is not None:
            steps.append(steps[-1].parent)
        return steps[::-1]


class Result(NamedTuple):
    """A value or a gradient that is not finite, and the last step on its way."""

    name: str
    kind: str
    step: Step | None
