"""What stands in the place of a target: a rule, or an operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from numbers import Number
from typing import Any

from ...core import trees
from ...core.arity import arity_of
from ...core.arrays import framework_of
from ...core.errors import GradsmithError, NotDifferentiableError
from ...core.places import place_here
from ...operations.operation import Operation
from .._inputs import framework_of_native, framework_with_rule
from .calls import Call
from .scope import found, off, without


class Rule:
    """A gradient for a target whose value stays: `rule(dy, y, *arguments)`."""

    def __init__(self, target: str, rule: Callable[..., Any], linear: bool) -> None:
        self.target = target
        self.rule = rule
        self.linear = linear

    def call(self, key: Hashable, name: str, original: Any, call: Call) -> Any:
        def body(*xs: Any) -> Any:
            args, kwargs = call.with_arrays(xs)
            with without(key):
                y = original(*args, **kwargs)
            _require_arrays(name, y)
            return y

        def vjp(dy: Any, y: Any, *xs: Any) -> Any:
            args, kwargs = call.for_replacement(self.rule, 2, xs, name)
            with off():
                dxs = self.rule(dy, y, *args, **kwargs)
            return _of_arrays(dxs, args, call)

        call.for_replacement(self.rule, 2, call.arrays, name)  # told now if it misfits
        body.__name__ = name
        setattr(body, "__signature__", call.signature)  # noqa: B010 (for pyright)
        operation = Operation(
            body,
            closure=False,
            linear=self.linear,
            surrogate=f"gs.override of {self.target}",
        )
        operation.vjp(vjp)
        with _hint(self.linear):
            return operation(*call.arrays)


@contextmanager
def _hint(linear: bool) -> Iterator[None]:
    try:
        yield
    except NotDifferentiableError as error:
        if not linear:
            error.add_note("If the rule is linear in dy: gs.override(..., linear=True)")
        raise


def _of_arrays(dxs: Any, args: list[Any], call: Call) -> Any:
    """Gradients without those for numbers: a rule of `x * y` may have one for each."""
    arrays = [call.has_arrays(x) for x in args]
    # The gradient of a tuple is a tuple, too.
    whole = arrays.count(True) == 1 and type(args[arrays.index(True)]) is tuple
    if whole or all(arrays) or type(dxs) is not tuple or len(dxs) != len(arrays):
        return dxs
    return tuple(compress(dxs, arrays))


def _require_arrays(name: str, y: Any) -> None:
    """A gradient comes to what is returned, and is lost if that can't be seen into."""
    if any(framework_of(x) or isinstance(x, Number) for x in trees.leaves(y)):
        return
    raise GradsmithError(
        f"{name} returns {type(y).__qualname__!r}, in which no arrays can be found to "
        "have a gradient\n"
        "  expected: an array, or a tuple, list, dict or dataclass of arrays\n"
        "  what to do: override what it calls, which returns arrays; or let it return "
        "one of these"
    )


class Instead:
    """An operation that is called in the place of the target."""

    def __init__(self, target: str, operation: Any) -> None:
        self.target = target
        self.operation = operation

    def call(self, key: Hashable, name: str, original: Any, call: Call) -> Any:
        body = getattr(self.operation, "fn", self.operation)
        args, kwargs = call.for_replacement(body, 0, call.arrays, name)
        with off():
            return self.operation(*args, **kwargs)


def replacement_of(target: str, value: Any, linear: bool) -> Rule | Instead:
    """What a user wants in the place of a target."""
    if isinstance(value, Operation) or framework_with_rule(value):
        return Instead(target, value)
    wrong = not callable(value) or inspect.isclass(value) or framework_of_native(value)
    if wrong or arity_of(value).maximum < 3:
        raise GradsmithError(
            f"{target} can't be replaced by {value!r}\n"
            "  expected: a rule, rule(dy, y, *arguments), which replaces the gradient "
            "alone; or an operation (gs.custom_gradient, gs.operation, "
            "tf.custom_gradient, jax.custom_vjp, ...), which replaces value and "
            "gradient\n"
            "  what to do: give a function its gradient first, by @gs.custom_gradient"
        )
    return Rule(target, value, linear)


def replaced(
    key: Hashable,
    name: str,
    original: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    signature: inspect.Signature | None = None,
    offered: dict[str, Any] | None = None,
) -> Any:
    """A call of something, by what a scope wants in its place."""
    due = found(key, name)
    if due is None:
        return original(*args, **kwargs)
    call = Call(args, kwargs, signature, offered)
    scope, replacement = due
    if not call.places:
        scope.bare[key] = place_here()
        return original(*args, **kwargs)
    scope.called[key] += 1
    scope.record.add(replacement.target, name, place_here())
    return replacement.call(key, name, original, call)
