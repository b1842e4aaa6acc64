"""The graph of a program: values, the steps that compute them, inputs and outputs.

Straight-line code in single assignment form: each value is computed by one step, from
values before it. A step is a call of a NumPy function (or of `index` and `convert`,
which tensors have and NumPy has no function for), so that running a program needs no
interpreter of its own, and a rule written in NumPy calls becomes steps as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.cotangent import Spec
from ..core.places import Place


class Value(Spec):
    """What a step computes: an array of which only shape and dtype are known.

    Values are told apart by identity.
    """

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Step:
    """One call: `outputs = fn(*args, **kwargs)`.

    Values stand among the arguments, also within lists, tuples and slices. All else is
    what the call was given: Python's numbers stay such, since NumPy's promotion tells
    them from arrays. A function of several results has several outputs.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[Value, ...]
    place: Place | None = None  # the line of the user's code

    @property
    def inputs(self) -> list[Value]:
        """The values among the arguments, each time that they occur."""
        return [*values_in((self.args, self.kwargs))]


@dataclass(frozen=True, eq=False)
class Program:
    """A traced definition.

    `constants` are the arrays that it captured, by the value that stands for each.
    `outputs` is the tree that it returned, with values for its arrays.
    """

    name: str
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: Any
    constants: dict[Value, np.ndarray] = field(default_factory=dict)

    @property
    def results(self) -> list[Value]:
        """The values among the outputs."""
        return [*values_in(self.outputs)]

    def __call__(self, *arrays: Any) -> Any:
        """Run the steps, one after the other."""
        if len(arrays) != len(self.inputs):
            raise TypeError(
                f"the program {self.name!r} takes {len(self.inputs)} arrays, "
                f"and was given {len(arrays)}"
            )
        known: dict[Value, Any] = dict(zip(self.inputs, arrays, strict=True))
        known.update(self.constants)
        for step in self.steps:
            args, kwargs = replaced((step.args, step.kwargs), known)
            y = step.fn(*args, **kwargs)
            several = isinstance(y, (tuple, list))
            known.update(zip(step.outputs, y if several else (y,), strict=True))
        return replaced(self.outputs, known)


def values_in(x: Any) -> Iterator[Value]:
    """The values in lists, tuples, dicts and slices."""
    if isinstance(x, Value):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from values_in(part)
    elif isinstance(x, dict):
        yield from values_in([*x.values()])
    elif isinstance(x, slice):
        yield from values_in((x.start, x.stop, x.step))


def replaced(x: Any, known: dict[Value, Any]) -> Any:
    """The same with what is known of each value in its place."""
    if isinstance(x, Value):
        return known.get(x, x)
    if isinstance(x, (list, tuple)):
        parts = [replaced(part, known) for part in x]
        if hasattr(x, "_fields"):
            return type(x)(*parts)
        return parts if isinstance(x, list) else tuple(parts)
    if isinstance(x, dict):
        return {key: replaced(part, known) for key, part in x.items()}
    if isinstance(x, slice):
        ends = (x.start, x.stop, x.step)
        return slice(*[replaced(end, known) for end in ends])
    return x
