"""The node of a run in the usual case; `_quick` says what that is."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import torch

from ..._application import add_notes, run_body
from . import _eager
from ._autocast import entered
from ._captured import not_the_same, require_same
from ._closures import alike, stripped
from ._hidden import PLAIN
from ._outputs import Outputs
from ._private import apply_of, is_alias, is_any_autocast, keeps_graph, next_node_number
from ._rules import meant
from ._run import Run, changed_in_place, given_back

_is_grad_enabled = torch.is_grad_enabled
_Tensor = torch.Tensor


class Node(torch.autograd.Function):
    """The node of one run.

    Autograd saves the arguments. What else the rule is given is released here, after
    the walk back, and watched for changes in place. Nothing of it holds the output that
    is given back, which is a new one: there is no cycle.
    """

    @staticmethod
    def forward(ctx: Any, run: list[Any], *leaves: Any) -> Any:
        y = run.pop()
        if run[2] is None:  # in rule form
            run[2] = y
        ctx.run = run
        ctx.save_for_backward(*leaves)
        for x in leaves:
            if is_alias(y, x):
                return given_back(y, leaves)
        return y.detach()

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        saved, run = ctx.saved_tensors, ctx.run
        if _is_grad_enabled():
            with entered(()):
                return (None, *_again(ctx, run, saved, dy))
        if is_any_autocast():  # it was not, when the body ran
            with entered(()):
                return Node.backward(ctx, dy)
        operation, static, given, version = run
        try:
            if operation.closure:
                if captured_version(given) != version:
                    raise changed_in_place()
                returned = given(dy)
            else:
                if given._version != version:
                    raise changed_in_place()
                args = saved if static is None else _filled(static, saved)
                returned = operation.vjp_rule(dy, given, *args)
        except Exception as error:
            what = "gradient" if operation.closure else "vjp"
            add_notes(error, f"the {what} of operation {operation.name!r}")
            raise
        if not keeps_graph():
            run[2] = None
        if len(saved) == 1:
            x = saved[0]
            if (
                returned.__class__ is _Tensor
                and returned.dtype is x.dtype
                and returned.shape == x.shape
            ):
                return None, returned
        elif (
            returned.__class__ is tuple
            and len(returned) == len(saved)
            and all(map(_fits, returned, saved))
        ):
            return (None, *returned)
        return (None, *_checked(ctx, run, saved, dy, returned))


def _fits(dx: Any, x: torch.Tensor) -> bool:
    return dx.__class__ is _Tensor and dx.dtype is x.dtype and dx.shape == x.shape


apply = apply_of(Node)


def _filled(static: Sequence[Any] | None, saved: Sequence[Any]) -> Sequence[Any]:
    if static is None:
        return saved
    rest = iter(saved)
    return [next(rest) if x is _Tensor else x for x in static]


def _wanted(ctx: Any) -> list[int]:
    return [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed]


def _again(ctx: Any, run: Any, saved: Any, dy: Any) -> list[Any]:
    """The gradients, to be differentiated: by the general way, which can do that."""
    operation, static, given, version = run
    leaves = [x.view_as(x) for x in saved]
    inner = _filled(static, [x.detach() for x in saved])
    bound, start = operation.signature.bind(tuple(inner), {}), next_node_number()
    returned, grad = given, None
    if operation.closure:
        returned, grad = run_body(operation, bound)
        _require_the_same(operation, given, version, grad)
    elif given._version != version:
        raise changed_in_place()
    y = _eager.attached(operation, leaves, bound, returned, grad, start)
    found: list[Any] = [None] * len(saved)
    wanted = _wanted(ctx)
    gradients = torch.autograd.grad(
        y, [leaves[i] for i in wanted], dy, create_graph=True, allow_unused=True
    )
    for i, dx in zip(wanted, gradients, strict=True):
        found[i] = dx
    return found


def _require_the_same(operation: Any, given: Any, version: int, again: Any) -> None:
    """Raise if a gradient function has captured something else in a new run."""
    if captured_version(given) != version:
        raise changed_in_place()
    tensors: tuple[list[Any], list[Any]] = [], []
    if not alike(stripped(given, tensors[0]), stripped(again, tensors[1])):
        raise not_the_same(operation)
    require_same(operation, *tensors)


def _checked(ctx: Any, run: Any, saved: Any, dy: Any, returned: Any) -> list[Any]:
    """What a rule returned, read and checked by the contract."""
    operation, static = run[:2]
    bound = operation.signature.bind(tuple(_filled(static, saved)), {})
    outputs = Outputs(operation, dy)
    whole = Run(operation, bound, outputs, None)
    application = whole.application([*saved, dy], [dy])
    wanted = _wanted(ctx)
    gradients, specs = application.checked(returned, wanted), application.call.leaves
    found: list[Any] = [None] * len(saved)
    for i in wanted:
        found[i] = meant(application, gradients[i], specs[i], i)
    return found


def captured_version(grad: Any) -> int | None:
    """How often the tensors that a function captured were changed in place.

    None if it is not known of all of them.
    """
    if grad.__class__ is not FunctionType:
        return None
    version = 0
    for cell in grad.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # it is empty
            continue
        cls = content.__class__
        if cls is _Tensor:
            try:
                version += content._version
            except RuntimeError:  # it was made in inference mode
                return None
        elif cls not in PLAIN and not isinstance(content, torch.nn.Module):
            return None
    return version
