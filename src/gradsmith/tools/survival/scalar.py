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
from functools import partial
from typing import Any

import numpy as np

from ... import numpy as gnp
from ...core import trees
from ...core.arrays import is_array
from ...core.errors import GradsmithError, annotate
from ...frameworks._transformations import TANGENT
from ...operations.info import OperationInfo, is_floating

CURVATURE = 0.3819  # so that the derivative 1 + 2 c u is zero for no simple u
DIRECTION = np.array([0.75, 1.25])
# Exact in every dtype, and near enough to stay in the operation's domain.
POINTS = np.array([[0.0, 0.0], [1 / 64, -1 / 32]])


@dataclass(frozen=True)
class Scalar:
    """phi, with the points and directions at which it is differentiated."""

    numpy: Callable[[Any], np.ndarray]  # in double precision
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
        ys = _outputs(self.op(*args, **kwargs))
        parts = zip(ys, self.scales, self.weights, strict=True)
        return gnp.concatenate([_terms(y, scale, w) for y, scale, w in parts])

    def _arguments(self, t: Any) -> Any:
        rest = iter(self.directions)

        def moved(x: Any) -> Any:
            if not (is_array(x) and is_floating(x)):
                return x
            vs = next(rest)
            if self.itself:
                return t if vs is self.first else x
            return x if vs is None else _shifted(x, t, vs)

        return trees.map(moved, (self.args, self.kwargs))

    @property
    def dtype(self) -> Any:
        return self.weights[0].dtype

    @property
    def arrays(self) -> list[Any]:
        """What phi is made of, and the operation's static arguments."""
        return trees.leaves(self._parts)

    def with_arrays(self, arrays: list[Any]) -> Scalar:
        """The same with others in place of `arrays`."""
        args, kwargs, vs, ws = trees.unflatten(self._parts, arrays)
        return replace(self, args=args, kwargs=kwargs, directions=vs, weights=ws)

    @property
    def _parts(self) -> Any:
        return self.args, self.kwargs, self.directions, self.weights

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
            t = _number(t, self.t)
            return self.at(_shifted(self.t, t, self.first))
        return self.at(_number(t, self.t))

    def contracted(self, result: Any, kind: str) -> np.ndarray | None:
        """A result along the directions."""
        if result is None:
            return None
        found = self.numpy(result)
        if not self.itself or kind == TANGENT:
            return found
        vs = np.array([self.numpy(v) for v in self.first])
        dims = vs.ndim - 1
        return np.tensordot(found, np.moveaxis(vs, 0, -1), dims)

    def by_keyword(self, names: list[str]) -> Scalar:
        """The same, with the operation called by keywords."""
        kwargs = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        return replace(self, args=self.args[len(names) :], kwargs=kwargs)

    def differentiated_itself(self, i: int) -> Scalar | None:
        """The same as a function of an argument itself; None if that is complex."""
        x, vs = _floating((self.args, self.kwargs))[i], self.directions[i]
        if np.iscomplexobj(self.numpy(x)):
            return None
        at = [_shifted(x, _number(p, x), vs) for p in POINTS]
        zero = _alike(np.zeros(tuple(x.shape)), x)
        return replace(
            self.moving_only(i),
            itself=True,
            t=x,
            dt=_shifted(zero, _number(DIRECTION, x), vs),
            points=gnp.stack(at),
        )


# --- how it is chosen ----------------------------------------------------------------


def scalar_of(
    arrays: Any, info: OperationInfo, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Scalar:
    """Choose directions and weights; runs the operation once."""
    random = np.random.default_rng(0)
    numpy = partial(_doubles, arrays)
    with annotate(f"raised by {info.name} itself, called with the given inputs"):
        returned = info.call(*args, **kwargs)
    xs, ys = _floating((args, kwargs)), _outputs(returned)
    if not ys:
        raise GradsmithError(
            f"{info.name} has no output with a gradient: it returned "
            f"{type(returned).__name__}, without any array of floating numbers"
        )
    values = [numpy(y) for y in ys]
    sizes = [y.size * (1 + np.iscomplexobj(y)) for y in values]
    return Scalar(
        numpy,
        info.call,
        args,
        kwargs,
        directions=[_directions(numpy(x), x, random) for x in xs],
        scales=[_size(y) for y in values],
        weights=[_number(random.uniform(0.5, 1.5, n), xs[0]) for n in sizes],
        tolerance=max(_tolerance(x) for x in (*xs, *ys)),
        itself=False,
        t=_number(POINTS[0], xs[0]),
        dt=_number(DIRECTION, xs[0]),
        points=_number(POINTS, xs[0]),
    )


def _directions(value: np.ndarray, x: Any, random: np.random.Generator) -> list[Any]:
    parts = (1, 1j) if np.iscomplexobj(value) else (1,)

    def direction() -> Any:
        return sum(part * random.uniform(0.5, 1.5, value.shape) for part in parts)

    return [_alike(_size(value) * direction(), x) for _ in range(2)]


def _size(x: np.ndarray) -> float:
    """The mean of the absolute values, or 1 if there is none to go by."""
    size = float(np.mean(np.abs(x))) if x.size else 0.0
    return size if 0 < size < np.inf else 1.0


def _tolerance(x: Any) -> float:
    """Half of a dtype's binary digits."""
    return max(1e-6, gnp.finfo(x if hasattr(x, "dtype") else "float64").eps ** 0.5)


# --- arrays of the framework ---------------------------------------------------------


def _floating(tree: Any) -> list[Any]:
    """The arrays of floating numbers in a tree."""
    return [x for x in trees.leaves(tree) if is_array(x) and is_floating(x)]


def _outputs(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in trees.leaves(tree) if is_floating(y)]


def _doubles(arrays: Any, x: Any) -> np.ndarray:
    x = arrays.numpy(x)
    return x.astype(complex if np.iscomplexobj(x) else float, copy=False)


def _number(x: np.ndarray, like: Any) -> Any:
    """Real values in the precision of an array, single at least."""
    dtype = "float64" if gnp.finfo(like).bits == 64 else "float32"
    return gnp.asarray(x, dtype, like=like)


def _alike(x: np.ndarray, like: Any) -> Any:
    return gnp.asarray(x, like.dtype, like=like)


def _shifted(x: Any, t: Any, vs: Any) -> Any:
    t = gnp.astype(t, x.dtype)
    first, second = gnp.unstack(t)  # not every framework differentiates t[0] twice
    return x + first * vs[0] + second * vs[1]


def _terms(y: Any, scale: float, w: Any) -> Any:
    is_complex = "complex" in str(y.dtype)
    parts = [gnp.real(y), gnp.imag(y)] if is_complex else [y]
    flat = [gnp.astype(gnp.reshape(part, (-1,)), w.dtype) for part in parts]
    u = gnp.concatenate(flat) / scale
    return w * (u + CURVATURE * u * u)
