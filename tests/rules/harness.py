"""Check one call of a ruled function against differences, in every way it can be used.

A case is a function of some arrays. It is checked on the line x + t*v, projected on a
random cotangent u, so that one number stands for the whole Jacobian: ⟨u, J v⟩.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

import gradsmith as gs

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))


@dataclass(frozen=True)
class Case:
    """`fn(*args, **kwargs)`, differentiated with respect to its floating arrays."""

    fn: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    order: int = 2  # up to which it is differentiable at this point
    step: float = 1e-3  # of the differences; less where higher derivatives are large
    float32: bool = True  # whether the function keeps float32 in NumPy itself

    def __str__(self) -> str:
        if self.name:
            return self.name
        shapes = ",".join(str(np.shape(a)).replace(" ", "") for a in self.args)
        return f"{gs.core.rule.name_of(self.fn)}-{shapes}"


def floating(tree: Any) -> list[np.ndarray]:
    return [x for x in gs.core.trees.leaves(tree) if _is_float(x)]


def _is_float(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc"


def as_function(case: Case) -> tuple[Callable[..., list[Any]], list[np.ndarray]]:
    """The case as a function from its floating arrays to its floating outputs."""
    args = list(case.args)

    def fn(*xs: Any) -> list[Any]:
        rest = iter(xs)
        full = gs.core.trees.map(lambda x: next(rest) if _is_float(x) else x, args)
        outputs = gs.core.trees.leaves(case.fn(*full, **case.kwargs))
        return [y for y in outputs if y.dtype.kind in "fc"]

    return fn, floating(args)


def inner(us: Sequence[Any], vs: Sequence[Any]) -> Any:
    """The real inner product of two lists of arrays."""
    total = 0.0
    for u, v in zip(us, vs, strict=True):
        total = total + np.sum(np.real(np.conj(u) * v))
    return total


def random_like(rng: np.random.Generator, xs: Sequence[Any]) -> list[np.ndarray]:
    return [_random(rng, np.shape(x), x.dtype) for x in xs]


def _random(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    v = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        v = v + 1j * rng.standard_normal(shape)
    return np.asarray(v, dtype)


def difference(f: Callable[[float], Any], h: float) -> tuple[float, float]:
    """f'(0) by central differences and Richardson's extrapolation, and its error."""
    d = [(float(f(h / 2**k)) - float(f(-h / 2**k))) / (2 * h / 2**k) for k in range(4)]
    table = [d]
    for order in range(1, 4):
        factor = 4**order
        table.append([(factor * b - a) / (factor - 1) for a, b in pairwise(table[-1])])
    value = table[3][0]
    noise = 1e-13 * abs(float(f(0.0))) / h + 1e-12 * abs(value)
    return value, abs(value - table[2][-1]) + noise


def check(case: Case, seed: int = 0) -> None:
    """Value, reverse, forward, adjointness, second order twice, and float32."""
    rng = np.random.default_rng(seed)
    fn, xs = as_function(case)
    assert xs, "the case has no floating array"
    ys = fn(*xs)
    us, vs = random_like(rng, ys), random_like(rng, xs)

    traced, pull = gs.vjp(fn, *xs)
    for y, t in zip(ys, traced, strict=True):
        np.testing.assert_array_equal(t, y, err_msg="value differs from NumPy's")
        assert t.dtype == y.dtype, f"value has dtype {t.dtype}, NumPy's {y.dtype}"

    def along(t: float) -> Any:
        return inner(us, fn(*[x + t * v for x, v in zip(xs, vs, strict=True)]))

    truth, error = difference(along, case.step)
    _close(inner(pull(us), vs), truth, error, "reverse mode")
    _, tangents = gs.jvp(fn, xs, vs)
    _close(inner(us, tangents), truth, error, "forward mode")
    scale = 1e-10 * (abs(truth) + sum(np.abs(u).sum() for u in us))
    assert abs(inner(us, tangents) - inner(pull(us), vs)) <= scale, "modes disagree"

    if case.order > 1:
        _check_second_order(rng, case, fn, xs, us, vs)
    if case.float32:
        _check_float32(case)


def _check_second_order(
    rng: np.random.Generator, case: Case, fn: Any, xs: Any, us: Any, vs: Any
) -> None:
    ws = random_like(rng, xs)

    def slope(*point: Any) -> Any:
        """⟨J'u, w⟩ as a function of the point."""
        _, pull = gs.vjp(fn, *point)
        return inner(pull(us), ws)

    def along(t: float) -> Any:
        return slope(*[x + t * v for x, v in zip(xs, vs, strict=True)])

    truth, error = difference(along, case.step)
    argnums = tuple(range(len(xs)))
    reverse = inner(gs.grad(slope, argnums)(*xs), vs)
    _close(reverse, truth, error, "reverse over reverse")
    _, forward = gs.jvp(slope, xs, vs)
    _close(forward, truth, error, "forward over reverse")


def _check_float32(case: Case) -> None:
    single = {"f": np.float32, "c": np.complex64}
    args = gs.core.trees.map(
        lambda x: x.astype(single[x.dtype.kind]) if _is_float(x) else x, list(case.args)
    )
    fn, xs = as_function(Case(case.fn, args, case.kwargs))
    ys, pull = gs.vjp(fn, *xs)
    for dx, x in zip(pull([np.ones_like(y) for y in ys]), xs, strict=True):
        assert dx.dtype == x.dtype, f"gradient of {x.dtype} is {dx.dtype}"
    _, dys = gs.jvp(fn, xs, xs)
    for y, dy in zip(ys, dys, strict=True):
        assert dy.dtype == y.dtype, f"tangent of {y.dtype} is {dy.dtype}"


def _close(got: Any, truth: float, error: float, what: str) -> None:
    """Within the measured error of the differences, and a floor for rounding."""
    got = float(np.real(got))
    tolerance = 20 * error + 1e-8 * abs(truth) + 1e-9
    assert abs(got - truth) <= tolerance, (
        f"{what}: {got:.10g}, by differences {truth:.10g} +- {tolerance:.1g}"
    )
