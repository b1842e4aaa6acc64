"""Operations with their own gradient: a definition, bound to a framework when called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any

from . import _tree
from ._errors import GradsmithError
from .frameworks import adapter_of, is_array


class Operation:
    """A function together with its gradient; call it like the function.

    Made by `custom_gradient`, `operation` and `with_gradient`. `name`, `surrogate` and
    `linear` say what was declared; `vjp` and `jvp` are decorators that give the rules.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        closure: bool,
        surrogate: str | None = None,
        linear: bool = True,
        name: str | None = None,
    ) -> None:
        if not callable(fn):
            raise GradsmithError(
                f"an operation is made of a function, not of a {type(fn).__name__}"
            )
        if surrogate is not None and not isinstance(surrogate, str):
            raise GradsmithError(
                "surrogate= wants words that say what the rule stands for, for example "
                "'straight-through rounding'"
            )
        update_wrapper(self, fn)
        self.fn = fn
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        self.closure = closure
        self.surrogate = surrogate
        self.linear = linear
        self.vjp_rule: Callable[..., Any] | None = None
        self.jvp_rule: Callable[..., Any] | None = None
        self._signature = Signature(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(args, kwargs)
        return adapter_of(bound.leaves, self.name).call(self, bound)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the gradient: `rule(dy, y, *arguments)` returns one per array argument."""
        self._refuse_rule_in_closure("vjp")
        self.vjp_rule = rule
        return rule

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the tangent: `rule(dx, y, *arguments)`; several arrays: dx is a tuple."""
        self.jvp_rule = rule
        return rule

    def _refuse_rule_in_closure(self, kind: str) -> None:
        if self.closure:
            raise GradsmithError(
                f"{self.name!r} returns its gradient function already "
                f"(gs.custom_gradient). For a separate @{self.name}.{kind} define it "
                "with gs.operation."
            )


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

    Parameters
    ----------
    surrogate : says, in words, that the rule is not the derivative on purpose
    linear : False if the gradient is not linear in dy (it clips it, say); forward mode
        is then refused, since it is the transpose of the gradient
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
    result.vjp_rule = grad
    result.jvp_rule = jvp
    return result


class Bound:
    """A call with its arguments bound: `values` by position, their arrays in `leaves`."""

    __slots__ = ("leaves", "names", "signature", "values")

    def __init__(
        self, signature: Signature, names: Sequence[str], values: list[Any]
    ) -> None:
        self.signature = signature
        self.names = names
        self.values = values
        self.leaves = [
            leaf for value in values for leaf in _tree.leaves(value) if is_array(leaf)
        ]

    is_array = staticmethod(is_array)

    def with_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """The values with other arrays in the places of the arrays."""
        rest = iter(leaves)
        return [
            _tree.map(lambda leaf: next(rest) if is_array(leaf) else leaf, value)
            for value in self.values
        ]


class Signature:
    """The parameters of a function; positional and keyword calls are the same call."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        try:
            parameters = inspect.signature(fn).parameters.values()
        except (TypeError, ValueError):  # some C functions have none
            parameters = inspect.signature(lambda *args, **kwargs: None).parameters.values()
        self.parameters = list(parameters)
        self.full = inspect.Signature(self.parameters)
        self.names = [p.name for p in self.parameters]
        simple = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.is_simple = all(p.kind in simple for p in self.parameters)
        self.defaults = [p.default for p in self.parameters]

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Bound:
        n = len(args)
        if self.is_simple and not kwargs and n <= len(self.names):
            rest = self.defaults[n:]
            if inspect.Parameter.empty not in rest:  # 3 us less than `Signature.bind`
                return Bound(self, self.names, [*args, *rest])
        arguments = self.full.bind(*args, **kwargs)
        arguments.apply_defaults()
        return Bound(self, self.names, [arguments.arguments[n] for n in self.names])

    def call(self, fn: Callable[..., Any], before: Sequence[Any], values: list[Any]) -> Any:
        """Call `fn(*before, *arguments)` with the arguments where they belong."""
        if self.is_simple:
            return fn(*before, *values)
        args, kwargs = list(before), {}
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return fn(*args, **kwargs)
