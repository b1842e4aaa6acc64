"""What stands in the place of a target: a rule, or an operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import compress
from numbers import Number
from typing import Any

from ...core import trees
from ...core.arity import arity_of
from ...core.arrays import framework_of
from ...core.errors import GradsmithError, NotDifferentiableError
from ...core.places import place_here
from ...frameworks._intercept import InterceptedCall, inside_replacement, inside_target
from ...operations.operation import Operation
from .._inputs import framework_of_native, framework_with_rule
from .arguments import CallArguments
from .record import OverrideRecord


class RecordedReplacement:
    """What a user wants in the place of a target, whose calls are recorded."""

    def __init__(self, target: str, record: OverrideRecord) -> None:
        self.target = target
        self.record = record

    def answer(self, call: InterceptedCall) -> Any:
        self.record.add(self.target, call.name, place_here())
        return self.run(call, CallArguments(call))

    def left_alone(self, inside: str) -> None:
        self.record.left_alone(self.target, inside)

    def run(self, call: InterceptedCall, arguments: CallArguments) -> Any:
        raise NotImplementedError


class OtherGradient(RecordedReplacement):
    """A gradient for a target whose value stays: `rule(dy, y, *arguments)`."""

    def __init__(
        self,
        target: str,
        record: OverrideRecord,
        rule: Callable[..., Any],
        linear: bool,
    ) -> None:
        super().__init__(target, record)
        self.rule = rule
        self.linear = linear

    def run(self, call: InterceptedCall, arguments: CallArguments) -> Any:
        def body(*xs: Any) -> Any:
            args, kwargs = arguments.with_arrays(xs)
            with inside_target(call.target):
                y = call.original(*args, **kwargs)
            _require_arrays(call.name, y)
            return y

        def vjp(dy: Any, y: Any, *xs: Any) -> Any:
            args, kwargs = arguments.for_replacement(self.rule, 2, xs)
            with inside_replacement():
                dxs = self.rule(dy, y, *args, **kwargs)
            return _of_arrays(dxs, args, arguments)

        xs = arguments.arrays
        arguments.for_replacement(self.rule, 2, xs)  # told now if it misfits
        body.__name__ = call.name
        setattr(body, "__signature__", arguments.signature)  # noqa: B010 (for pyright)
        operation = Operation(
            body,
            closure=False,
            linear=self.linear,
            surrogate=f"gs.override of {self.target}",
        )
        operation.vjp(vjp)
        with _hint(self.linear):
            return operation(*xs)


@contextmanager
def _hint(linear: bool) -> Iterator[None]:
    try:
        yield
    except NotDifferentiableError as error:
        if not linear:
            error.add_note("If the rule is linear in dy: gs.override(..., linear=True)")
        raise


def _of_arrays(dxs: Any, args: list[Any], arguments: CallArguments) -> Any:
    """Gradients without those for numbers: a rule of `x * y` may have one for each."""
    arrays = [arguments.has_arrays(x) for x in args]
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


class OtherOperation(RecordedReplacement):
    """An operation that is called in the place of the target."""

    def __init__(self, target: str, record: OverrideRecord, operation: Any) -> None:
        super().__init__(target, record)
        self.operation = operation

    def run(self, call: InterceptedCall, arguments: CallArguments) -> Any:
        body = getattr(self.operation, "fn", self.operation)
        args, kwargs = arguments.for_replacement(body, 0, arguments.arrays)
        with inside_replacement():
            return self.operation(*args, **kwargs)


def replacement_of(
    target: str, value: Any, linear: bool, record: OverrideRecord
) -> RecordedReplacement:
    """What a user wants in the place of a target."""
    if isinstance(value, Operation) or framework_with_rule(value):
        return OtherOperation(target, record, value)
    wrong = not callable(value) or inspect.isclass(value) or framework_of_native(value)
    if wrong or arity_of(value).maximum < 3:
        raise GradsmithError(
            f"{target} can't be replaced by {value!r}\n"
            "  expected: a rule, rule(dy, y, *arguments), which replaces the gradient "
            "alone; or an operation (by gs.custom_gradient, gs.operation, or a "
            "framework's own custom gradient), which replaces value and gradient\n"
            "  what to do: give a function its gradient first, by @gs.custom_gradient"
        )
    return OtherGradient(target, record, value, linear)
