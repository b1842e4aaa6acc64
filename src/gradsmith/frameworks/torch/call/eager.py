"""Operations in eager mode, under plain autograd.

The body runs on detached tensors while gradients are recorded. So what it returns is
connected to what it captured (parameters, say) and to nothing else; the operation's
rule connects it to the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core import trees
from ....core.arity import arity_of
from ....core.errors import UnsupportedOperationError
from ....operations.application import run_body
from ....operations.parameters import Bound
from ..private import apply_of, is_any_autocast, next_node_number
from .autocast import entered, states
from .captured import Captured, Variable, captured_by, gradients_again, variables_of
from .eager_call import EagerCall
from .hidden import named_in
from .outputs import Outputs, as_tensor
from .rules import gradients
from .specs import require_supported


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that autograd differentiates it by its rule."""
    if not torch.is_grad_enabled():
        return plain(operation, bound)
    start = next_node_number()
    detached = [x.detach() if x.requires_grad else x for x in bound.leaves]
    inner, before = bound.with_leaves(detached), _changes(bound.leaves)
    returned, grad = run_body(operation, inner)
    require_unchanged(operation, bound.leaves, before)
    return attached(operation, bound.leaves, inner, returned, grad, start)


def attached(
    operation: Any,
    leaves: Sequence[torch.Tensor],
    inner: Bound,
    returned: Any,
    grad: Any,
    start: int,
) -> Any:
    """The outputs of a body, with the rule as their derivative.

    It ran as `inner`, on detached `leaves`; no node of it is older than `start`.
    """
    outputs = Outputs(operation, returned)
    variables: Sequence[Variable] = ()
    captured = captured_by(outputs, start)
    if captured:
        vjp = grad or operation.vjp_rule
        if vjp is not None and arity_of(vjp).variables:
            variables = variables_of(operation, inner, captured)
            captured = None
    varies = variables or any(x.requires_grad for x in leaves)
    if not varies or not outputs.varied:
        return outputs.structured(outputs.flat)
    require_supported(leaves)
    autocast = states(leaves) if is_any_autocast() else ()
    run = EagerCall(operation, inner, outputs, grad, autocast, variables, captured)
    run.named = named_in(grad or operation.vjp_rule)
    if captured or variables:
        leaves = [*leaves, *(x for x, _ in variables), *_inputs(captured)]
    ys = _apply(run, *leaves)
    return ys if outputs.structure == 0 else outputs.structured(ys)


def require_unchanged(operation: Any, leaves: Sequence[Any], before: int) -> int:
    """Raise if a body has changed an argument that has a gradient.

    Returns how often all arguments were changed.
    """
    if _changes(leaves) == before:
        return sum(x._version for x in leaves if not x.is_inference())
    raise UnsupportedOperationError(
        f"the body of operation {operation.name!r} changed an argument in place, and "
        "its gradient would miss that\n"
        "  what to do: work on a copy (x = x.clone()) or make a new tensor"
    )


def _changes(leaves: Sequence[torch.Tensor]) -> int:
    return sum(x._version for x in leaves if x.requires_grad)


def plain(operation: Any, bound: Bound) -> Any:
    """Run an operation where nothing is recorded."""
    returned, _ = run_body(operation, bound)
    if isinstance(returned, torch.Tensor):
        return returned
    return trees.map(lambda y: as_tensor(operation, y), returned)


def _inputs(captured: Captured | None) -> list[torch.Tensor]:
    return [*captured.outputs, *captured.leaves] if captured else []


class _Applied(torch.autograd.Function):
    """The node of one run. Its inputs are the arguments and variables, and then, as
    far as the body captured something, the outputs that depend on that, whose gradient
    is the upstream itself, and the captured leaves.

    The leaves have a gradient here only if that is to be differentiated.
    """

    @staticmethod
    def forward(ctx: Any, run: EagerCall, *inputs: torch.Tensor) -> Any:
        ctx.run = run
        ys, saved = run.finished(inputs)
        ctx.save_for_backward(*saved)
        varied = run.outputs.varied
        if len(varied) < len(ys):
            ctx.mark_non_differentiable(
                *(y for i, y in enumerate(ys) if i not in varied)
            )
        return ys[0] if run.outputs.structure == 0 else tuple(ys)

    @staticmethod
    def backward(ctx: Any, *dys: torch.Tensor) -> Any:
        run, needs, saved = ctx.run, ctx.needs_input_grad, ctx.saved_tensors
        own = range(run.leaves + len(run.variables))
        wanted = [i for i in own if needs[i + 1]]
        if len(run.outputs.varied) < len(dys):
            dys = tuple([dys[i] for i in run.outputs.varied])
        with entered(run.autocast):
            again = run.again(saved) if torch.is_grad_enabled() else None
            found: dict[int, Any] = {}
            if wanted:
                found = gradients(run.application(saved, dys, again), dys, wanted)
                if run.named is not None:
                    run.named.written()
        if not run.captured:
            return (None, *[found.get(i) for i in own])
        captured = _captured_gradients(run, dys, again)
        return (None, *[found.get(i) for i in own], *captured)


def _captured_gradients(run: EagerCall, dys: Sequence[Any], again: Any) -> list[Any]:
    captured = run.captured
    assert captured is not None
    upstream = [dys[i] for i in captured.places]
    if again is None:
        return [*upstream, *(None for _ in captured.leaves)]
    ys = [again.outputs.flat[run.outputs.varied[i]] for i in captured.places]
    found = gradients_again(run.operation, ys, upstream, captured)
    return [*(None for _ in upstream), *found]


_apply = apply_of(_Applied)
