"""An operation as a function from a list of NumPy arrays to another.

Whatever the framework, the dtype and the structure of the arguments: the checker
perturbs `xs`, the floating-point arrays among the arguments, and compares `ys`, those
among the outputs. It computes in NumPy, in double precision; each call converts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import FRAMEWORKS, is_array
from ...frameworks._calculus import PLAIN, Traits
from ...frameworks._protocol import Framework
from ...operations.info import OperationInfo, is_floating, positional
from .._inputs import framework_for, info_of, prepared
from .budget import UNLIMITED, Budget
from .inputs import CheckInputs
from .numerics import Bounds, into_bounds

Arrays = list[np.ndarray]
Gradients = list[np.ndarray | None]
# Factors and upstream gradients with a given sum, which a rule that clips leaves alone
Unclipped = Callable[[np.ndarray], list[tuple[float, np.ndarray]]]


@dataclass(frozen=True)
class Linearization:
    """The outputs at a point, and the rule there: `pull(dys)` gives the gradients.

    It may be called often. A gradient is None where the framework says that the
    argument is not connected.
    """

    ys: Arrays
    pull: Callable[[Sequence[np.ndarray]], Gradients]


@dataclass(frozen=True)
class Problem:
    """An operation, with all that doesn't change while it is checked."""

    info: OperationInfo
    framework: Framework
    call: Callable[..., Any]  # the operation, or an altered copy of it
    inputs: Any  # (args, kwargs), with all arrays as NumPy's
    names: tuple[str, ...]  # of the floating-point arrays
    dtypes: tuple[str, ...]  # of these arrays
    frozen: frozenset[str] = frozenset()  # the names of those kept constant
    symmetric: frozenset[str] = frozenset()  # of which one triangle is read
    bounds: tuple[Bounds, ...] = ()  # of these arrays, if any has bounds
    fixed_dtypes: bool = False  # the operation takes no other dtypes
    budget: Budget = UNLIMITED
    spoils_residuals: bool = False  # a second backward would be another one
    declares: bool = False  # surrogates inside: differences leave them out
    is_random: bool = False  # generators are rewound before each call
    unclipped: Unclipped | None = None  # of a rule that clips dy
    traits: Traits = PLAIN

    @property
    def arrays(self) -> Any:
        """The framework's part of that name."""
        return self.framework.arrays

    @property
    def calculus(self) -> Any:
        return self.framework.calculus

    # --- running it

    def value(self, xs: Sequence[np.ndarray]) -> Arrays:
        """The outputs."""
        with self.precision():
            ys = self.calculus.value(self.native, self.to_native(xs))
            return [as_double(self.arrays.numpy(y)) for y in ys]

    def is_inside(self) -> bool:
        """Whether no index is out of bounds, as far as the framework can tell."""
        with self.precision():
            return self.calculus.in_bounds(self.native, self.to_native(self.xs))

    def with_traits(self) -> Problem:
        """With what the operation is made of, as far as the framework can tell."""
        with suppress(Exception), self.precision():
            traits = self.calculus.traits(self.native, self.to_native(self.xs))
            return replace(self, traits=traits)
        return self

    def computed(self) -> tuple[Arrays, str]:
        """The outputs, and the lowest precision among them."""
        with self.precision():
            ys = self.calculus.value(self.native, self.to_native(self.xs))
            names = {_REAL.get(name, name) for name in map(self.arrays.dtype_name, ys)}
            values = [as_double(self.arrays.numpy(y)) for y in ys]
        lower = [name for name in ("bfloat16", "float16", "float32") if name in names]
        return values, lower[0] if lower else "float64"

    def linearize(self, xs: Sequence[np.ndarray]) -> Linearization:
        """The outputs and the gradients by the rule."""
        with self.precision():
            ys, pull = self.calculus.vjp(self.native, self.to_native(xs))
            dtypes = [self.arrays.dtype_name(y) for y in ys]
            values = [as_double(self.arrays.numpy(y)) for y in ys]

        calls = count()

        def pull_numpy(dys: Sequence[np.ndarray]) -> Gradients:
            with self.precision():
                given = list(map(self.arrays.array, dys, dtypes))
                is_first = next(calls) == 0
                if not self.spoils_residuals:
                    try:
                        return [self.to_numpy(dx) for dx in pull(given)]
                    except Exception:  # a rule may run once only
                        if is_first:
                            raise
                fresh = self.calculus.vjp(self.native, self.to_native(xs))[1]
                return [self.to_numpy(dx) for dx in fresh(given)]

        return Linearization(values, pull_numpy)

    def jvp(self, xs: Sequence[np.ndarray], dxs: Sequence[np.ndarray]) -> Arrays:
        """The tangents of the outputs, by forward mode."""
        with self.precision():
            _, dys = self.calculus.jvp(
                self.native, self.to_native(xs), self.to_native(dxs)
            )
            return [as_double(self.arrays.numpy(dy)) for dy in dys]

    def native_inputs(self) -> Any:
        """The arguments as the framework's own arrays."""

        def leaf(x: Any) -> Any:
            is_array = isinstance(x, np.ndarray)
            return self.arrays.array(x, str(x.dtype)) if is_array else x

        return trees.map(leaf, self.inputs)

    @cached_property
    def native(self) -> NativeFunction:
        """The operation on the framework's own arrays."""
        call = self._rewinding() if self.is_random else self.call
        return NativeFunction(
            call, self.arrays, self.inputs, self._names_and_dtypes, self.frozen
        )

    def _rewinding(self) -> Callable[..., Any]:
        """The operation, which draws the same random numbers each time."""
        rewound = self.framework.recompute.rewinding(self.call, self.inputs)

        def call(*args: Any, **kwargs: Any) -> Any:
            with rewound():
                return self.call(*args, **kwargs)

        return call

    def to_native(self, xs: Sequence[np.ndarray]) -> list[Any]:
        """Arrays of the framework, in the dtypes of the arguments."""
        dtypes = [
            dtype for name, dtype in self._names_and_dtypes if name not in self.frozen
        ]
        return list(map(self.arrays.array, xs, dtypes))

    def to_numpy(self, dx: Any) -> np.ndarray | None:
        """A gradient of the framework in double precision; None stays None."""
        return None if dx is None else as_double(self.arrays.numpy(dx))

    def upstream_like(self, ys: Sequence[Any], dys: Sequence[np.ndarray]) -> list[Any]:
        """Upstream gradients as the framework's arrays, in the dtypes of `ys`."""
        return list(map(self.arrays.array, dys, map(self.arrays.dtype_name, ys)))

    def precision(self) -> Any:
        """The context in which arrays of the problem's dtypes exist.

        Every evaluation enters it, so it is here that the time is up.
        """
        self.budget.require_time()
        widest = max(self.dtypes, key=_WIDE.__contains__)
        return self.arrays.precision(widest)

    # --- another problem like this one

    @property
    def perturbed(self) -> tuple[str, ...]:
        """The names of the arrays that are perturbed."""
        return tuple(name for name in self.names if name not in self.frozen)

    @property
    def xs(self) -> Arrays:
        """The arrays that are perturbed, as given."""
        arrays = [x for x in trees.leaves(self.inputs) if _is_floating_array(x)]
        pairs = zip(self.names, arrays, strict=True)
        return [x for name, x in pairs if name not in self.frozen]

    @property
    def _names_and_dtypes(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.dtypes, strict=True))

    def freezing(self, names: Iterable[str]) -> Problem:
        """With some of the arrays kept constant."""
        return replace(self, frozen=self.frozen | set(names))

    def with_perturbed(self, xs: Iterable[np.ndarray]) -> Problem:
        """With other values for the perturbed arrays, perhaps of other shapes."""
        new, names = map(np.asarray, xs), iter(self.names)

        def leaf(x: Any) -> Any:
            perturbed = _is_floating_array(x) and next(names) not in self.frozen
            return np.asarray(next(new)) if perturbed else x

        return self.with_inputs(trees.map(leaf, self.inputs))

    def with_one(
        self, name: str, change: Callable[[np.ndarray], np.ndarray]
    ) -> Problem:
        """With another value for one of the arrays, which may be a constant one."""
        names = iter(self.names)

        def leaf(x: Any) -> Any:
            is_it = _is_floating_array(x) and next(names) == name
            return np.asarray(change(x), x.dtype) if is_it else x

        return replace(self, inputs=trees.map(leaf, self.inputs))

    def with_inputs(self, inputs: Any) -> Problem:
        """With other inputs, within the bounds of the given ones."""
        return replace(self, inputs=into_bounds(inputs, self.bounds))

    def in_dtype(self, dtype: str) -> Problem:
        """With all of the arrays in one precision; complex ones stay complex."""
        if self.fixed_dtypes:
            return self
        complexes = {"float64": "complex128", "float32": "complex64"}
        return replace(
            self,
            dtypes=tuple(
                complexes.get(dtype, old) if old.startswith("complex") else dtype
                for old in self.dtypes
            ),
        )

    @contextmanager
    def altered(self, around: Any) -> Any:
        """The problem of a copy whose rule is the one that `around` gives."""
        assert self.info.altered is not None
        with self.info.altered(around) as call:
            yield replace(self, call=call)


