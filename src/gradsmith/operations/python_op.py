"""`python_op`: a body in NumPy, SciPy or C, with its NumPy gradient, in any framework.

On NumPy arrays it is an operation like others. In a framework body and rules become
functions that the framework calls back, also from compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.arrays import framework_of
from .operation import Operation
from .python_callbacks import Callbacks


class PythonOperation(Operation):
    """An operation whose body and rules run on NumPy arrays in every framework."""

    spec: Any = None
    callback: Operation

    def __init__(self, fn: Callable[..., Any], **declared: Any) -> None:
        super().__init__(fn, **declared)
        self._callbacks = Callbacks(self, self.signature)
        # The operation that a framework sees: callbacks, in rule form.
        body = wraps(fn)(lambda *args, **kwargs: self._callbacks.body(*args, **kwargs))
        self.callback = Operation(body, **{**declared, "closure": False})
        self.callback.hosted = True
        self.callback.original = self
        if self.closure:
            self._give_rules()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.signature.bind(args, kwargs)
        if all(framework_of(x) == "numpy" for x in bound.leaves):
            return super().__call__(*args, **kwargs)
        return self.callback(*args, **kwargs)

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the gradient, of NumPy arrays: `rule(dy, y, *arguments)`."""
        self._give_rules()
        return super().vjp(rule)

    def jvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the tangent, of NumPy arrays: `rule(dx, y, *arguments)`."""
        self._give_rules()
        return super().jvp(rule)

    def _give_rules(self) -> None:
        """Both follow from one."""
        self.callback.vjp(self._callbacks.vjp)
        self.callback.jvp(self._callbacks.jvp)


def python_op(
    fn: Callable[..., Any] | None = None,
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    spec: Any = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> Any:
    """Make an operation of a function that computes with NumPy, SciPy or C.

    >>> import numpy as np
    >>> from gradsmith import grad
    >>> @python_op
    ... def interpolate(x, table):
    ...     return np.interp(x, np.arange(len(table)), table)
    >>> @interpolate.vjp
    ... def _(dy, y, x, table):
    ...     i = np.clip(np.floor(x).astype(int), 0, len(table) - 2)
    ...     return dy * (table[i + 1] - table[i]), None
    >>> table = np.array([0.0, 1.0, 4.0])
    >>> float(grad(lambda x: interpolate(x, table))(1.5))
    3.0

    Rules come as `@op.vjp` and `@op.jvp`, as `grad` and `jvp`, or with the body, if
    `fn` is an operation already (`gs.custom_gradient` or `gs.operation`). They too are
    given NumPy arrays, whatever framework the operation is called in: TensorFlow in
    `tf.function`, JAX under `jit` and `vmap`, PyTorch under `torch.compile`.

    A compiler must know the shapes and dtypes of the outputs. They are found by one
    trial run on made-up values (two, if the size of an axis is left open), or told by
    `spec`: specs (`gs.spec(shape, dtype)`) structured like the outputs, or a function
    that makes them from the arguments, in which the arrays are specs too.
    """
    if fn is None:
        return lambda fn: python_op(
            fn, grad, jvp=jvp, spec=spec, surrogate=surrogate, linear=linear
        )
    closure, rules, examples = False, (grad, jvp), ()
    if isinstance(fn, Operation):
        closure, rules = fn.closure, (grad or fn.vjp_rule, jvp or fn.jvp_rule)
        surrogate, linear = surrogate or fn.surrogate, linear and fn.linear
        fn, examples = fn.fn, fn.examples
    result = PythonOperation(fn, closure=closure, surrogate=surrogate, linear=linear)
    result.spec, result.examples = spec, examples
    for give, rule in zip((result.vjp, result.jvp), rules, strict=True):
        if rule is not None:
            give(rule)
    return result
