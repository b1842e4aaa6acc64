"""The ways to define an operation together with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import GradsmithError
from .operation import Operation


def custom_gradient(
    fn: Callable[..., Any] | None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
) -> Any:
    """Make an operation of a function that returns its outputs and its gradient.

    >>> import numpy as np
    >>> from gradsmith import grad
    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(-abs(x))
    ...     y = np.maximum(x, 0) + np.log1p(e)
    ...     return y, lambda dy: dy * np.where(x > 0, 1, e) / (1 + e)
    >>> float(grad(log1pexp)(1000.0))
    1.0

    `surrogate` says, in words, that the rule is not the derivative on purpose. With
    `linear=False` it is not linear in dy either (it clips it, say); forward mode, the
    transpose of the gradient, is then refused.
    """
    if fn is None:
        return lambda fn: custom_gradient(fn, surrogate=surrogate, linear=linear)
    return Operation(fn, closure=True, surrogate=surrogate, linear=linear)


def operation(
    fn: Callable[..., Any] | None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
) -> Any:
    """Make an operation of a function whose rules follow: `@op.vjp` and/or `@op.jvp`.

    >>> from gradsmith import grad, jvp
    >>> @operation
    ... def cube(x):
    ...     return x**3
    >>> @cube.vjp
    ... def _(dy, y, x):
    ...     return 3 * x**2 * dy
    >>> float(grad(cube)(2.0)), float(jvp(cube, (2.0,), (1.0,))[1])
    (12.0, 12.0)
    """
    if fn is None:
        return lambda fn: operation(fn, surrogate=surrogate, linear=linear)
    return Operation(fn, closure=False, surrogate=surrogate, linear=linear)


def with_gradient(
    fn: Callable[..., Any],
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> Operation:
    """Return an existing function with another gradient, `grad(dy, y, *arguments)`.

    >>> import numpy as np
    >>> from gradsmith import grad
    >>> step = with_gradient(np.sign, lambda dy, y, x: dy, surrogate="straight-through")
    >>> float(grad(step)(-0.3))
    1.0
    """
    if grad is None and jvp is None:
        raise GradsmithError("with_gradient wants a gradient: grad=... or jvp=...")
    result = Operation(fn, closure=False, surrogate=surrogate, linear=linear)
    if grad is not None:
        result.vjp(grad)
    if jvp is not None:
        result.jvp(jvp)
    return result
