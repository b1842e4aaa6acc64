"""The operation as a scalar function of one array, for every transformation alike.

Whatever its arguments and outputs are (trees, complex, several), what is differentiated
is

    phi = sum_i w_i (u_i + c u_i^2),   u = y / |y|,   y = op(x)

with fixed random weights w; the square makes the second derivative differ from zero
even if the rule does not depend on x. It is a function of one array t in two ways,
since some transformations treat them differently:

    inside   x = x0 + t_0 v_0 + t_1 v_1 with random directions v in all floating
             arguments: the operation is a part of a larger function
    itself   one of the arguments is t itself

All results are contracted with the directions, so that they are two numbers or four.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import numpy as gnp
from ...core import trees
from ...core.arrays import is_array
from ...operations.info import is_floating
from .arithmetic import alike, number, shifted, terms
from .row import TANGENT

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
    directions: list[Any]  # two for each floating argument; None: it stays as it is
    scales: list[float]  # one for each floating output
    weights: list[Any]
    tolerance: float  # relative, of the least precise array
    itself: bool
    t: Any
    dt: Any
    points: Any

    def phi(self, t: Any) -> Any:
        return gnp.sum(self.vector(t))

    def vector(self, t: Any) -> Any:
        """The terms of phi."""
        args, kwargs = self._arguments(t)
        ys = outputs(self.op(*args, **kwargs))
        parts = zip(ys, self.scales, self.weights, strict=True)
        return gnp.concatenate([terms(y, scale, w, CURVATURE) for y, scale, w in parts])

    def _arguments(self, t: Any) -> Any:
        rest = iter(self.directions)

        def moved(x: Any) -> Any:
            if not (is_array(x) and is_floating(x)):
                return x
            vs = next(rest)
            if self.itself:
                return t if vs is self.first else x
            return x if vs is None else shifted(x, t, vs)

        return trees.map(moved, (self.args, self.kwargs))

    @property
    def count(self) -> int:
        """How many floating arguments there are."""
        return len(self.directions)

    @property
    def first(self) -> Any:
        """The directions of the first argument that is moved."""
        return next(vs for vs in self.directions if vs is not None)

    def moving_only(self, i: int) -> Scalar:
        """The same as a function of one of the arguments alone."""
        one = [vs if i == k else None for k, vs in enumerate(self.directions)]
        return replace(self, directions=one)

    def with_op(self, op: Callable[..., Any]) -> Scalar:
        return replace(self, op=op)

    def at(self, t: Any) -> Scalar:
        return replace(self, t=t)

    def at_point(self, t: np.ndarray) -> Scalar:
        """At a point that is given by its coordinates along the directions."""
        if self.itself:
            t = number(t, self.t)
            return self.at(shifted(self.t, t, self.first))
        return self.at(number(t, self.t))

    def contracted(self, result: Any, kind: str) -> np.ndarray | None:
        """A result along the directions."""
        if result is None:
            return None
        found = self.kit.numpy(result)
        if not self.itself or kind == TANGENT:
            return found
        vs = np.array([self.kit.numpy(v) for v in self.first])
        dims = vs.ndim - 1
        return np.tensordot(found, np.moveaxis(vs, 0, -1), dims)

    def by_keyword(self, names: list[str]) -> Scalar:
        """The same, with the operation called by keywords."""
        kwargs = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        return replace(self, args=self.args[len(names) :], kwargs=kwargs)

    def differentiated_itself(self, i: int) -> Scalar | None:
        """The same as a function of an argument itself; None if that is complex."""
        x, vs = floating((self.args, self.kwargs))[i], self.directions[i]
        if np.iscomplexobj(self.kit.numpy(x)):
            return None
        at = [shifted(x, number(p, x), vs) for p in POINTS]
        zero = alike(np.zeros(tuple(x.shape)), x)
        return replace(
            self.moving_only(i),
            itself=True,
            t=x,
            dt=shifted(zero, number(DIRECTION, x), vs),
            points=gnp.stack(at),
        )


def floating(tree: Any) -> list[Any]:
    """The arrays of floating numbers in a tree."""
    return [x for x in trees.leaves(tree) if is_array(x) and is_floating(x)]


def outputs(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in trees.leaves(tree) if is_floating(y)]
