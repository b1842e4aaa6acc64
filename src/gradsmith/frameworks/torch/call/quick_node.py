"""The node of a run in the usual case; `_quick` says what that is."""

from __future__ import annotations

from typing import Any

import torch

from ....operations.application import add_notes, run_body
from ..private import apply_of, is_any_autocast, keeps_graph, next_node_number
from . import eager
from .autocast import entered
from .captured import not_the_same, require_same
from .closures import alike, stripped
from .hidden import versions
from .outputs import Outputs
from .rules import meant
from .run import Run, changed_in_place, given_back

_is_grad_enabled = torch.is_grad_enabled
_Tensor = torch.Tensor


class Node(torch.autograd.Function):
    """The node of one run, which is: operation, arguments, the tensors among them, what
    else the rule may see, how often all of these were changed in place, and `grad`.

    All of it is held here, released after the walk back, and watched for changes: 2 us
    less than by `save_for_backward`. Nothing of it holds the output that is given back,
    which is a new one: there is no cycle.
    """

    @staticmethod
    def forward(ctx: Any, run: list[Any], *leaves: Any) -> Any:
        y, is_ours = run.pop(), run.pop()
        ctx.run = run
        return y if is_ours and not y._is_view() else given_back(y, leaves)

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        run = ctx.run
        if not run or _is_grad_enabled() or is_any_autocast():
            return _unusual(ctx, dy)
        operation, args, leaves, held, version, grad = run
        for x in leaves:
            version -= x._version
        for x in held:
            version -= x._version
        if version:
            raise changed_in_place()
        try:
            if grad is None:
                returned = operation.vjp_rule(dy, held[0], *args)
            else:
                returned = grad(dy)
        except Exception as error:
            what = "vjp" if grad is None else "gradient"
            add_notes(error, f"the {what} of operation {operation.name!r}")
            raise
        if not keeps_graph():
            run.clear()
        if len(leaves) == 1:
            x = leaves[0]
            if (
                returned.__class__ is _Tensor
                and returned.dtype is x.dtype
                and returned.shape == x.shape
            ):
                return None, returned
        elif (
            returned.__class__ is tuple
            and len(returned) == len(leaves)
            and all(map(_fits, returned, leaves))
        ):
            return (None, *returned)
        return (None, *_checked(ctx, operation, args, leaves, dy, returned))


def backward_in_graph(ctx: Any, dy: torch.Tensor) -> Any:
    """`Node.backward` for compiled autograd, which knows of no changes in place."""
    operation, args, leaves, held, _, grad = ctx.run
    returned = operation.vjp_rule(dy, held[0], *args) if grad is None else grad(dy)
    return (None, *_checked(ctx, operation, args, leaves, dy, returned))


def _unusual(ctx: Any, dy: torch.Tensor) -> Any:
    if not ctx.run:
        raise RuntimeError(
            "Trying to backward through the graph a second time, after what an "
            "operation saved for its gradient was freed. Specify retain_graph=True if "
            "you need to backward through the graph a second time."
        )
    with entered(()):  # autocast was not active when the body ran
        if not _is_grad_enabled():
            return Node.backward(ctx, dy)
        found = _again(ctx, ctx.run, dy)
    if not keeps_graph():
        ctx.run.clear()
    return (None, *found)


def _fits(dx: Any, x: torch.Tensor) -> bool:
    return dx.__class__ is _Tensor and dx.dtype is x.dtype and dx.shape == x.shape


apply = apply_of(Node)


def _wanted(ctx: Any) -> list[int]:
    return [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed]


def _again(ctx: Any, run: Any, dy: Any) -> list[Any]:
    """The gradients, to be differentiated: by the general way, which can do that."""
    operation, args, saved, held, version, grad = run
    if versions([*saved, *held]) != version:
        raise changed_in_place()
    leaves = [x.view_as(x) for x in saved]
    bound = operation.signature.bind(args, {})
    bound, start = bound.with_leaves([x.detach() for x in saved]), next_node_number()
    if grad is None:
        returned = held[0]
    else:
        before = grad
        returned, grad = run_body(operation, bound)
        _require_the_same(operation, before, grad)
    y = eager.attached(operation, leaves, bound, returned, grad, start)
    found: list[Any] = [None] * len(saved)
    wanted = _wanted(ctx)
    gradients = torch.autograd.grad(
        y, [leaves[i] for i in wanted], dy, create_graph=True, allow_unused=True
    )
    for i, dx in zip(wanted, gradients, strict=True):
        found[i] = dx
    return found


def _require_the_same(operation: Any, grad: Any, again: Any) -> None:
    """Raise if a gradient function has captured something else in a new run."""
    tensors: tuple[list[Any], list[Any]] = [], []
    if not alike(stripped(grad, tensors[0]), stripped(again, tensors[1])):
        raise not_the_same(operation)
    require_same(operation, *tensors)


def _checked(
    ctx: Any, operation: Any, args: Any, saved: Any, dy: Any, returned: Any
) -> list[Any]:
    """What a rule returned, read and checked by the contract."""
    bound = operation.signature.bind(args, {})
    outputs = Outputs(operation, dy)
    run = Run(operation, bound, outputs, None)
    application = run.application([*saved, dy], [dy])
    wanted = _wanted(ctx)
    gradients, specs = application.checked(returned, wanted), application.call.leaves
    found: list[Any] = [None] * len(saved)
    for i in wanted:
        found[i] = meant(application, gradients[i], specs[i], i)
    return found