@dataclass(frozen=True, eq=False)
class NativeFunction:
    """An operation on the framework's arrays: from the perturbed ones to the outputs.

    Two are equal if they compute the same, so that compiled functions can be cached.
    """

    call: Callable[..., Any]
    arrays: Any  # the part of the framework
    inputs: Any
    typed: Sequence[tuple[str, str]]  # names and dtypes
    frozen: frozenset[str]

    def __call__(self, xs: Sequence[Any]) -> list[Any]:
        perturbed, names = iter(xs), iter(self.typed)

        def leaf(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            name, dtype = next(names) if is_floating(x) else ("", str(x.dtype))
            if name and name not in self.frozen:
                return next(perturbed)
            return self.arrays.array(x, dtype)

        args, kwargs = trees.map(leaf, self.inputs)
        ys = floating(self.call(*args, **kwargs))
        if self.arrays.numbers_differentiable:
            return ys
        # NumPy's arrays are no part of what another framework differentiates.
        return [y for y in ys if is_array(y) and not isinstance(y, np.ndarray)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NativeFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        perturbed = {name for name, _ in self.typed} - self.frozen
        names = iter(self.typed)

        def leaf(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x if type(x) in (int, float, str, bool, type(None)) else id(x)
            name, dtype = next(names) if is_floating(x) else ("", str(x.dtype))
            if name in perturbed:
                return "perturbed"
            return (x.shape, dtype, x.tobytes())

        named = trees.leaves_with_names(self.inputs)
        return (id(self.call), tuple((name, leaf(x)) for name, x in named))


def floating(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in trees.leaves(tree) if is_floating(y)]


def problem_for(
    op: Any, given: CheckInputs, framework: str | None, *, caller: str = "check"
) -> Problem:
    """The problem of an operation on given inputs, in its own framework or another."""
    inputs = given.args, given.kwargs
    name = framework_for(op, inputs, framework, caller=f"{caller}()")
    info = info_of(op, name)
    inputs = given.args, {**(info.captured or {}), **given.kwargs}
    args, kwargs = prepared(inputs, _as_array, caller=f"{caller}({info.name})")
    return problem_of(info, FRAMEWORKS[name], args, kwargs, bounds=given.bounds)


def problem_of(
    info: OperationInfo,
    framework: Framework,
    args: Any,
    kwargs: Any,
    bounds: tuple[Bounds, ...] = (),
) -> Problem:
    """The problem of an operation, called with these arrays of its framework."""
    named = [
        (name, x) for name, x in named_leaves(info, args, kwargs) if is_perturbed(x)
    ]

    def leaf(x: Any) -> Any:
        if not _holds_numbers(x):
            return x
        return np.array(x) if isinstance(x, np.ndarray) else framework.arrays.numpy(x)

    return Problem(
        info,
        framework,
        info.call,
        trees.map(leaf, (tuple(args), dict(kwargs))),
        tuple(name for name, _ in named),
        tuple(_dtype_name(x, framework) for _, x in named),
        bounds=bounds,
    )


def named_leaves(info: OperationInfo, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """What an operation is called with, by the names that reports use."""
    names = positional(info, args)
    pairs = [*zip(names, args, strict=False), *kwargs.items()]
    return [leaf for name, x in pairs for leaf in trees.leaves_with_names(x, name)]


def _dtype_name(x: Any, framework: Framework) -> str:
    if isinstance(x, np.ndarray):
        return str(x.dtype)
    return framework.arrays.dtype_name(x)


def _holds_numbers(x: Any) -> bool:
    """False for an array of strings, or of random keys."""
    return is_array(x) and bool(re.search("bool|int|float|complex", str(x.dtype)))


def _as_array(x: Any) -> Any:
    """Numbers as NumPy arrays, which are converted for every framework."""
    return x if is_array(x) else np.asarray(x)


def is_perturbed(x: Any) -> bool:
    """Whether it is a floating-point array."""
    return is_array(x) and is_floating(x)


_WIDE = ("float64", "complex128")
_REAL = {"complex64": "float32", "complex128": "float64"}


def _is_floating_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) and is_floating(x)


def as_double(x: Any) -> np.ndarray:
    """The array in double precision; itself if it is that already."""
    x = np.asarray(x)
    return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)
