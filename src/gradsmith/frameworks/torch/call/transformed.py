"""Operations under torch.func's transformations and forward-mode dual numbers.

The body runs on detached tensors, at the level it is called at, so that what it
captured is followed as usual. What it returned, and what its gradient function
captured, then pass through a node that connects them to the arguments: outputs by the
rule, captured tensors by the derivative of the body. The latter is what a second
derivative needs; a first one does not ask for it.
"""

from __future__ import annotations

from typing import Any

import torch

from ....core.arity import arity_of
from ....core.errors import UnsupportedOperationError
from ....operations.application import run_body
from ....operations.parameters import Bound
from ..private import forward_mode, is_any_autocast
from .autocast import entered, states
from .levels import alive, is_nested, levels_of, primal_of, require_one_order
from .outputs import Outputs
from .residuals import Transformed
from .rules import gradients, tangents
from .specs import has_gradient, require_supported

_WAYS_OUT = (
    "it ran under a transformation, where tensors have no concrete values: use "
    "gradsmith.numpy.where instead of `if`, gradsmith.numpy instead of numpy, or make "
    "the operation with gs.python_op"
)


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that every transformation differentiates it by its rule."""
    inner = bound.with_leaves([x.detach() for x in bound.leaves])
    try:
        returned, grad = run_body(operation, inner)
    except (RuntimeError, TypeError) as error:
        error.add_note(_WAYS_OUT)
        raise
    outputs = Outputs(operation, returned)
    if not outputs.varied:
        return outputs.structured(outputs.flat)
    require_supported(bound.leaves)
    _refuse_variables(operation, grad, outputs)
    require_one_order(operation, bound.leaves, outputs.flat)
    autocast = states(bound.leaves) if is_any_autocast() else ()
    run = Transformed(operation, inner, outputs, grad, autocast)
    run.is_nested = is_nested(bound.leaves)
    ys = Connected.apply(run, *outputs.flat, *run.take_residuals(), *bound.leaves)
    return outputs.structured(ys)


def _refuse_variables(operation: Any, grad: Any, outputs: Outputs) -> None:
    vjp = grad or operation.vjp_rule
    if vjp is None or not arity_of(vjp).variables:
        return
    if any(map(levels_of, outputs.flat)):
        raise UnsupportedOperationError(
            f"the gradient of operation {operation.name!r} takes variables=, and "
            "torch.func knows no variables\n"
            "  what to do: pass what the body captured as arguments"
        )


class Connected(torch.autograd.Function):
    """The node of one run: outputs and residuals in, the same out, but connected.

    In the order: outputs, residuals (what `grad` captured), arguments.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(run: Transformed, *tensors: torch.Tensor) -> Any:
        return tuple(x.detach() for x in tensors[: run.k + run.residuals])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.run = inputs[0]
        leaves = inputs[1 + len(output) :]
        ctx.save_for_backward(*leaves, *output)
        ctx.save_for_forward(*leaves, *output)
        ctx.mark_non_differentiable(*(y for y in output if not has_gradient(y)))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> Any:
        run, saved = ctx.run, [alive(x) for x in ctx.saved_tensors]
        outputs, residuals = dys[: run.k], dys[run.k :]
        found: dict[int, Any] = {}
        wanted = [i for i, x in enumerate(saved[: run.leaves]) if has_gradient(x)]
        if any(dy is not None for dy in outputs):
            upstream = run.upstream(outputs, saved)
            with entered(run.autocast):
                found = gradients(run.rule(saved), upstream, wanted)
        for i, dx in run.pulled(saved, residuals).items():
            found[i] = dx if found.get(i) is None else found[i] + dx
        return (None, *dys, *(found.get(i) for i in range(run.leaves)))

    @staticmethod
    def jvp(ctx: Any, _: Any, *dxs: Any) -> Any:
        run, saved = ctx.run, ctx.saved_tensors
        own, given = [*dxs[: run.k + run.residuals]], dxs[run.k + run.residuals :]
        if any(dx is not None for dx in given):
            # PyTorch turns forward mode off here, so that tangents of tangents, which
            # belong to outer levels, are lost. The tangents of this one are given.
            with forward_mode(True), entered(run.autocast):
                saved = [primal_of(x) for x in saved]
                found = tangents(run.rule(saved), given)
                pushed = dict(zip(run.outputs.varied, found, strict=True))
                for i, dy in run.pushed(saved, given).items():
                    pushed[i + run.k] = dy
            for i, dy in pushed.items():
                own[i] = dy if own[i] is None else own[i] + dy
        tensors = saved[run.leaves :]
        return tuple(
            None if not has_gradient(x) else torch.zeros_like(x) if dy is None else dy
            for dy, x in zip(own, tensors, strict=True)
        )
