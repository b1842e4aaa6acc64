"""Derivatives of functions of trees of arrays, with JAX's signatures.

Plain arrays in, plain arrays out: new ones, which the caller may change. Inside another
transform, or under a tape, tensors. The gradient of a real function of complex values
is dL/dRe + i dL/dIm, which points uphill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from sys import getrefcount
from typing import Any, ParamSpec

import numpy as np

from . import pool, trees
from .arrays import require_plain
from .errors import GradsmithError, TapeError, type_of
from .escapes import tell_lost
from .foreign import refuse_as_tensor
from .forward import (
    MOST,
    Directions,
    ForwardAccumulator,
    TooManyTangentsError,
    checked_tangent,
)
from .gradient_tape import GradientTape, basis, seed
from .symbolic import PLAIN, Symbolic, as_plain
from .tape import Traced, marks_of, state
from .tensor import Tensor, native, readonly, unwrap, wrap

P = ParamSpec("P")
Argnums = int | Sequence[int]


def grad(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """Return a function that computes the gradient of a scalar function.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.grad(lambda x: np.sum(np.sin(x)))(np.zeros(2))
    array([1., 1.])

    `argnums` is the position of the argument to differentiate, or a tuple of them. With
    `has_aux` the function returns `(value, aux)`, and the result `(gradient, aux)`.

    Raises
    ------
    GradsmithError
        If it is given no function, or argnums are not numbers; when it is called, if
        the value is not one real number, or an argument to differentiate is not a
        floating or complex array.
    UnsupportedOperationError
        If the function calls what the engine has no rule for.
    """
    both = _value_and_grad(fun, argnums, has_aux)

    @wraps(fun)
    def gradient(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, dx = both(*args, **kwargs)
        return (dx, value[1]) if has_aux else dx

    return gradient


def value_and_grad(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes the value and the gradient.

    >>> import gradsmith as gs
    >>> gs.value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), np.float64(6.0))

    Raises
    ------
    GradsmithError
        If it is given no function, or argnums are not numbers; when it is called, if
        the value is not one real number, or an argument to differentiate is not a
        floating or complex array.
    UnsupportedOperationError
        If the function calls what the engine has no rule for.
    """
    return wraps(fun)(_value_and_grad(fun, argnums, has_aux))


