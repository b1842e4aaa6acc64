"""The truth, settled without Gradsmith: each framework's gradient beside differences.

The operation's own forward is differentiated by Ridders' method (central differences at
seven steps, extrapolated; the entry of the table with the least change is taken, and
the change is its error), in float64 wherever the operation takes float64. Compared are
single elements and whole directions, for several draws of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .case import EDGE, RIGHT, WRONG, Case

DRAWS = 2  # of inputs of the same kind
ELEMENTS, DIRECTIONS = 12, 3  # compared in each draw
STEPS, SHRINK = 7, 2.0
TOLERANCE = {np.dtype("float64"): 1e-6, np.dtype("float32"): 5e-3}

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Finding:
    """What the oracle measured."""

    first: str  # "agrees", "differs" or "not finite", in the worst draw
    error: float  # the largest, relative to the largest derivative
    dtype: str
    second: str  # the same of second order, or why there is none

    def fits(self, truth: str) -> bool:
        """Whether the written truth is what was measured."""
        if truth == RIGHT:
            return self.first == "agrees"
        if truth == EDGE:
            return self.first != "differs"
        if truth == WRONG:
            return self.first != "agrees"
        return self.first == "differs"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(case: Case) -> Finding:
    with _precision(case):
        draws = [_compare(case, seed) for seed in range(DRAWS)]
    return max(draws, key=lambda found: (_RANK[found.first], found.error))


_RANK = {"agrees": 0, "not finite": 1, "differs": 2}


def _precision(case: Case) -> Any:
    if case.framework != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)


def _compare(case: Case, seed: int) -> Finding:
    op, *inputs = case.build(seed)
    problem = PROBLEMS[case.framework](op, inputs)
    xs, dtype = problem.widest()
    random = np.random.default_rng(seed + 1000)
    ys = problem.value(xs)
    dys = [random.normal(size=y.shape).astype(y.dtype) for y in ys]
    grads = problem.vjp(xs, dys)

    def along(vs: Arrays) -> Callable[[float], float]:
        def phi(t: float) -> float:
            moved = [(x + t * v).astype(x.dtype) for x, v in zip(xs, vs, strict=True)]
            try:
                values = problem.value(moved)
            except Exception:
                return float("nan")
            return sum(
                float(np.sum(y.astype("float64") * dy))
                for y, dy in zip(values, dys, strict=True)
            )

        return phi

    pairs = []
    for vs in _directions(xs, random):
        vs = [0 * v if i in case.data else v for i, v in enumerate(vs)]
        got = sum(
            float(np.sum(g.astype("float64") * v))
            for g, v in zip(grads, vs, strict=True)
        )
        pairs.append((got, *ridders(along(vs), 0.02 if dtype == "float64" else 0.1)))
    second = _second(problem, xs, dys, random) if dtype == "float64" else "not measured"
    tolerance = max(TOLERANCE[np.dtype(dtype)], case.accuracy)
    return _judged(np.array(pairs), dtype, tolerance, second)


def _judged(pairs: np.ndarray, dtype: str, tolerance: float, second: str) -> Finding:
    got, expected, error = pairs.T
    known = np.isfinite(expected)  # elsewhere there is no derivative to compare with
    if not np.all(np.isfinite(got[known])):
        return Finding("not finite", float("nan"), dtype, second)
    if not known.any():
        return Finding("not finite", float("nan"), dtype, second)
    got, expected, error = got[known], expected[known], error[known]
    scale = max(np.abs(expected).max(), np.abs(got).max(), 1e-300)
    off = np.abs(got - expected)
    differs = off > np.maximum(8 * error, tolerance * scale)
    said = "differs" if differs.any() else "agrees"
    return Finding(said, float(off.max() / scale), dtype, second)


def _directions(xs: Arrays, random: np.random.Generator) -> list[Arrays]:
    """Single elements, all of them if they are few, and random directions."""
    places = [(i, j) for i, x in enumerate(xs) for j in range(x.size)]
    if len(places) > ELEMENTS:
        chosen = random.choice(len(places), ELEMENTS, replace=False)
        places = [places[k] for k in chosen]
    found = []
    for i, j in places:
        vs = [np.zeros(x.shape) for x in xs]
        vs[i].flat[j] = max(abs(float(xs[i].flat[j])), 0.1)
        found.append(vs)
    sizes = [0.1 + np.abs(x) for x in xs]
    found += [
        [random.normal(size=s.shape) * s for s in sizes] for _ in range(DIRECTIONS)
    ]
    return [[_alike(v, x) for v, x in zip(vs, xs, strict=True)] for vs in found]


def _alike(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A direction that leaves a symmetric matrix symmetric."""
    if x.ndim == 2 and x.shape[0] == x.shape[1] > 1 and np.array_equal(x, x.T):
        return (v + v.T) / 2
    return v


