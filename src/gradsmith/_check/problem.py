"""An operation as a function from a list of NumPy arrays to another.

Whatever the framework, the dtype and the structure of the arguments: the checker moves
`xs`, the arrays of floating numbers among the arguments, and looks at `ys`, those among
the outputs. It computes in NumPy, in double precision; each call converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _tree
from .._arrays import is_array
from .._errors import GradsmithError
from .._subject import Subject, is_floating

Arrays = list[np.ndarray]
Gradients = list[np.ndarray | None]


@dataclass(frozen=True)
class Linear:
    """The outputs at a point, and the rule there: `pull(dys)` gives the gradients.

    It may be called often. A gradient is None where the framework says that the
    argument is not connected.
    """

    ys: Arrays
    pull: Callable[[Sequence[np.ndarray]], Gradients]


@dataclass(frozen=True)
class Problem:
    """An operation, with all that doesn't change while it is checked."""

    subject: Subject
    kit: Any
    framework: str
    call: Callable[..., Any]  # the operation, or an altered copy of it
    inputs: Any  # (args, kwargs), with all arrays as NumPy's
    names: tuple[str, ...]  # of the arrays that are moved
    dtypes: tuple[str, ...]  # what they are given as

    # --- running it

    def value(self, xs: Sequence[np.ndarray]) -> Arrays:
        """The outputs."""
        with self._precision():
            ys = self.kit.value(self.native, self.given(xs))
            return [wide(self.kit.numpy(y)) for y in ys]

    def linear(self, xs: Sequence[np.ndarray]) -> Linear:
        """The outputs and the gradients by the rule."""
        with self._precision():
            ys, pull = self.kit.vjp(self.native, self.given(xs))
            dtypes = [self.kit.dtype_name(y) for y in ys]
            values = [wide(self.kit.numpy(y)) for y in ys]

        def pull_numpy(dys: Sequence[np.ndarray]) -> Gradients:
            with self._precision():
                given = map(self.kit.array, dys, dtypes)
                return [self._back(dx) for dx in pull(list(given))]

        return Linear(values, pull_numpy)

    def push(self, xs: Sequence[np.ndarray], dxs: Sequence[np.ndarray]) -> Arrays:
        """The tangents of the outputs, by forward mode."""
        with self._precision():
            dys = self.kit.jvp(self.native, self.given(xs), self.given(dxs))
            return [wide(self.kit.numpy(dy)) for dy in dys]

    def curve(
        self,
        xs: Sequence[np.ndarray],
        dys: Sequence[np.ndarray],
        vs: Sequence[np.ndarray],
    ) -> Gradients:
        """The gradient of <pull(dys), vs>, by differentiating the rule."""
        with self._precision():
            given = self.given(xs)
            like = self.kit.value(self.native, given)
            dtypes = [self.kit.dtype_name(y) for y in like]
            upstream = list(map(self.kit.array, dys, dtypes))
            found = self.kit.hvp(self.native, given, upstream, self.given(vs))
            return [self._back(dx) for dx in found]

    def native(self, xs: Sequence[Any]) -> list[Any]:
        """The operation on the framework's own arrays: outputs as a flat list."""
        moved = iter(xs)

        def leaf(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            return next(moved) if is_floating(x) else self.kit.array(x, str(x.dtype))

        args, kwargs = _tree.map(leaf, self.inputs)
        return floating(self.call(*args, **kwargs))

    def given(self, xs: Sequence[np.ndarray]) -> list[Any]:
        """Arrays of the framework, in the dtypes of the arguments."""
        return list(map(self.kit.array, xs, self.dtypes))

    def _back(self, dx: Any) -> np.ndarray | None:
        return None if dx is None else wide(self.kit.numpy(dx))

    def _precision(self) -> Any:
        widest = max(self.dtypes, key=lambda name: np.isin(name, _WIDE).item())
        return self.kit.precision(widest)

    # --- another problem like this one

    @property
    def xs(self) -> Arrays:
        """The arrays that are moved, as given."""
        return [x for x in _tree.leaves(self.inputs) if _moves(x)]

    def at(self, xs: Iterable[np.ndarray]) -> Problem:
        """With other arrays."""
        new = iter(xs)
        inputs = _tree.map(lambda x: next(new) if _moves(x) else x, self.inputs)
        return replace(self, inputs=inputs)

    def with_inputs(self, inputs: Any) -> Problem:
        return replace(self, inputs=inputs)

    def in_dtype(self, dtype: str) -> Problem:
        """With all of the arrays in one precision; complex ones stay complex."""
        complexes = {"float64": "complex128", "float32": "complex64"}
        return replace(
            self,
            dtypes=tuple(
                complexes.get(dtype, name) if name.startswith("complex") else dtype
                for name in self.dtypes
            ),
        )

    @contextmanager
    def altered(self, around: Any) -> Any:
        """The problem of a copy whose rule is the one that `around` gives."""
        assert self.subject.altered is not None
        with self.subject.altered(around) as call:
            yield replace(self, call=call)


_WIDE = ("float64", "complex128")


def problem_of(
    subject: Subject, kit: Any, framework: str, args: Any, kwargs: Any
) -> Problem:
    """The problem of an operation, called with these arrays of its framework."""
    named = [(name, x) for name, x in _named(subject, args, kwargs) if is_moved(x)]

    def leaf(x: Any) -> Any:
        if not is_array(x):
            return x
        return x.copy() if isinstance(x, np.ndarray) else kit.numpy(x)

    return Problem(
        subject,
        kit,
        framework,
        subject.call,
        _tree.map(leaf, (tuple(args), dict(kwargs))),
        tuple(name for name, _ in named),
        tuple(_dtype_name(x, kit) for _, x in named),
    )


def require_outputs(ys: Arrays, name: str) -> None:
    """Refuse an operation without an output that could have a gradient."""
    if not ys:
        raise GradsmithError(
            f"{name!r} returns no floating numbers, so that there is no gradient to "
            "check"
        )


def _named(subject: Subject, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    names: list[str] = []
    if subject.signature is not None:
        parameters = subject.signature.parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    names += [f"argument {i}" for i in range(len(names), len(args))]
    pairs = [*zip(names, args, strict=False), *kwargs.items()]
    return [leaf for name, x in pairs for leaf in _tree.leaves_with_names(x, name)]


def _dtype_name(x: Any, kit: Any) -> str:
    return str(x.dtype) if isinstance(x, np.ndarray) else kit.dtype_name(x)


def as_array(x: Any) -> Any:
    """Numbers as NumPy's arrays, which every framework is given its own from."""
    return x if is_array(x) else np.asarray(x)


def is_moved(x: Any) -> bool:
    """Whether it is an array of floating numbers."""
    return is_array(x) and is_floating(x)


def _moves(x: Any) -> bool:
    return isinstance(x, np.ndarray) and is_floating(x)


def floating(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in _tree.leaves(tree) if is_floating(y)]


def wide(x: Any) -> np.ndarray:
    """In double precision."""
    x = np.asarray(x)
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def inner(a: Sequence[np.ndarray | None], b: Sequence[np.ndarray | None]) -> float:
    """<a, b>: how much the value changes along b, if a is its gradient."""
    pairs = zip(a, b, strict=True)
    return sum(
        float(np.real(np.vdot(x, y)))
        for x, y in pairs
        if x is not None and y is not None
    )
