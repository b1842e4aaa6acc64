"""Is a function one of numbers or of vectors, and how is it run on many of them?

Points lie along the first axis. A function of vectors is run on rows if it takes an
axis, or works on the last one as it is; else it is called for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import numpy as portable
from ...core.arrays import FRAMEWORKS
from ...core.cotangent import Spec
from ...core.errors import annotate
from ...operations.examples import examples_of
from ...operations.info import is_floating, signature_of
from .certified.balls import Balls
from .references import VECTORS
from .targets import Target

SIZE = 10  # elements of a vector, unless an input says otherwise


@dataclass(frozen=True)
class Argument:
    """An argument: of numbers (shape is ()), of arrays of a shape, or a constant."""

    name: str
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    constant: Any = None
    varies: bool = True

    @property
    def domain(self) -> tuple[float, float] | None:
        """The bounds that a spec says."""
        if self.low is None and self.high is None:
            return None
        low = -np.inf if self.low is None else self.low
        return low, np.inf if self.high is None else self.high


def arguments_of(target: Target, inputs: Any) -> list[Argument]:
    """The arguments, as inputs (specs, arrays, constants), examples or trials say."""
    given = inputs if inputs is not None else _example(target.op)
    if given is not None:
        given = given if type(given) is tuple else (given,)
        names = [*target.arguments, *(f"argument {i}" for i in range(9))]
        found = [_argument(x, name) for x, name in zip(given, names, strict=False)]
        return found if inputs is not None else _by_element(target, found)
    if target.reference in VECTORS or _takes_axis(target):
        return [Argument(name, (SIZE,)) for name in target.arguments]
    shape = () if _is_elementwise(target) else (SIZE,)
    return [Argument(name, shape) for name in target.arguments]


def _by_element(target: Target, arguments: list[Argument]) -> list[Argument]:
    """Numbers in place of the arrays of an example, if each element is on its own."""
    shapes = {x.shape if x.varies else None for x in arguments}
    try:
        alone = len(shapes) == 1 and None not in shapes and _is_elementwise(target)
    except Exception:  # it is not for arrays of any shape
        alone = False
    return [replace(x, shape=()) for x in arguments] if alone else arguments


def _example(op: Any) -> Any:
    for make in examples_of(op)[:1]:
        made = make()
        return tuple(made.values()) if isinstance(made, dict) else made
    return None


def _argument(x: Any, name: str) -> Argument:
    if not isinstance(x, Spec):
        if not is_floating(x):
            return Argument(name, constant=x, varies=False)
        return Argument(name, tuple(np.shape(x)))
    lengths = getattr(x, "axes", x.shape) or ()
    shape = tuple(n if isinstance(n, int) else SIZE for n in lengths)
    return Argument(name, shape, getattr(x, "low", None), getattr(x, "high", None))


def _takes_axis(target: Target) -> bool:
    signature = signature_of(target.op)
    return signature is not None and "axis" in signature.parameters


def _is_elementwise(target: Target) -> bool:
    """Whether each element of the value comes from its own elements alone."""
    n = len(target.arguments)
    x = np.linspace(0.3, 0.7, 5).astype(np.float32)
    other = x.copy()
    other[0] = 0.45
    with annotate(
        f"raised by {target.name}, given {n} array{'s' * (n > 1)} of 5 numbers; if it "
        "takes others, show some: inputs=(gs.spec((3,)), 2)"
    ):
        a, b = (_value(target, [each] * n) for each in (x, other))
    return a.shape == x.shape and np.array_equal(a[1:], b[1:], equal_nan=True)


def _value(target: Target, xs: Sequence[Any]) -> Any:
    framework = FRAMEWORKS[target.framework]
    with np.errstate(all="ignore"):
        given = [framework.arrays.array(x, "float32") for x in xs]
        (y,) = framework.calculus.value(lambda xs: [target.call(*xs)], given)
        return framework.arrays.numpy(y)


@dataclass(frozen=True)
class EachRow:
    """A function of arrays as one of many of each, along their first axes."""

    fn: Callable[..., Any]

    def __call__(self, *xs: Any) -> Any:
        rows = [self.fn(*[x[i] for x in xs]) for i in range(len(xs[0]))]
        if isinstance(xs[0], Balls):
            return np.concatenate([y[None] for y in rows])
        return portable.stack(rows)


@dataclass(frozen=True)
class Fixed:
    """A function with some of its arguments, by their places, and options fixed."""

    fn: Callable[..., Any]
    constants: tuple[tuple[int, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *xs: Any) -> Any:
        return self.fn(*self.complete(xs), **dict(self.options))

    def complete(self, xs: Sequence[Any]) -> list[Any]:
        """All arguments."""
        args = list(xs)
        for i, x in self.constants:
            args.insert(i, x)
        return args


def constants(arguments: Sequence[Argument]) -> tuple[tuple[int, Any], ...]:
    """The places of the arguments that are fixed, and their values."""
    return tuple((i, a.constant) for i, a in enumerate(arguments) if not a.varies)


def on_rows(target: Target, arguments: Sequence[Argument]) -> tuple[Any, Any, bool]:
    """The operation and the true function on many points; whether one by one."""
    fixed = constants(arguments)
    call, true = target.call, target.reference
    if fixed:
        call, true = Fixed(call, fixed), Fixed(true, fixed)
    if not any(a.shape for a in arguments):
        return call, true, False
    own = target.reference is target.op
    if target.native and target.reference in VECTORS:
        axis = (FRAMEWORKS[target.framework].natives.axis, -1)
        return Fixed(target.call, fixed, (axis,)), target.reference, False
    if own and _takes_axis(target):
        last = (("axis", -1),)
        return Fixed(target.call, fixed, last), Fixed(target.op, fixed, last), False
    if own and _works_on_rows(call, arguments):
        return call, true, False
    return EachRow(call), EachRow(true), True


def _works_on_rows(call: Any, arguments: Sequence[Argument]) -> bool:
    """Whether a function of ours makes the same of many rows as of each."""
    rng = np.random.default_rng(0)
    xs = [rng.uniform(0.2, 0.8, (3, *a.shape)) for a in arguments if a.varies]
    try:
        with np.errstate(all="ignore"):
            many, each = np.asarray(call(*xs)), np.asarray(EachRow(call)(*xs))
    except Exception:
        return False
    return many.shape == each.shape and np.allclose(many, each, rtol=1e-6)
