"""The operation as a scalar function of one array, for every transformation alike.

Whatever its arguments and outputs are (trees, complex, several), what is differentiated
is

    phi = sum_i w_i (u_i + c u_i^2),   u = y / |y|,   y = op(x)

with fixed random weights w; the square makes the second derivative differ from zero
even if the rule does not depend on x. It is a function of one array t in two ways,
since some transformations treat them differently:

    inside   x = x0 + t_0 v_0 + t_1 v_1 with random directions v in all floating
             arguments: the operation is a part of a larger function
    itself   the first floating argument is t itself

All results are contracted with the directions, so that they are two numbers or four.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _tree
from .._arrays import is_array
from .._errors import GradsmithError, annotate
from .row import TANGENT
from .subject import Subject, is_floating

CURVATURE = 0.3819  # so that the derivative 1 + 2 c u is zero for no simple u
DIRECTION = np.array([0.75, 1.25])
# Exact in every dtype, and near enough to stay in the operation's domain.
POINTS = np.array([[0.0, 0.0], [1 / 64, -1 / 32]])


@dataclass(frozen=True)
class Scalar:
    """phi, with the points and directions at which it is differentiated."""

    kit: Any  # the module of the framework
    op: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    directions: list[Any]  # two for each floating array among the arguments
    scales: list[float]  # one for each floating output
    weights: list[Any]
    tolerance: float  # relative, of the least precise array
    itself: bool
    t: Any
    dt: Any
    points: Any

    def phi(self, t: Any) -> Any:
        return self.kit.total(self.vector(t))

    def vector(self, t: Any) -> Any:
        """The terms of phi."""
        args, kwargs = self._arguments(t)
        ys = outputs(self.op(*args, **kwargs))
        parts = zip(ys, self.scales, self.weights, strict=True)
        return self.kit.joined(
            [self.kit.terms(y, scale, w, CURVATURE) for y, scale, w in parts]
        )

    def _arguments(self, t: Any) -> Any:
        rest = iter(self.directions)

        def moved(x: Any) -> Any:
            if not (is_array(x) and is_floating(x)):
                return x
            vs = next(rest)
            if self.itself:
                return t if vs is self.directions[0] else x
            return self.kit.shifted(x, t, vs)

        return _tree.map(moved, (self.args, self.kwargs))

    def with_op(self, op: Callable[..., Any]) -> Scalar:
        return replace(self, op=op)

    def at(self, t: Any) -> Scalar:
        return replace(self, t=t)

    def at_point(self, t: np.ndarray) -> Scalar:
        """At a point that is given by its coordinates along the directions."""
        if self.itself:
            vs = self.directions[0]
            return self.at(self.kit.shifted(self.t, self.kit.number(t, self.t), vs))
        return self.at(self.kit.number(t, self.t))

    def contracted(self, result: Any, kind: str) -> np.ndarray | None:
        """A result along the directions."""
        if result is None:
            return None
        found = self.kit.numpy(result)
        if not self.itself or kind == TANGENT:
            return found
        vs = np.array([self.kit.numpy(v) for v in self.directions[0]])
        dims = vs.ndim - 1
        return np.tensordot(found, np.moveaxis(vs, 0, -1), dims)

    def by_keyword(self, names: list[str]) -> Scalar:
        """The same, with the operation called by keywords."""
        kwargs = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        return replace(self, args=self.args[len(names) :], kwargs=kwargs)

    def differentiated_itself(self) -> Scalar | None:
        """The same as a function of the first argument; None if that is complex."""
        x = floating((self.args, self.kwargs))[0]
        if np.iscomplexobj(self.kit.numpy(x)):
            return None
        vs = self.directions[0]
        at = [self.kit.shifted(x, self.kit.number(p, x), vs) for p in POINTS]
        zero = self.kit.alike(np.zeros(tuple(x.shape)), x)
        return replace(
            self,
            itself=True,
            t=x,
            dt=self.kit.shifted(zero, self.kit.number(DIRECTION, x), vs),
            points=self.kit.stacked(at),
        )


def scalar_of(
    kit: Any, subject: Subject, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Scalar:
    """Choose directions and weights; runs the operation once."""
    random = np.random.default_rng(0)
    with annotate(f"raised by {subject.name} itself, called with the given inputs"):
        returned = subject.call(*args, **kwargs)
    xs, ys = floating((args, kwargs)), outputs(returned)
    if not ys:
        raise GradsmithError(
            f"{subject.name} has no output with a gradient: it returned "
            f"{type(returned).__name__}, without any array of floating numbers"
        )
    values = [kit.numpy(y) for y in ys]
    sizes = [y.size * (1 + np.iscomplexobj(y)) for y in values]
    return Scalar(
        kit,
        subject.call,
        args,
        kwargs,
        directions=[_directions(kit, x, random) for x in xs],
        scales=[_size(y) for y in values],
        weights=[kit.number(random.uniform(0.5, 1.5, n), xs[0]) for n in sizes],
        tolerance=max(_tolerance(x) for x in (*xs, *ys)),
        itself=False,
        t=kit.number(POINTS[0], xs[0]),
        dt=kit.number(DIRECTION, xs[0]),
        points=kit.number(POINTS, xs[0]),
    )


def floating(tree: Any) -> list[Any]:
    """The arrays of floating numbers in a tree."""
    return [x for x in _tree.leaves(tree) if is_array(x) and is_floating(x)]


def outputs(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in _tree.leaves(tree) if is_floating(y)]


def _directions(kit: Any, x: Any, random: np.random.Generator) -> list[Any]:
    value = kit.numpy(x)
    parts = (1, 1j) if np.iscomplexobj(value) else (1,)

    def direction() -> Any:
        return sum(part * random.uniform(0.5, 1.5, value.shape) for part in parts)

    return [kit.alike(_size(value) * direction(), x) for _ in range(2)]


def _size(x: np.ndarray) -> float:
    """The mean of the absolute values, or 1 if there is none to go by."""
    size = float(np.mean(np.abs(x))) if x.size else 0.0
    return size if 0 < size < np.inf else 1.0


_DIGITS = {"float64": 52, "complex128": 52, "float32": 23, "complex64": 23}
_DIGITS |= {"float16": 10, "bfloat16": 7}


def _tolerance(x: Any) -> float:
    """Half of a dtype's binary digits."""
    name = re.search(r"\w*(float|complex)\w+", str(getattr(x, "dtype", "float64")))
    return max(1e-6, 2.0 ** (-_DIGITS.get(name[0] if name else "", 4) / 2))
