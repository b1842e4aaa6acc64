"""The graph of a program: values, the steps that compute them, inputs and outputs.

Straight-line code in single assignment form: each value is computed by one step, from
values before it. A step is a call of a NumPy function (or of `index` and `convert`,
which tensors have and NumPy has no function for, or of `changed`, for a write). So
running a program needs no interpreter of its own, and a rule written in NumPy calls
becomes steps as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .. import numpy as gnp
from ..core import trees
from ..core.cotangent import Spec
from ..core.places import Place
from ..core.rule import convert, index
from .kernels.primitives import PORTABLE


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
    in_list: bool = False  # it returns a list, though there may be one output alone

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The values among the arguments, each time that they occur."""
        return tuple(values_in((self.args, self.kwargs)))


@dataclass(frozen=True, eq=False)
class Program:
    """A traced definition: a function of arrays as straight-line NumPy code.

    `constants` are the captured arrays, by the value that stands for each. `outputs` is
    the tree that the function returned, with values in place of arrays. `print` shows
    the code, and `len` is the number of steps. Two programs are equal if they have the
    same steps on the same shapes, dtypes and constants.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> program = gs.trace(gs.grad(lambda x: np.sum(x * x)), np.ones(3))
    >>> program, len(program)
    (<program program: 1 step>, 1)
    >>> program(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])

    Raises
    ------
    TypeError
        When it is called with another number of arrays.
    """

    name: str
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: Any
    constants: dict[Value, np.ndarray] = field(default_factory=dict)
    names: tuple[str, ...] = ()  # how the user reaches each input: params['w']
    writes: bool = False  # whether the function wrote into arrays

    @property
    def results(self) -> list[Value]:
        """The values among the outputs."""
        return [*values_in(self.outputs)]

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        n = len(self.steps)
        return f"<program {self.name}: {n} step{'s' * (n != 1)}>"

    def __str__(self) -> str:
        from .source import source  # which imports this module

        return source(self)

    def draw(self, *, most: int = 30) -> Any:
        """Return a drawing of the graph, as `tape.draw` does.

        A notebook shows it, and `drawing.save("graph.svg")` writes a file. Of more than
        `most` steps, those that repeat are one box, then the earliest ones.
        """
        from .display import drawing

        return drawing(self, most=most)

    def _repr_html_(self) -> str:
        from ..report.html import notebook  # where it is shown alone
        from .display import document

        return notebook(document(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        return self._structure() == other._structure()

    def __hash__(self) -> int:
        return hash(tuple(step.fn for step in self.steps))

    def _structure(self) -> Any:
        """All but names and places, with numbers for values."""
        known: dict[Any, Any] = {
            x: (i, x.shape, x.dtype.str) for i, x in enumerate(self.inputs)
        }
        for x, array in self.constants.items():
            known[x] = (x.shape, x.dtype.str, array.tobytes())
        written: list[Any] = []
        for step in self.steps:
            args = replaced((step.args, step.kwargs), known)
            specs = [(y.shape, y.dtype.str) for y in step.outputs]
            written.append((step.fn, comparable(args), specs))
            known.update(
                (y, ("step", len(known), i)) for i, y in enumerate(step.outputs)
            )
        inputs = [known[x] for x in self.inputs]
        return inputs, written, comparable(replaced(self.outputs, known))

    def __call__(self, *arguments: Any) -> Any:
        """Run the steps, one after the other.

        The arrays are given in the trees in which they were traced, or one by one; what
        is built in is left out.
        """
        arrays = trees.leaves(arguments)
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
        for x in self.results:
            if x in self.constants:
                known[x] = self.constants[x].copy()  # the caller may change it
        return replaced(self.outputs, known)

    def portably(self, arrays: Sequence[Any], as_array: Callable[[Any], Any]) -> Any:
        """Run the steps on arrays of a framework, by the functions of `gnp`.

        `as_array` makes the framework's array of one of NumPy's.
        """
        known: dict[Value, Any] = dict(zip(self.inputs, arrays, strict=True))
        known.update({x: as_array(c) for x, c in self.constants.items()})
        for step in self.steps:
            args, kwargs = replaced((step.args, step.kwargs), known)
            (y,) = step.outputs
            known[y] = as_array(_portable(step.fn)(*args, **kwargs))
        return replaced(self.outputs, known)


def _portable(fn: Any) -> Any:
    """The function of `gnp` that does what one of NumPy does."""
    if fn is index:
        return fn
    if fn is convert or fn.__name__ == "astype":
        return lambda x, dtype: gnp.astype(x, np.dtype(dtype).name)
    if fn in (np.copy, np.ascontiguousarray):
        return gnp.asarray
    if fn in PORTABLE:
        return PORTABLE[fn]
    name = "absolute" if fn is np.fabs else str(fn.__name__)
    return getattr(gnp, name, None) or getattr(gnp.special, name)


def changed(change: Callable[..., Any], x: Any, *args: Any, **options: Any) -> Any:
    """A copy of x after `change(x, ...)`, which writes into it."""
    y = x.copy()
    change(y, *args, **options)
    return y


def setitem(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value`, as a function."""
    x[key] = value


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


def comparable(x: Any) -> Any:
    """The same such that equal means the same: a number's type and sign count too."""
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [comparable(part) for part in x]
    if isinstance(x, dict):
        return [(key, comparable(part)) for key, part in x.items()]
    if isinstance(x, slice):
        return "slice", comparable((x.start, x.stop, x.step))
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return type(x).__name__, repr(x)
    return x


def is_uniform(x: np.ndarray) -> bool:
    """Whether all elements are the same, to the last bit."""
    return not any(x.strides) or x.tobytes() == x.flat[:1].tobytes() * x.size
