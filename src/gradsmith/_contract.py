"""What a custom rule must return, and every message about one that does not.

The checks look at shapes, dtypes and structure alone, so that they serve any framework's
arrays, eager or traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _tree
from ._cotangent import Spec, broadcast_axes
from ._errors import GradientContractError, NotDifferentiableError


class NotDifferentiable:
    """In place of a gradient: there is none, and asking for it is an error."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"gs.not_differentiable({self.why!r})"


def not_differentiable(why: str) -> NotDifferentiable:
    """Return this from a rule for an argument whose gradient nobody may ask for.

    >>> not_differentiable("the labels are data")
    gs.not_differentiable('the labels are data')
    """
    if not isinstance(why, str) or not why.strip():
        raise GradientContractError("not_differentiable wants the reason, in words")
    return NotDifferentiable(why)


class _Zero:
    """In place of a gradient: it is zero."""

    def __repr__(self) -> str:
        return "gs.zero"


zero = _Zero()


class Argument(NamedTuple):
    """One argument of a call that holds arrays: its name and the specs of its leaves.

    A leaf that is no array is `None` in the tree.
    """

    name: str
    specs: Any


class Outputs(NamedTuple):
    """What a body in closure form returned."""

    outputs: Any
    grad: Callable[..., Any]


def split_outputs(operation: str, returned: Any) -> Outputs:
    """Take `y, grad`, `(z, w), grad` or `z, w, grad` apart."""
    if isinstance(returned, (tuple, list)) and len(returned) > 1:
        *outputs, grad = returned
        if callable(grad):
            return Outputs(outputs[0] if len(outputs) == 1 else tuple(outputs), grad)
        if callable(returned[0]):
            cause = "the gradient function stands first; it comes last"
        else:
            cause = f"its last entry is a {_type(grad)}, not the gradient function"
    else:
        cause = "the gradient function is missing"
    raise GradientContractError(
        f"operation {operation!r} returned the wrong thing\n"
        "  expected: its outputs and then its gradient function, `return y, grad`\n"
        f"  got: {_describe(returned)}\n"
        f"  likely cause: {cause}"
    )


def check_gradients(
    operation: str, returned: Any, arguments: Sequence[Argument]
) -> list[Any]:
    """The gradients for all leaves of all arguments, flat, each checked.

    `None` and `gs.zero` come back as they are, and so does `NotDifferentiable`.
    """
    flat: list[Any] = []
    per_argument = _by_argument(operation, returned, arguments)
    for argument, gradient in zip(arguments, per_argument, strict=True):
        named = list(_tree.leaves_with_names(argument.specs, argument.name))
        leaves = _leaves_of(operation, argument, gradient, len(named))
        for (name, spec), leaf in zip(named, leaves, strict=True):
            if spec is not None:
                flat.append(_check_leaf(operation, "gradient", name, spec, leaf))
    return flat


def split_variables(operation: str, returned: Any) -> tuple[Any, Any]:
    """Take `(gradients, variable gradients)` apart."""
    if isinstance(returned, tuple) and len(returned) == 2:
        return returned
    raise GradientContractError(
        f"the gradient of operation {operation!r} takes variables= and returned the "
        "wrong thing\n"
        "  expected: two entries, the gradients of the arguments and those of the "
        "variables\n"
        f"  got: {_describe(returned)}"
    )


def check_tangents(
    operation: str, returned: Any, specs: Any, flat_specs: Sequence[Spec]
) -> list[Any]:
    """The tangents of all outputs, flat, each checked against its output."""
    leaves = _tree.leaves(returned)
    if len(leaves) != len(flat_specs):
        raise GradientContractError(
            f"the jvp of operation {operation!r} returned the wrong structure\n"
            f"  expected: {len(flat_specs)} tangents, structured as the outputs\n"
            f"  got: {_describe(returned)}"
        )
    named = [name for name, spec in _tree.leaves_with_names(specs, "the output") if spec]
    return [
        _check_leaf(operation, "tangent", name, spec, leaf)
        for name, spec, leaf in zip(named, flat_specs, leaves, strict=True)
    ]


