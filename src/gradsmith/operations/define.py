"""The ways to define an operation together with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from ..core.errors import GradsmithError
from .fusing import fuse
from .operation import Operation

P = ParamSpec("P")
R = TypeVar("R")
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
Grad = Callable[..., Any]


class _Closure(Protocol):
    """`custom_gradient` as a type: a body that returns (y, grad) becomes one of y."""

    @overload
    def __call__(self, fn: Callable[P, tuple[R, Grad]]) -> Operation[P, R]: ...
    @overload
    def __call__(
        self, fn: Callable[P, tuple[R1, R2, Grad]]
    ) -> Operation[P, tuple[R1, R2]]: ...
    @overload
    def __call__(
        self, fn: Callable[P, tuple[R1, R2, R3, Grad]]
    ) -> Operation[P, tuple[R1, R2, R3]]: ...
    @overload
    def __call__(self, fn: Callable[P, Any]) -> Operation[P, Any]: ...


@overload
def custom_gradient(
    fn: None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> _Closure: ...
@overload
def custom_gradient(
    fn: Callable[P, tuple[R, Grad]],
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Operation[P, R]: ...
@overload
def custom_gradient(
    fn: Callable[P, tuple[R1, R2, Grad]],
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Operation[P, tuple[R1, R2]]: ...
@overload
def custom_gradient(
    fn: Callable[P, tuple[R1, R2, R3, Grad]],
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Operation[P, tuple[R1, R2, R3]]: ...
@overload
def custom_gradient(
    fn: Callable[P, Any],
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Operation[P, Any]: ...
def custom_gradient(
    fn: Callable[..., Any] | None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Any:
    """Make an operation of a function that returns its outputs and its gradient.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(-abs(x))
    ...     y = np.maximum(x, 0) + np.log1p(e)
    ...     return y, lambda dy: dy * np.where(x > 0, 1, e) / (1 + e)
    >>> float(gs.grad(log1pexp)(1000.0))
    1.0

    `surrogate` declares, in words, that the rule deliberately isn't the derivative.
    `linear=False` declares that it isn't linear in dy (because it clips, for example);
    forward mode, the transpose of the gradient, then raises. With `fused=True` body and
    gradient run as one kernel each, as with `gs.fuse`.

    Raises
    ------
    GradsmithError
        If fn is not a function, or surrogate is not a string; when it is called, if
        its arrays belong to several frameworks.
    GradientContractError
        When it is differentiated, if the rule returns gradients of another number,
        structure, shape or dtype than the arguments.
    NotDifferentiableError
        If a gradient is requested that the rule declares not to exist.
    """
    if fn is None:
        return lambda fn: custom_gradient(
            fn, surrogate=surrogate, linear=linear, fused=fused
        )
    new = Operation(fn, closure=True, surrogate=surrogate, linear=linear)
    return fuse(new) if fused else new


@overload
def operation(
    fn: None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Callable[[Callable[P, R]], Operation[P, R]]: ...
@overload
def operation(
    fn: Callable[P, R],
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Operation[P, R]: ...
def operation(
    fn: Callable[..., Any] | None = None,
    *,
    surrogate: str | None = None,
    linear: bool = True,
    fused: bool = False,
) -> Any:
    """Make an operation of a function whose rules follow: `@op.vjp` and/or `@op.jvp`.

    >>> import gradsmith as gs
    >>> @gs.operation
    ... def cube(x):
    ...     return x**3
    >>> @cube.vjp
    ... def _(dy, y, x):
    ...     return 3 * x**2 * dy
    >>> float(gs.grad(cube)(2.0)), float(gs.jvp(cube, (2.0,), (1.0,))[1])
    (12.0, 12.0)

    The options are those of `custom_gradient`.

    Raises
    ------
    GradsmithError
        As `custom_gradient`, and if a parameter has the name of an option of rules
        (`needs`, `variables`).
    GradientContractError
        When it is differentiated, if the rule returns gradients of another number,
        structure, shape or dtype than the arguments.
    NotDifferentiableError
        If a gradient is requested that the rule declares not to exist.
    """
    if fn is None:
        return lambda fn: operation(fn, surrogate=surrogate, linear=linear, fused=fused)
    new = Operation(fn, closure=False, surrogate=surrogate, linear=linear)
    return fuse(new) if fused else new


def with_gradient(
    fn: Callable[P, R],
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> Operation[P, R]:
    """Return an existing function with another gradient, `grad(dy, y, *arguments)`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> through = lambda dy, y, x: dy
    >>> step = gs.with_gradient(np.sign, through, surrogate="straight-through")
    >>> float(gs.grad(step)(-0.3))
    1.0

    Raises
    ------
    GradsmithError
        As `custom_gradient`, and if neither grad nor jvp is given.
    GradientContractError
        When it is differentiated, if the rule returns gradients of another number,
        structure, shape or dtype than the arguments.
    """
    if grad is None and jvp is None:
        raise GradsmithError("with_gradient needs a gradient: grad=... or jvp=...")
    result: Operation[P, R] = Operation(
        fn, closure=False, surrogate=surrogate, linear=linear
    )
    if grad is not None:
        result.vjp(grad)
    if jvp is not None:
        result.jvp(jvp)
    return result
