"""Derivatives of functions of trees of arrays, with JAX's signatures.

Plain arrays in, plain arrays out; inside another transform or under a tape, tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from . import _tree
from ._errors import GradsmithError
from ._forward import ForwardAccumulator, checked_tangent
from ._gradient_tape import GradientTape, basis, seed
from ._tape import Traced, state
from ._tensor import Tensor, _tell_lost, unwrap, wrap

Argnums = int | Sequence[int]


def grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function.

    >>> grad(lambda x: np.sum(np.sin(x)))(np.zeros(2))
    array([1., 1.])

    Parameters
    ----------
    argnums : which argument (or arguments) to differentiate with respect to
    has_aux : `fun` returns `(value, aux)`, and so does the result: `(gradient, aux)`
    """
    both = value_and_grad(fun, argnums, has_aux)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, dx = both(*args, **kwargs)
        return (dx, value[1]) if has_aux else dx

    return gradient


def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the value and the gradient.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), array(6.))
    """

    @wraps(fun)
    def both(*args: Any, **kwargs: Any) -> Any:
        plain = _is_plain(args)
        picked, call = _pick(fun, args, kwargs, argnums)
        xs = _lift(picked, _name(fun))
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(xs)
            result = call(xs)
        value, aux = _split_aux(fun, result, has_aux)
        _require_scalar(fun, value)
        dx = tape.gradient(value, xs, unconnected_gradients="zero")
        dx = dx if isinstance(argnums, Sequence) else dx[0]
        if plain:
            value, aux, dx = _lower(value), _lower(aux), _lower(dx)
        return ((value, aux) if has_aux else value), dx

    return both


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value and a function from its cotangent to those of the primals.

    >>> y, pull = vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> pull(1.0)
    (array(5.), array(2.))
    """
    plain = _is_plain(primals)
    xs = _lift(primals, _name(fun))
    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    tape.lifts, tape.records_one = False, True  # it is closed before it is walked
    with tape:
        tape.watch(xs)
        result = fun(*xs)
    y, aux = _split_aux(fun, result, has_aux)

    def pull(dy: Any) -> Any:
        dys = _tree.map(lambda part, d: seed(part, d), y, dy)
        dx = tape.gradient(y, xs, dys, unconnected_gradients="zero")
        return _lower(dx) if plain and _is_plain(dy) else dx

    value = _lower(y) if plain else y
    return (value, pull, _lower(aux) if plain else aux) if has_aux else (value, pull)


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """Return the value and its tangent: the derivative in one direction.

    >>> jvp(lambda x: x**3, (2.0,), (1.0,))
    (np.float64(8.0), np.float64(12.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise GradsmithError(
            "jvp wants its primals and tangents as tuples, one entry per argument: "
            "gs.jvp(f, (x,), (dx,))"
        )
    plain = _is_plain((primals, tangents))
    xs = _lift(primals, _name(fun))
    dxs = _tree.map(lambda x, dx: checked_tangent(x, dx, "a tangent"), xs, tangents)
    with ForwardAccumulator(xs, dxs) as accumulator:
        y = fun(*xs)
    dy = accumulator.jvp(y, unconnected_gradients="zero")
    return (_lower(y), _lower(dy)) if plain else (y, dy)


def jacobian(
    fun: Callable[..., Any], argnums: Argnums = 0, mode: str = "auto"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian, shape output.shape + input.shape.

    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])

    Parameters
    ----------
    mode : "reverse" (a walk back per output element), "forward" (a run per input
        element), or "auto": whichever needs fewer
    """
    if mode not in ("auto", "forward", "reverse"):
        raise GradsmithError(f"mode must be auto, forward or reverse, not {mode!r}")

    @wraps(fun)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        plain = _is_plain(args)
        picked, call = _pick(fun, args, kwargs, argnums)
        y, pull = vjp(lambda *xs: call(xs), *_lift(picked, _name(fun)))
        inputs = sum(np.size(x) for x in _tree.leaves(picked))
        outputs = sum(np.size(part) for part in _tree.leaves(y))
        if mode == "forward" or (mode == "auto" and inputs < outputs):
            rows = _by_columns(call, picked, y)
        else:
            rows = _by_rows(pull, picked, y)
        pick = lambda part: part if isinstance(argnums, Sequence) else part[0]  # noqa: E731
        result = _tree.unflatten(y, [pick(row) for row in rows])
        return _lower(result) if plain else result

    return matrix


