"""Operations under torch.compile, traced by Dynamo.

With plain autograd Dynamo traces body and rule itself, with all its guards, into the
graph that a hand-written Function gives. Under torch.func it would trace the body alone
and drop the rule without a word. There the operation is one node of its graph that
Dynamo does not look into; it is taken apart one stage later, when torch.func's
transformations are traced as they run.
"""

from __future__ import annotations

from typing import Any

import torch

from ... import _tree
from ..._application import Application, run_body
from ..._parameters import Bound
from .. import OPERATIONS
from . import _transformed
from ._outputs import Outputs
from ._rules import gradients
from ._specs import TensorSpec


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation while Dynamo traces."""
    leaves = bound.leaves
    inner = bound.with_leaves([x.detach() for x in leaves])
    returned, grad = run_body(operation, inner)
    outputs = Outputs(operation, returned)
    if torch._C._are_functorch_transforms_active():
        # Traced above, the body has left Dynamo's guards; its results are not used.
        args, kwargs = bound.given_arguments()
        return outputs.structured(_opaque(operation.number, args, kwargs))
    varies = any(x.requires_grad for x in leaves)
    if not torch.is_grad_enabled() or not varies or not outputs.varied:
        return outputs.structured(outputs.flat)
    specs = outputs.specs_from([TensorSpec(outputs.flat[i]) for i in outputs.varied])
    bound_specs = bound.with_leaves([TensorSpec(x) for x in leaves])
    application = Application(
        operation, bound_specs, specs, (), grad=grad, bound=inner, y=returned
    )
    ys = Traced.apply(application, outputs.varied, len(outputs.flat), *outputs.flat, *leaves)
    return outputs.structured(ys)


@torch.compiler.allow_in_graph
def _opaque(number: int, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs of an operation, in a node that Dynamo does not look into."""
    operation = OPERATIONS[number]
    bound = operation.signature.bind(tuple(args), kwargs)
    outputs = _transformed.call(operation, bound)
    return tuple(y for y in _tree.leaves(outputs) if isinstance(y, torch.Tensor))


class Traced(torch.autograd.Function):
    """Outputs in, the same out, but connected to the arguments by the rule."""

    @staticmethod
    def forward(
        ctx: Any, application: Application, varied: list[int], k: int, *tensors: Any
    ) -> Any:
        ctx.application = application
        ctx.varied = varied
        ctx.k = k
        ys = tuple(y.view_as(y) for y in tensors[:k])
        ctx.mark_non_differentiable(*[y for i, y in enumerate(ys) if i not in varied])
        return ys

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> Any:
        needs = ctx.needs_input_grad[3 + ctx.k :]
        wanted = [i for i in range(len(needs)) if needs[i]]
        own = [dys[i] for i in ctx.varied]
        found = gradients(ctx.application, own, wanted)
        return (None, None, None, *dys, *[found.get(i) for i in range(len(needs))])