def refuse(operation: str, name: str, why: str) -> NotDifferentiableError:
    """The error for a gradient that a rule declares not to exist."""
    return NotDifferentiableError(
        f"operation {operation!r} has no gradient for argument {name!r}: {why}. It was "
        "asked for, since this argument is being differentiated; pass "
        f"gs.stop_gradient({name}) if it should count as a constant."
    )


# --- structure -----------------------------------------------------------------------


def _by_argument(
    operation: str, returned: Any, arguments: Sequence[Argument]
) -> Sequence[Any]:
    """One gradient (or tree of them) for each argument."""
    names = [argument.name for argument in arguments]
    if len(arguments) == 1 and not _is_packed(returned, arguments[0]):
        return [returned]
    if isinstance(returned, dict) and returned and set(returned) <= set(names):
        return [returned.get(name) for name in names]
    if isinstance(returned, (tuple, list)):
        if len(returned) == len(arguments):
            return returned
        differentiable = [_has_floats(argument) for argument in arguments]
        if len(returned) == sum(differentiable):
            rest = iter(returned)
            return [next(rest) if yes else None for yes in differentiable]
    raise GradientContractError(_count_message(operation, returned, names))


def _is_packed(returned: Any, argument: Argument) -> bool:
    """Whether the only gradient came in a tuple or a dict by name."""
    if isinstance(returned, dict):
        own_keys = isinstance(argument.specs, dict) and argument.specs.keys()
        return argument.name in returned and returned.keys() != own_keys
    if not isinstance(returned, tuple):
        return False
    if _tree.is_leaf(argument.specs):
        return True
    return len(returned) == 1 and not (
        isinstance(argument.specs, tuple) and len(argument.specs) == 1
    )


def _has_floats(argument: Argument) -> bool:
    return any(
        spec is not None and spec.dtype.kind in "fcOV"
        for spec in _tree.leaves(argument.specs)
    )


def _count_message(operation: str, returned: Any, names: Sequence[str]) -> str:
    expected = f"{len(names)} gradient{'s' * (len(names) != 1)}, one for each array "
    expected += f"argument in signature order ({', '.join(names)})"
    if isinstance(returned, dict):
        got = f"a dict with the keys {', '.join(map(repr, returned))}"
        cause = "a dict gives gradients by argument name"
    elif isinstance(returned, (tuple, list)):
        got = f"{len(returned)} gradients"
        if len(returned) > len(names):
            cause = "static arguments (numbers, strings) have no gradient"
        else:
            cause = "return None for an argument that has no gradient"
    else:
        got = f"one ({_describe(returned)})"
        cause = "return a tuple, with None for an argument that has no gradient"
    return (
        f"the gradient of operation {operation!r} has the wrong number of entries\n"
        f"  expected: {expected}\n  got: {got}\n  likely cause: {cause}"
    )


def _leaves_of(
    operation: str, argument: Argument, gradient: Any, count: int
) -> Sequence[Any]:
    """The gradients of one argument's leaves; one word stands for all of them."""
    if gradient is None or gradient is zero or isinstance(gradient, NotDifferentiable):
        return [gradient] * count
    if _tree.is_leaf(argument.specs):
        return [gradient]
    try:
        leaves: list[Any] = []
        _tree.map(lambda spec, leaf: leaves.append(leaf), argument.specs, gradient)
    except ValueError:
        leaves = []
    if len(leaves) != count:
        raise GradientContractError(
            f"the gradient of operation {operation!r} for argument {argument.name!r} "
            "has the wrong structure\n"
            f"  expected: {_outline(argument.specs)}\n"
            f"  got: {_outline(gradient)}\n"
            "  likely cause: the gradient of a tree is a tree of the same structure"
        )
    return leaves


# --- leaves --------------------------------------------------------------------------