def ridders(phi: Callable[[float], float], step: float) -> tuple[float, float]:
    """The derivative at 0, and how far the extrapolation still moves.

    >>> value, error = ridders(lambda t: np.exp(3 * t), 0.1)
    >>> abs(value - 3) < 1e-10
    True
    """
    table = np.full((STEPS, STEPS), np.nan)
    best, error = float("nan"), float("inf")
    for i in range(STEPS):
        h = step / SHRINK**i
        table[i, 0] = (phi(h) - phi(-h)) / (2 * h)
        factor = 1.0
        for j in range(1, i + 1):
            factor *= SHRINK**2
            table[i, j] = (table[i, j - 1] * factor - table[i - 1, j - 1]) / (
                factor - 1
            )
            change = max(
                abs(table[i, j] - table[i, j - 1]),
                abs(table[i, j] - table[i - 1, j - 1]),
            )
            if change < error:
                best, error = float(table[i, j]), float(change)
    return best, error


def _second(problem: Any, xs: Arrays, dys: Arrays, random: np.random.Generator) -> str:
    """The gradient of the gradient beside differences of the gradient."""
    us = [random.normal(size=x.shape) for x in xs]
    try:
        grads = problem.second(xs, dys, us)
    except Exception as error:
        return f"raises {type(error).__name__}"
    if not all(np.isfinite(g).all() for g in grads):
        return "not finite"
    vs = [_alike(random.normal(size=x.shape) * (0.1 + np.abs(x)), x) for x in xs]
    got = sum(float(np.sum(g * v)) for g, v in zip(grads, vs, strict=True))

    def phi(t: float) -> float:
        moved = [x + t * v for x, v in zip(xs, vs, strict=True)]
        first = problem.vjp(moved, dys)
        return sum(float(np.sum(g * u)) for g, u in zip(first, us, strict=True))

    expected, error = ridders(phi, 0.02)
    off = abs(got - expected)
    if off <= max(8 * error, 1e-6 * max(abs(expected), abs(got))):
        return "agrees"
    return "differs"


