"""Operations under torch.compile, traced by Dynamo.

With plain autograd Dynamo traces body and rule itself, with all its guards, into the
graph that a hand-written Function gives. Under torch.func it would trace the body alone
and drop the rule without a word. There the operation is one node of its graph that
Dynamo does not look into; it is taken apart one stage later, when torch.func's
transformations are traced as they run.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from ....core.errors import UnsupportedOperationError
from ....operations.application import Application, run_body
from ....operations.operation import OPERATIONS
from ....operations.parameters import Bound
from ..private import is_exporting, is_static, is_transformed, watch_saved
from . import eager, in_graph, transformed
from .autocast import entered, states
from .guards import forget
from .nodes import (
    decoded,
    encoded,
    frozen,
    named,
    numbered,
    refusing,
    thawed,
    with_tensors,
)
from .outputs import Outputs
from .rules import gradients
from .specs import AutocastSpec, TensorSpec


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation while Dynamo traces."""
    if is_exporting() and torch.is_grad_enabled():
        raise UnsupportedOperationError(
            f"operation {operation.name!r} keeps its rule in torch.export with "
            "strict=False, the default, only\n"
            "  what to do: omit strict=True, or export for inference, under "
            "torch.no_grad()"
        )
    numbers = [x for x in bound.values if type(x) in (int, float)]
    is_fixed = all(is_static(x) for x in numbers)  # no number of a kernel is open
    if operation.hosted or (is_fixed and _is_for_kernel(operation)):
        ys = opaque(operation.key, *_encoded(operation, bound))
        y = decoded(with_tensors(thawed(structure(operation.key)), ys))
        forget()
        return y
    leaves = bound.leaves
    inner = bound.with_leaves([x.detach() for x in leaves])
    returned, grad = run_body(operation, inner)
    outputs = Outputs(operation, returned)
    varies = torch.is_grad_enabled() and any(x.requires_grad for x in leaves)
    if is_transformed():
        # Traced above, the body has left Dynamo's guards; its results are not used.
        ys: Any = opaque(operation.key, *_encoded(operation, bound))
    elif not varies or not outputs.varied:
        ys = outputs.flat
    else:
        ys = _ruled(operation, bound, inner, outputs, returned, grad)
    y = outputs.structured(ys)
    forget()  # here, where a body that breaks the graph makes no new frame of it
    return y


def _is_for_kernel(operation: Any) -> bool:
    """Whether a kernel may do better than what a compiler makes of the body."""
    fused = operation.fused
    return (
        fused is not None
        and (bool(fused.in_graph) or (fused.strict and torch.cuda.is_available()))
        and not (is_transformed() or is_exporting())
    )


def _ruled(
    operation: Any, bound: Bound, inner: Bound, outputs: Outputs, y: Any, grad: Any
) -> Any:
    """The outputs of a body that ran as `inner`, with the rule as their derivative."""
    leaves = bound.leaves
    specs = outputs.specs_from([TensorSpec(outputs.flat[i]) for i in outputs.varied])
    autocast = states(leaves)
    spec = AutocastSpec if autocast else TensorSpec
    bound_specs = bound.with_leaves([spec(x) for x in leaves])
    application = Application(
        operation, bound_specs, specs, (), grad=grad, bound=inner, y=y
    )
    tensors = _distinct([*outputs.flat, *leaves])
    k = len(outputs.flat)
    ys = Traced.apply(application, autocast, outputs.varied, k, *tensors)
    watch_saved()
    return ys


def _distinct(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same tensors, none of them twice, which Dynamo can't have."""
    found: list[torch.Tensor] = []
    for x in tensors:
        is_known = any(x is other for other in found)
        found.append(x.view_as(x) if is_known else x)
    return found


def _encoded(operation: Any, bound: Bound) -> tuple[Any, Any]:
    args, kwargs = bound.given_arguments()
    other = named  # a callback looks at an object when it is called
    if not operation.hosted:
        other = refusing(operation.name, "is compiled under torch.func", named)
    return encoded(args, other), encoded(kwargs, other)


def opaque(key: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs of an operation, in a node that Dynamo does not look into."""
    operation = OPERATIONS[key]
    bound = operation.signature.bind(decoded(tuple(args)), decoded(kwargs))
    if is_transformed():
        run = transformed.call
    else:
        run = in_graph.call if _is_for_kernel(operation) else eager.call
    try:
        outputs = run(operation, bound)
    except AssertionError as error:
        if "FakeTensor" not in str(error):
            raise
        raise UnsupportedOperationError(
            f"operation {operation.name!r} captures a tensor, and torch.compile can't "
            "follow that under torch.func\n"
            "  what to do: make that tensor an argument of the operation"
        ) from error
    ys: list[torch.Tensor] = []
    _structures[operation] = frozen(numbered(encoded(outputs, named), ys))
    return tuple(ys)


# Of what an operation returned when last traced
_structures: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def structure(key: str) -> Any:
    """The structure of what was returned just now, when Dynamo tried out the node."""
    return _structures[OPERATIONS[key]]


class Traced(torch.autograd.Function):
    """Outputs in, the same out, but connected to the arguments by the rule."""

    @staticmethod
    def forward(
        ctx: Any, application: Any, autocast: Any, varied: Any, k: int, *tensors: Any
    ) -> Any:
        ctx.application = application
        ctx.autocast = autocast
        ctx.varied = varied
        ctx.k = k
        ys = tuple(y.view_as(y) for y in tensors[:k])
        ctx.mark_non_differentiable(*[y for i, y in enumerate(ys) if i not in varied])
        return ys

    @staticmethod
    def backward(ctx: Any, *dys: Any) -> Any:
        needs = ctx.needs_input_grad[4 + ctx.k :]
        wanted = [i for i in range(len(needs)) if needs[i]]
        own = [dys[i] for i in ctx.varied]
        with entered(ctx.autocast):
            found = gradients(ctx.application, own, wanted)
        nothing = (None, None, None, None)
        return (*nothing, *dys, *[found.get(i) for i in range(len(needs))])
