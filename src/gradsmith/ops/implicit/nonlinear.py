"""Roots, fixed points and minima, whose gradients are linear solves.

    f(x, p) = 0 for all p:   ∂f/∂x dx + ∂f/∂p dp = 0

so that dx = -J⁻¹ (∂f/∂p dp), and backwards dp = -(∂f/∂p)ᵀ J⁻ᵀ dx, J being ∂f/∂x at the
solution. How the solution was found has no say in it, and is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...operations.define import operation
from ...operations.portable import stop_gradient
from .linear import Map, attached
from .parts import calculus_of, compiled_of
from .smooth import chosen, filled, smooth
from .solvers import SingularError, Solver


class Equations:
    """f(x, params) = 0 for vectors x, how it is searched and how J is solved."""

    def __init__(
        self,
        f: Callable[[Any, Any], Any],
        search: Callable[..., Any],
        *,
        symmetric: bool = False,
    ) -> None:
        self.f, self.search = f, search
        self.jacobian = Map(self._push, symmetric=symmetric)

    def step(self, r: Any, x: Any, params: Any) -> Any:
        """J⁻¹ r, as far as there is one: the search judges by its own residual."""
        b, push = r, lambda v: self._push(v, [x, *params])
        try:
            return Solver()(push, b, self.jacobian.symmetric, compiled_of(x))
        except SingularError as error:
            raise SingularError(
                "no solution was found: ∂f/∂x is singular where the search ended\n"
                "  what to do: start elsewhere (x0)"
            ) from error

    def _push(self, v: Any, at: Any) -> Any:
        """J v at (x, *params)."""
        x, *params = at
        f = lambda x: [self.f(x[0], params)]
        return calculus_of(x).jvp(f, [x], [v], nested=True)[1][0]


@operation
def solution(x0: Any, params: Any, equations: Equations) -> Any:
    """The x with equations.f(x, params) = 0 that the search finds from x0."""
    with compiled_of(x0, params).unrecorded():
        x = stop_gradient(equations.search(x0, params, equations))
    return attached(x, equations.f(x, params), [x, *params], equations.jacobian)


@solution.vjp
def _(dx: Any, x: Any, x0: Any, params: Any, equations: Equations) -> Any:
    if not params:
        return {"x0": None}
    adjoint = equations.jacobian.transposed.solve(dx, [x, *params])
    f, some = smooth(lambda p: [equations.f(x, p)], params)
    _, back = calculus_of(x).vjp(f, some, nested=True)
    return None, filled(params, back([-adjoint]), None)


@solution.jvp
def _(d: Any, x: Any, x0: Any, params: Any, equations: Equations) -> Any:
    if not params:
        return 0 * x
    _, dparams = d
    f, some = smooth(lambda p: [equations.f(x, p)], params)
    _, (off,) = calculus_of(x).jvp(f, some, chosen(params, dparams), nested=True)
    return equations.jacobian.solve(-off, [x, *params])


def found(x0: Any, params: Any, equations: Equations) -> Any:
    """The solution as a function of its parameters; where it began has no gradient."""
    return solution(stop_gradient(x0), params, equations)
