"""What a custom rule must return, and every message about one that does not.

The checks look at shapes, dtypes and structure alone, so that they serve the arrays of
any framework, eager or traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...core.errors import GradientContractError, NotDifferentiableError
from ..arguments import Argument
from .causes import describe
from .leaves import MisfitError, checked
from .modes import transposing
from .sharing import by_argument
from .words import NotDifferentiable, not_differentiable, zero

__all__ = [
    "NotDifferentiable",
    "check_gradients",
    "check_tangents",
    "named",
    "no_gradient",
    "not_differentiable",
    "returned_nothing",
    "split_outputs",
    "split_variables",
    "transposing",
    "wrong_parameters",
    "zero",
]


def split_outputs(operation: str, returned: Any) -> tuple[Any, Callable[..., Any]]:
    """Take `y, grad`, `(z, w), grad` or `z, w, grad` apart: outputs and gradient."""
    if isinstance(returned, (tuple, list)) and len(returned) > 1:
        grad = returned[-1]
        if callable(grad):
            return (returned[0] if len(returned) == 2 else tuple(returned[:-1])), grad
        place = next((i for i, part in enumerate(returned) if callable(part)), None)
        if place is None:
            cause = f"its last entry is {describe(grad)}, not the gradient function"
        else:
            cause = f"the gradient function is entry {place}; it comes last"
    elif callable(returned):
        cause = "the outputs are missing; they come before the gradient function"
    else:
        cause = "the gradient function is missing"
    raise GradientContractError(
        f"operation {operation!r} returned the wrong thing\n"
        "  expected: its outputs and then its gradient function, `return y, grad`\n"
        f"  got: {describe(returned)}\n"
        f"  likely cause: {cause}"
    )


def split_variables(operation: str, returned: Any) -> tuple[Any, Any]:
    """Take `(gradients, variable gradients)` apart."""
    if isinstance(returned, (tuple, list)) and len(returned) == 2:
        gradients, for_variables = returned
        return gradients, for_variables
    raise GradientContractError(
        f"the gradient of operation {operation!r} takes variables= and returned the "
        "wrong thing\n"
        "  expected: two entries, the gradients of the arguments and those of the "
        "variables\n"
        f"  got: {describe(returned)}"
    )


def check_gradients(
    operation: str,
    returned: Any,
    arguments: Sequence[Argument],
    needed: Collection[str] = (),
    each: str = "array argument in signature order",
) -> list[Any]:
    """The gradients for all arrays in all arguments, flat, each checked.

    A dict by name may leave out an argument that is not `needed`. `None`, `zero` and
    `NotDifferentiable` come back as they are.
    """
    flat: list[Any] = []
    try:
        shares = by_argument(returned, arguments, needed, each)
        for argument, gradient in zip(arguments, shares, strict=True):
            if argument.has_arrays:
                flat += checked(argument.name, argument.specs, gradient)
    except MisfitError as misfit:
        raise misfit.error(f"the gradient of operation {operation!r}") from None
    return flat


def check_tangents(operation: str, returned: Any, specs: Any) -> list[Any]:
    """The tangents of all differentiable outputs, flat, each checked."""
    try:
        flat = checked("output", specs, returned)
    except MisfitError as misfit:
        raise misfit.error(f"the tangent of operation {operation!r}") from None
    for dy in flat:
        if isinstance(dy, NotDifferentiable):
            raise NotDifferentiableError(
                f"operation {operation!r} has no tangent, as its jvp declares: {dy.why}"
            )
    return flat


def returned_nothing(operation: str, what: str, rule: Any) -> GradientContractError:
    """The error for a rule without a result: its `return` was forgotten."""
    result = "tangent" if what == "jvp" else "gradient"
    return GradientContractError(
        f"the {what} of operation {operation!r} returned nothing\n"
        f"  expected: a {result}; gs.zero if it is zero\n"
        "  got: None\n"
        f"  likely cause: a forgotten `return` in {named(rule)}"
    )


def named(rule: Any) -> str:
    """A function by its name, and where it is written."""
    code = getattr(inspect.unwrap(rule), "__code__", None)
    if code is None:  # an object that is called, or a C function
        return repr(rule)
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def wrong_parameters(
    where: str, reason: str, expected: str, rule: Callable[..., Any]
) -> GradientContractError:
    """The error for a rule that can't be called with what it is to be called with."""
    return GradientContractError(
        f"{where} can't be called: {reason}\n"
        f"  expected: {expected}\n"
        f"  got: a function of {inspect.signature(rule)}"
    )


def no_gradient(operation: str, name: str, why: str) -> NotDifferentiableError:
    """The error for asking for a gradient that a rule declares not to exist."""
    return NotDifferentiableError(
        f"operation {operation!r} has no gradient for argument {name!r}: {why}. It was "
        "requested, since this argument is being differentiated; pass "
        f"gs.stop_gradient({name}) if it should count as a constant."
    )