def _value_and_grad(fun: Any, argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    """`value_and_grad` without a name, which takes as long as all else here."""
    _require_differentiable("grad", fun, argnums)

    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        plain = _is_plain((args, kwargs) if kwargs else args)
        picked, call = _pick(fun, args, kwargs, argnums)
        nested = not all(map(trees.is_leaf, picked))
        leaves = trees.leaves(picked) if nested else picked
        flat = [_lifted(leaf, _name(fun)) for leaf in leaves]
        tape, outside = GradientTape(watch_accessed_variables=False), state().recorders
        tape.private = True
        for x in flat:
            tape.own(x)
        result = tape.within(call, trees.unflatten(picked, flat) if nested else flat)
        if state().recorders != outside:
            raise TapeError(
                f"{_name(fun)} opened or closed a tape that is not its own to close: "
                "within a gradient, each one closes what it has opened"
            )
        value, aux = _split_aux(fun, result, has_aux)
        _require_real_number(fun, value)
        dxs: Any = tape.pulled(value, flat)
        if plain:
            value, dxs = _lowered(value), _new_arrays(dxs)
            aux = _lower_new(aux, args) if has_aux else None
        dx = trees.unflatten(picked, dxs) if nested else tuple(dxs)
        is_one = argnums.__class__ is int or not isinstance(argnums, Sequence)
        dx = dx[0] if is_one else dx
        return ((value, aux) if has_aux else value), dx

    return both


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value, and a function that maps its cotangent to those of the primals.

    >>> import gradsmith as gs
    >>> y, pull = gs.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> pull(1.0)
    (np.float64(5.0), np.float64(2.0))

    Raises
    ------
    GradsmithError
        If an argument to differentiate is not a floating or complex array; from the
        returned function, if the cotangent does not fit the value.
    UnsupportedOperationError
        If the function calls what the engine has no rule for.
    """
    return pullback(fun, primals, has_aux=has_aux, unconnected="zero")


def pullback(
    fun: Callable[..., Any], primals: Any, *, has_aux: bool = False, unconnected: str
) -> tuple[Any, ...]:
    """`vjp`, or with unconnected="none" None for a primal that nothing depends on."""
    plain = _is_plain(primals)
    xs = _lift(primals, _name(fun), copy=True)  # `pull` may need them, much later
    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    tape.lifts, tape.records_one = False, True  # it is closed before it is walked
    tape.watch(xs)
    result = tape.within(fun, *xs)
    y, aux = _split_aux(fun, result, has_aux)

    def pull(dy: Any) -> Any:
        dys = trees.map(lambda part, d: seed(part, d, "the cotangent"), y, dy)
        dx = tape.gradient(y, xs, dys, unconnected)
        return _lower_new(dx, dy) if plain and _is_plain(dy) else dx

    if plain:  # the value is read-only, since `pull` may need it too
        value, aux = trees.map(_unchanging, _lower(y)), _lower_new(aux, primals)
    else:
        value = y
    return (value, pull, aux) if has_aux else (value, pull)


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return the value and its tangent: the derivative in one direction.

    >>> import gradsmith as gs
    >>> gs.jvp(lambda x: x**3, (2.0,), (1.0,))
    (np.float64(8.0), np.float64(12.0))

    Raises
    ------
    GradsmithError
        If primals and tangents are not tuples of the same length, shapes and
        dtypes, or an argument to differentiate by is not a floating or complex
        array.
    UnsupportedOperationError
        If the function calls what has no rule in forward mode.
    """
    _require_tuples("jvp", primals, tangents)
    plain = _is_plain((primals, tangents))
    xs = _lift(tuple(primals), _name(fun))
    dxs = trees.map(
        lambda x, dx: checked_tangent(x, dx, "a tangent"), xs, tuple(tangents)
    )
    accumulator = ForwardAccumulator(xs, dxs)
    accumulator.own()
    result = accumulator.within(fun, *xs)
    y, aux = _split_aux(fun, result, has_aux)
    dy = accumulator.jvp(y, unconnected_gradients="zero")
    if plain:
        given = (primals, tangents)
        y, dy, aux = (_lower_new(part, given) for part in (y, dy, aux))
    return (y, dy, aux) if has_aux else (y, dy)


def jacobian(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    mode: str = "auto",
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian, shape output.shape + input.shape.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])

    The mode is "reverse" (a backward pass per output element), "forward" (one run for
    many input elements at once), or "auto": forward from three outputs per input on,
    else reverse. With `holomorphic` the function must be a holomorphic function of
    complex values, and the result is its complex derivative.

    Raises
    ------
    GradsmithError
        If the mode is not known; when it is called, if an argument to differentiate
        by is not a floating or complex array.
    """
    if mode not in ("auto", "forward", "reverse"):
        raise GradsmithError(f"mode must be auto, forward or reverse, not {mode!r}")
    _require_differentiable("jacobian", fun, argnums)

    @wraps(fun)
    def matrix(*args: P.args, **kwargs: P.kwargs) -> Any:
        plain = _is_plain((args, kwargs))
        picked, call = _pick(fun, args, kwargs, argnums)
        xs = _lift(picked, _name(fun))
        run: Callable[..., Any] = lambda *xs: call(xs)
        y, pull = (run(*xs), None) if mode == "forward" else vjp(run, *xs)
        if _chosen_mode(fun, mode, xs, y, holomorphic) == "forward":
            blocks = _by_columns(run, xs, y)
        else:
            blocks = _by_rows(pull, xs, y, np.conj if holomorphic else lambda row: row)
        if not isinstance(argnums, Sequence):
            blocks = [block[0] for block in blocks]
        result = trees.unflatten(y, blocks)
        return _lower_new(result) if plain else result

    return matrix


def jacrev(
    fun: Callable[P, Any], argnums: Argnums = 0, holomorphic: bool = False
) -> Callable[P, Any]:
    """`jacobian` in reverse mode: a walk back per output element, for tall inputs.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.jacrev(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])

    Raises
    ------
    GradsmithError
        When it is called, if an argument to differentiate is not a floating or
        complex array.
    """
    return jacobian(fun, argnums, "reverse", holomorphic)


def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, holomorphic: bool = False
) -> Callable[P, Any]:
    """`jacobian` in forward mode, many input elements at once: for tall outputs.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.jacfwd(lambda t: t ** np.arange(1.0, 4.0))(2.0)
    array([ 1.,  4., 12.])

    Raises
    ------
    GradsmithError
        When it is called, if an argument to differentiate is not a floating or
        complex array.
    """
    return jacobian(fun, argnums, "forward", holomorphic)


def hessian(fun: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """Return a function that computes the matrix of second derivatives.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])

    Raises
    ------
    GradsmithError
        If it is given no function, or argnums are not numbers; when it is called, if
        the value is not one real number, or an argument to differentiate is not a
        floating or complex array.
    """
    return jacobian(grad(fun, argnums), argnums, mode="forward")


def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> Any:
    """Return the Hessian of a scalar function times a vector, forward over reverse.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.ones(2),))
    array([ 6., 12.])

    Raises
    ------
    GradsmithError
        If primals and tangents are not tuples of the same length, shapes and
        dtypes, or the value is not one real number.
    """
    _require_tuples("hvp", primals, tangents)
    argnums = tuple(range(len(primals)))
    _, products = jvp(grad(fun, argnums), primals, tangents)
    return products if len(primals) > 1 else products[0]


def stop_gradient(x: Any) -> Any:
    """Return the same values as constants, which no tape follows."""

    def stopped(leaf: Any) -> Any:
        if not isinstance(leaf, Traced):
            return leaf
        tell_lost([leaf], "gs.stop_gradient", "it makes its argument a constant")
        return wrap(leaf.value)

    return trees.map(stopped, x)


# --- helpers -------------------------------------------------------------------------


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", None) or repr(fun)


def _is_plain(tree: Any) -> bool:
    """Whether results go back to somebody who works with plain arrays."""
    if state().recorders:
        return False
    if tree.__class__ is tuple and all(x.__class__ is np.ndarray for x in tree):
        return True  # 1 us less
    return not any(isinstance(leaf, Traced) for leaf in trees.leaves(tree))


def _lift(tree: Any, name: str, copy: bool = False) -> Any:
    """New tensors of the leaves, followed by the recorders that followed those."""
    return trees.map(lambda leaf: _lifted(leaf, name, copy), tree)


def _lifted(leaf: Any, name: str, copy: bool = False) -> Tensor:
    marks = None
    if leaf.__class__ is np.ndarray and leaf.dtype.isnative and not copy:
        value = leaf
    elif isinstance(leaf, Traced):
        value, marks = leaf.value, marks_of(leaf)
    else:
        require_plain(leaf, f"an argument of {name}")
        value = _read(leaf, name, copy)
    kind = value.dtype.kind
    if kind not in "fcO" or (kind == "O" and not value.shape):
        raise GradsmithError(
            f"{name} can't be differentiated with respect to an argument of type "
            f"{type(leaf).__name__} and dtype {value.dtype}: only floating and "
            "complex arrays have gradients. Choose others by argnums=..., or "
            "convert it: np.asarray(x, float)."
        )
    return wrap(value, marks)


def _read(leaf: Any, name: str, copy: bool) -> Any:
    refuse_as_tensor(leaf, f"an argument of {name}")
    if isinstance(leaf, Symbolic):
        return leaf.copy() if copy else leaf
    try:
        return native(np.array(leaf) if copy else np.asarray(leaf))
    except Exception as error:
        error.add_note(f"while reading an argument of {name} as an array")
        raise


def _lower(tree: Any) -> Any:
    """Plain arrays of the tensors; of 0-d ones scalars, as NumPy returns them."""
    return trees.map(_lowered, tree)


def _lowered(leaf: Any) -> Any:
    value = unwrap(leaf)
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def _unchanging(value: Any) -> Any:
    """The same, of which nobody can change what a pullback has."""
    return value.copy() if isinstance(value, Symbolic) else readonly(value)


def _lower_new(tree: Any, given: Any = None) -> Any:
    """Plain arrays that may be changed: none shares memory with another or a given."""
    return trees.unflatten(tree, _new_arrays(trees.leaves(tree), given))


def _new_arrays(leaves: list[Any], given: Any = None) -> list[Any]:
    others = () if given is None else trees.leaves(given)
    taken = {id(_root(leaf)) for leaf in others}
    found = []
    for leaf in leaves:
        value: Any = _lowered(leaf)
        is_symbol = isinstance(value, Symbolic)
        if is_symbol or isinstance(value, np.ndarray):
            if taken and id(_root(value)) in taken:
                value = value.copy() if is_symbol else pool.copied(value)
            elif not (is_symbol or value.flags.writeable):
                value = _writable(leaf, value)
            if len(leaves) > 1:
                taken.add(id(_root(value)))
        found.append(value)
    return found


_LARGE = 10**5  # bytes


def _writable(leaf: Any, value: np.ndarray) -> np.ndarray:
    """The array that a read-only view is of if nobody else sees it, or a copy.

    Of the gradient of 2**20 float32 a copy takes as long as a kernel for it; of a small
    one less than finding out.
    """
    if value.nbytes < _LARGE:
        return value.copy()
    memory: Any = getattr(value.base, "obj", None)
    if (
        memory.__class__ is np.ndarray
        and memory.dtype is value.dtype
        and memory.shape == value.shape
        and memory.strides == value.strides
        and pool.owns(memory)
        and _references(leaf, value, memory) == _ALONE
    ):
        return memory
    return pool.copied(value)


def _references(leaf: Any, value: Any, memory: Any) -> tuple[int, ...]:
    return tuple(map(getrefcount, (leaf, value, value.base, memory)))


def _alone() -> tuple[int, ...]:
    """The references that `_writable` sees if nobody else has one."""
    for leaf in [wrap(readonly(np.empty(1)))]:
        value = _lowered(leaf)
        return _measured(leaf, value)
    raise AssertionError


def _measured(leaf: Any, value: Any) -> tuple[int, ...]:
    memory = value.base.obj
    return _references(leaf, value, memory)


_ALONE = _alone()


def _root(x: Any) -> Any:
    """The array that has the memory of a view."""
    while isinstance(x, (np.ndarray, memoryview, Symbolic)):
        base = x.obj if isinstance(x, memoryview) else x.base
        if base is None:
            break
        x = base
    return x


def _require_differentiable(name: str, fun: Any, argnums: Any) -> None:
    """A function, and numbers of its arguments: told where they are given."""
    if not callable(fun):
        raise GradsmithError(
            f"gs.{name} takes a function, not {type_of(fun)}: gs.{name}(f)(x), not "
            f"gs.{name}(f(x))"
        )
    if argnums.__class__ is int:
        return
    given = argnums if isinstance(argnums, Sequence) else (argnums,)
    try:
        for i in given:
            index(i)
    except TypeError:
        shown = repr(argnums) if isinstance(argnums, (str, float)) else type_of(argnums)
        raise GradsmithError(
            f"argnums must be numbers of arguments, not {shown}\n  what to do: "
            f"gs.{name}(f)(x) is the derivative at x; gs.{name}(f, argnums=1) is with "
            "respect to the second argument"
        ) from None


def _pick(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: Argnums
) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """The chosen arguments, and the function of these alone."""
    if isinstance(argnums, int) and not kwargs and 0 <= argnums < len(args):
        before, after = args[:argnums], args[argnums + 1 :]
        return (args[argnums],), lambda xs: fun(*before, *xs, *after)
    given = argnums if isinstance(argnums, Sequence) else (argnums,)
    for i in given:
        if not -len(args) <= i < len(args):
            raise GradsmithError(
                f"{_name(fun)} was called with {len(args)} positional arguments, so "
                f"there is none with number {i} to differentiate with respect to"
            )
    chosen = [i % len(args) for i in given]
    if len(set(chosen)) < len(chosen):
        raise GradsmithError(f"argnums={argnums!r} names an argument twice")

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


def _require_tuples(name: str, primals: Any, tangents: Any) -> None:
    if not all(isinstance(xs, (tuple, list)) for xs in (primals, tangents)):
        raise GradsmithError(
            f"{name} needs its primals and tangents as tuples, one entry per argument: "
            f"gs.{name}(f, (x,), (dx,))"
        )


def _require_real_number(fun: Any, value: Any) -> None:
    if isinstance(value, (Traced, *PLAIN)):
        if not value.shape and value.dtype.kind in "fO":
            return
        got = f"an array of shape {value.shape} and dtype {value.dtype}"
    elif isinstance(value, (float, int)) and not isinstance(value, bool):  # a constant
        return
    else:
        got = type_of(value)
    raise GradsmithError(
        f"gs.grad takes a function that returns one real number, and {_name(fun)} "
        f"returned {got}. Sum it, or use gs.jacobian (all derivatives) or gs.vjp (with "
        "a cotangent); if it returns (value, aux), pass has_aux=True."
    )


def _chosen_mode(fun: Any, mode: str, xs: Any, y: Any, holomorphic: bool) -> str:
    """The mode that costs less, among those that see every part of the Jacobian.

    A walk back starts with a real direction of y and gives dRe + i dIm of x: all there
    is if y is real. A run forward starts with a real direction of x: all there is if x
    is real. If both are complex, one complex number per pair is all there is only of a
    holomorphic function.
    """
    inputs, outputs = trees.leaves(xs), trees.leaves(y)
    complex_x, complex_y = any(map(_is_complex, inputs)), any(map(_is_complex, outputs))
    if complex_x and complex_y and not holomorphic:
        raise GradsmithError(
            f"{_name(fun)} maps complex values to complex values: it has a matrix of "
            "complex derivatives only if it is holomorphic (pass holomorphic=True). "
            "If not, use gs.jvp and gs.vjp, or pass real and imaginary parts "
            "separately."
        )
    if holomorphic and not all(map(_is_complex, inputs + outputs)):
        raise GradsmithError("holomorphic=True is for complex inputs and outputs")
    needed = "auto"
    if complex_x != complex_y:
        needed = "reverse" if complex_x else "forward"
    if "auto" not in (mode, needed) and mode != needed:
        raise GradsmithError(
            f"{mode} mode sees only a part of the derivatives of {_name(fun)}, since "
            f"its {'inputs' if complex_x else 'outputs'} are complex: use {needed} mode"
        )
    chosen = needed if mode == "auto" else mode
    if chosen != "auto":
        return chosen
    return "forward" if FORWARD_PAYS * _size(xs) <= _size(y) else "reverse"


# Outputs per input from which on forward mode is chosen. With 2 it takes 0.13 of the
# time of reverse mode, with 4 only 0.07 (python -m benchmarks overhead), on small
# arrays, where calls are the cost. On large ones a column takes about a walk back, and
# memory for many of them at once; and some rules have no forward mode.
FORWARD_PAYS = 3


def _size(tree: Any) -> int:
    return sum(np.size(unwrap(leaf)) for leaf in trees.leaves(tree))


def _is_complex(x: Any) -> bool:
    return np.iscomplexobj(unwrap(x))


def _by_rows(pull: Any, xs: Any, y: Any, adjust: Any) -> list[Any]:
    """For each part of the output a tree like xs: one walk back per element."""
    parts = [as_plain(unwrap(part)) for part in trees.leaves(y)]
    zeros = [np.zeros_like(part) for part in parts]
    blocks = []
    for k, part in enumerate(parts):
        rows = [
            trees.leaves(pull(trees.unflatten(y, [*zeros[:k], e, *zeros[k + 1 :]])))
            for e in basis(part)
        ]
        block = [
            adjust(
                _assemble([row[j] for row in rows], 0, part.shape + x.shape, x.dtype)
            )
            for j, x in enumerate(trees.leaves(xs))
        ]
        blocks.append(trees.unflatten(xs, block))
    return blocks


def _by_columns(run: Any, xs: Any, y: Any) -> list[Any]:
    """For each part of the output a tree like xs: a run for many elements of it."""
    inputs = trees.leaves(xs)
    columns = [_columns(run, xs, x) for x in inputs]
    blocks = []
    for j, part in enumerate(as_plain(unwrap(part)) for part in trees.leaves(y)):
        block = [
            _block([dys[j] for dys in column], part, x)
            for column, x in zip(columns, inputs, strict=True)
        ]
        blocks.append(trees.unflatten(xs, block))
    return blocks


def _columns(run: Any, xs: Any, x: Tensor) -> list[list[Any]]:
    """Tangents of the outputs along the elements of x, as many at once as fit."""
    found: list[list[Any]] = []
    done, many = 0, max(min(x.size, MOST // max(x.size, 1)), 1)
    while done < x.size:
        units = np.eye(min(many, x.size - done), x.size, done, x.dtype)
        directions = Directions(x, units.reshape(-1, *x.shape))
        try:
            ys = trees.leaves(directions.within(run, *xs))
        except TooManyTangentsError as error:
            many = error.fitting
            continue
        found.append([_pushed(directions, y) for y in ys])
        done += len(units)
    return found


def _pushed(directions: Directions, y: Any) -> Any:
    dy = directions.jvp(y) if isinstance(y, Traced) else None
    if dy is None:
        y = as_plain(unwrap(y))
        return np.zeros((directions.many, *y.shape), y.dtype)
    return dy


def _block(dys: list[Any], y: Any, x: Tensor) -> Any:
    """The part of a Jacobian that a leading axis of tangents gives."""
    shape = y.shape + x.shape
    if not dys:
        return np.zeros(shape, y.dtype)
    whole = dys[0] if len(dys) == 1 else np.concatenate(dys)
    return np.reshape(np.moveaxis(whole, 0, -1), shape)


def _assemble(parts: list[Any], axis: int, shape: tuple[int, ...], dtype: Any) -> Any:
    if not parts:
        return np.zeros(shape, dtype)
    return np.reshape(np.stack(parts, axis=axis), shape)