class Problem:
    """A function of a framework as one from NumPy arrays to NumPy arrays."""

    def __init__(self, op: Any, inputs: list[Any]) -> None:
        self.op = op
        self.leaves, self.tree = self.flatten(inputs)
        self.places = [i for i, x in enumerate(self.leaves) if self.is_float(x)]

    def widest(self) -> tuple[Arrays, str]:
        """The inputs in float64, if the operation takes them and answers in it."""
        xs = [self.numpy(self.leaves[i]) for i in self.places]
        wide = [x.astype("float64") for x in xs]
        try:
            ys = self.value(wide)
            self.vjp(wide, [np.ones_like(y) for y in ys])
        except Exception:
            return xs, "float32"
        if any(y.dtype != "float64" for y in ys):
            return xs, "float32"
        return wide, "float64"

    def arguments(self, arrays: list[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for i, x in zip(self.places, arrays, strict=True):
            leaves[i] = x
        return self.unflatten(leaves)

    def outputs(self, arrays: list[Any]) -> list[Any]:
        out, _ = self.flatten(self.op(*self.arguments(arrays)))
        return [y for y in out if self.is_float(y)]

    flatten: Any
    unflatten: Any
    is_float: Any
    numpy: Any


class TorchProblem(Problem):
    """Parameters of a module are inputs as well."""

    def __init__(self, op: Any, inputs: list[Any]) -> None:
        import torch

        if isinstance(op, torch.nn.Module):
            module, count = op, len(inputs)
            trained = {n: p for n, p in module.named_parameters() if p.requires_grad}
            names = list(trained)
            inputs = [*inputs, *(p.detach() for p in trained.values())]

            def op(*xs: Any) -> Any:
                state = dict(zip(names, xs[count:], strict=True))
                wide = any(p.dtype == torch.float64 for p in state.values())
                buffers = {
                    name: b.double() if wide and b.is_floating_point() else b.clone()
                    for name, b in module.named_buffers()
                }
                torch.manual_seed(0)
                call = torch.func.functional_call
                return call(module, {**state, **buffers}, xs[:count])

        super().__init__(op, inputs)

    def flatten(self, tree: Any) -> Any:
        from torch.utils._pytree import tree_flatten

        return tree_flatten(tree)

    def unflatten(self, leaves: Any) -> Any:
        from torch.utils._pytree import tree_unflatten

        return tree_unflatten(leaves, self.tree)

    def is_float(self, x: Any) -> bool:
        import torch

        return isinstance(x, torch.Tensor) and x.is_floating_point()

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x.detach())

    def _inputs(self, xs: Arrays) -> list[Any]:
        import torch

        return [torch.tensor(x, requires_grad=True) for x in xs]

    def value(self, xs: Arrays) -> Arrays:
        return [self.numpy(y) for y in self.outputs(self._inputs(xs))]

    def _grad(self, y: Any, ts: list[Any], **options: Any) -> list[Any]:
        import torch

        options = {"retain_graph": True, **options}
        try:
            grads = torch.autograd.grad(y, ts, allow_unused=True, **options)
        except RuntimeError as error:
            if ".grad()" not in str(error):
                raise
            torch.autograd.backward(y, **options)  # what takes that alone
            grads = [t.grad for t in ts]
        return [
            torch.zeros_like(t) if g is None else g
            for g, t in zip(grads, ts, strict=True)
        ]

    def _first(self, ts: list[Any], dys: Arrays, **options: Any) -> list[Any]:
        import torch

        ys = self.outputs(ts)
        total = sum((y * torch.tensor(dy)).sum() for y, dy in zip(ys, dys, strict=True))
        return self._grad(total, ts, **options)

    def vjp(self, xs: Arrays, dys: Arrays) -> Arrays:
        return [self.numpy(g) for g in self._first(self._inputs(xs), dys)]

    def second(self, xs: Arrays, dys: Arrays, us: Arrays) -> Arrays:
        import torch

        ts = self._inputs(xs)
        grads = self._first(ts, dys, create_graph=True)
        total = sum((g * torch.tensor(u)).sum() for g, u in zip(grads, us, strict=True))
        if not total.requires_grad:
            return [np.zeros_like(x) for x in xs]
        return [self.numpy(g) for g in self._grad(total, ts)]


class TensorFlowProblem(Problem):
    def flatten(self, tree: Any) -> Any:
        import tensorflow as tf

        return tf.nest.flatten(tree), tree

    def unflatten(self, leaves: Any) -> Any:
        import tensorflow as tf

        return tf.nest.pack_sequence_as(self.tree, leaves)

    def is_float(self, x: Any) -> bool:
        import tensorflow as tf

        return isinstance(x, tf.Tensor | tf.Variable) and x.dtype.is_floating

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    @cached_property
    def forward(self) -> Any:
        import tensorflow as tf

        return tf.function(self.outputs)

    def value(self, xs: Arrays) -> Arrays:
        import tensorflow as tf

        return [self.numpy(y) for y in self.forward([tf.constant(x) for x in xs])]

    def _first(self, ts: list[Any], dys: Arrays) -> list[Any]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(ts)
            ys = self.outputs(ts)
        return tape.gradient(
            ys, ts, [tf.constant(dy) for dy in dys], unconnected_gradients="zero"
        )

    def vjp(self, xs: Arrays, dys: Arrays) -> Arrays:
        import tensorflow as tf

        grads = self._first([tf.constant(x) for x in xs], dys)
        return [self.numpy(tf.convert_to_tensor(g)) for g in grads]

    def second(self, xs: Arrays, dys: Arrays, us: Arrays) -> Arrays:
        import tensorflow as tf

        ts = [tf.constant(x) for x in xs]
        with tf.GradientTape() as tape:
            tape.watch(ts)
            grads = self._first(ts, dys)
        grads = tape.gradient(
            grads, ts, [tf.constant(u) for u in us], unconnected_gradients="zero"
        )
        return [self.numpy(tf.convert_to_tensor(g)) for g in grads]


class JaxProblem(Problem):
    def flatten(self, tree: Any) -> Any:
        import jax

        return jax.tree_util.tree_flatten(tree)

    def unflatten(self, leaves: Any) -> Any:
        import jax

        return jax.tree_util.tree_unflatten(self.tree, leaves)

    def is_float(self, x: Any) -> bool:
        import jax.numpy as jnp

        return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    @cached_property
    def forward(self) -> Any:
        import jax

        return jax.jit(self.outputs)

    def value(self, xs: Arrays) -> Arrays:
        import jax.numpy as jnp

        return [self.numpy(y) for y in self.forward([jnp.asarray(x) for x in xs])]

    def _first(self, ts: list[Any], dys: Arrays) -> list[Any]:
        import jax
        import jax.numpy as jnp

        _, pull = jax.vjp(lambda *xs: self.outputs(list(xs)), *ts)
        return list(pull([jnp.asarray(dy) for dy in dys]))

    @cached_property
    def backward(self) -> Any:
        import jax

        return jax.jit(self._first)

    def vjp(self, xs: Arrays, dys: Arrays) -> Arrays:
        import jax.numpy as jnp

        grads = self.backward([jnp.asarray(x) for x in xs], dys)
        return [self.numpy(g) for g in grads]

    def second(self, xs: Arrays, dys: Arrays, us: Arrays) -> Arrays:
        import jax
        import jax.numpy as jnp

        _, pull = jax.vjp(
            lambda *ts: self._first(list(ts), dys), *[jnp.asarray(x) for x in xs]
        )
        return [self.numpy(g) for g in pull([jnp.asarray(u) for u in us])]


PROBLEMS = {
    "torch": TorchProblem,
    "tensorflow": TensorFlowProblem,
    "jax": JaxProblem,
}
