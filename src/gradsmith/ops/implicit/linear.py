"""Systems of linear equations in which the matrix is a function of vectors.

The gradient of a solution is one more solve, with the transposed matrix:

    A x = b,  dx given:   λ = A⁻ᵀ dx,   db = λ,   dA = -λ xᵀ

The dA of a function `A(v, params)` is the gradient of A(x, params) by its parameters,
pulled back from -λ. Both are written with `solve` itself, hence of every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import UnsupportedOperationError
from ...operations.define import operation
from ...operations.portable import stop_gradient
from .parts import calculus_of, compiled_of
from .smooth import chosen, filled, smooth
from .solvers import Solver


class Map:
    """A linear map of vectors, `push(v, params)`, its transpose, how it is solved."""

    def __init__(
        self,
        push: Callable[..., Any],
        pull: Callable[..., Any] | None = None,
        *,
        symmetric: bool = False,
        how: Solver | None = None,
    ) -> None:
        self.push = push
        self.pull = pull or (push if symmetric else _transpose(push))
        self.symmetric = symmetric
        self.how = how or Solver()

    @property
    def transposed(self) -> Map:
        return Map(self.pull, self.push, symmetric=self.symmetric, how=self.how)

    def solve(self, b: Any, params: Any) -> Any:
        """x with push(x, params) = b."""
        return solve(b, params, self)


def _transpose(push: Callable[..., Any]) -> Callable[..., Any]:
    def pull(w: Any, params: Any) -> Any:
        f = lambda v: [push(v[0], params)]
        _, back = calculus_of(w).vjp(f, [0 * w], nested=True)
        return back([w])[0]

    return pull


def attached(x: Any, residual: Any, params: Any, matrix: Map) -> Any:
    """x as it depends on what the equations capture: dx = -A⁻¹ d(residual).

    Arguments of an operation are its rule's matter; what a body captures is found by
    differentiating the body, and this is all of it that is recorded.
    """
    return x - _unit(residual, params, matrix)


@operation
def _unit(residual: Any, params: Any, matrix: Map) -> Any:
    return 0 * residual  # the equations are solved


@_unit.vjp
def _(dx: Any, x: Any, residual: Any, params: Any, matrix: Map) -> Any:
    return {"residual": _once(matrix.transposed.solve(dx, params)), "params": None}


@_unit.jvp
def _(d: Any, x: Any, residual: Any, params: Any, matrix: Map) -> Any:
    return _once(matrix.solve(d[0] if params else d, params))


@operation
def _once(x: Any) -> Any:
    return x


@_once.vjp
def _(dx: Any, x: Any, again: Any) -> Any:
    raise UnsupportedOperationError(
        "values that the equations capture have no second derivative: pass them as "
        "parameters, as in ops.root(lambda x, p: ..., x0, p)"
    )


@operation
def solve(b: Any, params: Any, matrix: Map) -> Any:
    compiled = compiled_of(b, params)
    push = lambda v: matrix.push(v, params)
    with compiled.unrecorded():
        x = stop_gradient(matrix.how(push, b, matrix.symmetric, compiled))
    residual = push(x) - b
    with compiled.unrecorded():
        x = matrix.how.insist(x, stop_gradient(residual), b, push, compiled)
    return attached(x, residual, params, matrix)


@solve.vjp
def _(dx: Any, x: Any, b: Any, params: Any, matrix: Map) -> Any:
    adjoint = matrix.transposed.solve(dx, params)
    if not params:
        return {"b": adjoint}
    f, some = smooth(lambda p: [matrix.push(x, p)], params)
    _, back = calculus_of(dx).vjp(f, some, nested=True)
    return adjoint, filled(params, back([-adjoint]), None)


@solve.jvp
def _(d: Any, x: Any, b: Any, params: Any, matrix: Map) -> Any:
    if not params:
        return matrix.solve(d, params)
    db, dparams = d
    f, some = smooth(lambda p: [matrix.push(x, p)], params)
    _, (off,) = calculus_of(x).jvp(f, some, chosen(params, dparams), nested=True)
    return matrix.solve(db - off, params)