def _check_leaf(operation: str, kind: str, name: str, spec: Spec, leaf: Any) -> Any:
    if leaf is None or leaf is zero or isinstance(leaf, NotDifferentiable):
        return leaf
    if spec.dtype.kind in "iub":
        return None  # whole numbers and truth values have no gradient
    if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool):
        if spec.shape == () and not (
            isinstance(leaf, complex) and spec.dtype.kind != "c"
        ):
            return np.asarray(leaf, spec.dtype)
        shape, dtype = (), None
    elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        shape, dtype = tuple(leaf.shape), leaf.dtype
        if shape == spec.shape and dtype == spec.dtype:
            return leaf
    else:
        raise _leaf_error(
            operation, kind, name, _written(spec), _describe(leaf), _not_array(leaf)
        )
    got = f"shape {shape}, {dtype}" if dtype is not None else f"the number {leaf!r}"
    cause = _shape_cause(name, spec.shape, shape)
    if cause is None:
        cause = _dtype_cause(name, spec.dtype, dtype)
    raise _leaf_error(operation, kind, name, _written(spec), got, cause)


def _leaf_error(
    operation: str, kind: str, name: str, expected: str, got: str, cause: str
) -> GradientContractError:
    return GradientContractError(
        f"the {kind} of operation {operation!r} for {name!r} is wrong\n"
        f"  expected: {expected}\n  got: {got}\n  likely cause: {cause}"
    )


def _shape_cause(
    name: str, expected: tuple[int, ...], got: tuple[int, ...]
) -> str | None:
    """The likely reason for a wrong shape, or None if the shape is right."""
    if got == expected:
        return None
    if got == ():
        return (
            "a scalar was returned for an array; was it summed or averaged? The "
            "gradient has an entry for each element"
        )
    if len(got) > 1 and got == expected[::-1]:
        return "it is transposed"
    if _broadcasts(expected, got):
        axes = broadcast_axes(got, expected)
        which = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes}"
        return (
            f"dy was not summed over the broadcast {which}; "
            f"return gs.unbroadcast(gradient, {name}.shape)"
        )
    if sorted(got) == sorted(expected):
        return "its axes are in another order"
    if _broadcasts(got, expected):
        return (
            "it was summed over an axis that the argument has; "
            f"return np.broadcast_to(gradient, {name}.shape)"
        )
    if np.prod(got) == np.prod(expected):
        return f"it has the right number of elements; reshape it to {expected}"
    return "it belongs to another argument, or to the output"


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _dtype_cause(name: str, expected: Any, got: Any) -> str:
    if got.kind == "c" and expected.kind != "c":
        return "the gradient of a real argument is real: return np.real(gradient)"
    if got.kind in "iub":
        return "whole numbers can't be a gradient; multiply by dy, or convert"
    return (
        "an array or NumPy scalar of another precision took part (np.float64(2) is one, "
        f"2.0 is not); or return gradient.astype({name}.dtype)"
    )


def _not_array(leaf: Any) -> str:
    if callable(leaf):
        return "a function was returned; call it"
    if isinstance(leaf, (list, tuple)):
        return "return an array: np.array(gradient), or np.stack of its parts"
    return "return an array, or None if there is no gradient"


# --- words ---------------------------------------------------------------------------


def _written(spec: Spec) -> str:
    return f"shape {spec.shape}, {spec.dtype}"


def _type(x: Any) -> str:
    return "NoneType" if x is None else type(x).__name__


def _describe(x: Any) -> str:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"a {_type(x)} of shape {tuple(x.shape)}, {x.dtype}"
    if isinstance(x, (tuple, list)):
        return f"a {_type(x)} of {len(x)} ({', '.join(map(_describe, x))})"
    return f"a {_type(x)}"


def _outline(tree: Any) -> str:
    return str(_tree.map(lambda leaf: _Word(leaf), tree))


class _Word:
    """A leaf as it is shown in the outline of a tree."""

    def __init__(self, leaf: Any) -> None:
        self.text = str(tuple(leaf.shape)) if hasattr(leaf, "shape") else _type(leaf)

    def __repr__(self) -> str:
        return self.text