def hessian(fun: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(grad(fun, argnums), argnums, mode="forward")


def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> Any:
    """Return the Hessian of a scalar function times a vector, forward over reverse.

    >>> hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.ones(2),))
    array([ 6., 12.])
    """
    argnums = tuple(range(len(primals)))
    _, products = jvp(grad(fun, argnums), primals, tangents)
    return products if len(primals) > 1 else products[0]


def stop_gradient(x: Any) -> Any:
    """Return the same values as constants, which no tape follows."""

    def stopped(leaf: Any) -> Any:
        if not isinstance(leaf, Traced):
            return leaf
        _tell_lost([leaf], "gs.stop_gradient", "it makes its argument a constant")
        return wrap(leaf.value)

    return _tree.map(stopped, x)


# --- helpers -------------------------------------------------------------------------


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", repr(fun))


def _is_plain(tree: Any) -> bool:
    """Whether results go back to somebody who works with plain arrays."""
    traced = any(isinstance(leaf, Traced) for leaf in _tree.leaves(tree))
    return not traced and not state.recorders


def _lift(tree: Any, name: str) -> Any:
    """New tensors of the leaves, still followed by the recorders that followed those."""

    def lift(leaf: Any) -> Tensor:
        if isinstance(leaf, Traced):
            marks = ((r.key, r.mark_of(leaf)) for r in state.recorders)
            return wrap(leaf.value, {k: mark for k, mark in marks if mark is not None})
        try:
            value = np.asarray(leaf)
        except Exception as error:
            error.add_note(f"while reading an argument of {name} as an array")
            raise
        if value.dtype.kind not in "fcO" or (value.dtype == object and not value.shape):
            raise GradsmithError(
                f"{name} can't be differentiated with respect to an argument of type "
                f"{type(leaf).__name__} and dtype {value.dtype}: only floating and "
                "complex arrays have gradients. Choose others by argnums=..., or "
                "convert it: np.asarray(x, float)."
            )
        return wrap(value)

    return _tree.map(lift, tree)


def _lower(tree: Any) -> Any:
    return _tree.map(unwrap, tree)


def _pick(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: Argnums
) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """The chosen arguments, and the function of these alone."""
    chosen = argnums if isinstance(argnums, Sequence) else (argnums,)
    for i in chosen:
        if not -len(args) <= i < len(args):
            raise GradsmithError(
                f"{_name(fun)} was called with {len(args)} positional arguments, so "
                f"there is none with number {i} to differentiate with respect to"
            )
    chosen = [i % len(args) for i in chosen]

    def call(xs: Sequence[Any]) -> Any:
        full = list(args)
        for i, x in zip(chosen, xs, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return tuple(args[i] for i in chosen), call


def _split_aux(fun: Any, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise GradsmithError(f"with has_aux, {_name(fun)} must return (value, aux)")
    return result


def _require_scalar(fun: Any, value: Any) -> None:
    if np.shape(value) != () or not hasattr(value, "shape") and _tree.leaves(value) != [value]:
        got = f"shape {np.shape(value)}" if hasattr(value, "shape") else type(value).__name__
        raise GradsmithError(
            f"the gradient is that of one number, and {_name(fun)} returned {got}. Sum "
            "it, or use gs.jacobian (all derivatives) or gs.vjp (with a cotangent)."
        )


def _by_rows(pull: Any, xs: Any, y: Any) -> list[Any]:
    """One walk back per element of the output."""
    flat = _tree.leaves(y)
    results = []
    for k, part in enumerate(flat):
        rows = []
        for e in basis(part):
            dys = [e if j == k else np.zeros_like(p) for j, p in enumerate(flat)]
            rows.append(pull(_tree.unflatten(y, dys)))
        results.append(_stack(rows, xs, part, axis=0))
    return results


def _by_columns(call: Any, xs: Any, y: Any) -> list[Any]:
    """One run per element of the input."""
    flat = _tree.leaves(xs)
    columns: list[list[list[Any]]] = []
    for k, x in enumerate(flat):
        runs = []
        for e in basis(np.asarray(unwrap(x))):
            dxs = [e if j == k else np.zeros_like(unwrap(p)) for j, p in enumerate(flat)]
            _, dy = jvp(lambda *a: call(a), xs, _tree.unflatten(xs, dxs))
            runs.append(_tree.leaves(dy))
        columns.append(runs)
    results = []
    for j, part in enumerate(_tree.leaves(y)):
        per_input = [
            _assemble([run[j] for run in runs], np.shape(part) + np.shape(x), part, -1)
            for runs, x in zip(columns, flat, strict=True)
        ]
        results.append(_tree.unflatten(xs, per_input))
    return results


def _stack(rows: list[Any], xs: Any, part: Any, axis: int) -> Any:
    flat_rows = [_tree.leaves(row) for row in rows]
    parts = [
        _assemble([row[k] for row in flat_rows], np.shape(part) + np.shape(x), x, axis)
        for k, x in enumerate(_tree.leaves(xs))
    ]
    return _tree.unflatten(xs, parts)


def _assemble(rows: list[Any], shape: tuple[int, ...], like: Any, axis: int) -> Any:
    if not rows:
        return np.zeros(shape, np.asarray(unwrap(like)).dtype)
    return np.reshape(np.stack(rows, axis=axis), shape)
