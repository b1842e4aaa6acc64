"""What the rules of an operation give, as tensors; one mode follows from the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from ....core import trees
from ....core.errors import UnsupportedOperationError
from ....operations import contract
from ....operations.application import Application
from ..private import traced_versions, vjp
from .hidden import versions


def gradients(
    application: Application, dys: Sequence[Any], wanted: Collection[int]
) -> dict[int, torch.Tensor | None]:
    """The wanted gradients, by the position of their array or variable."""
    if application.vjp is None:
        return _transposed_tangents(application, dys, wanted)
    before = _versions(application, dys)
    found = application.gradients(dys, wanted)
    if _versions(application, dys)[: len(before)] != before:
        raise changed_upstream(application.operation, application.vjp)
    specs: Any = application.call.leaves
    if application.variables:
        specs = application.specs()
        if len(found) < len(specs):  # the rule does not take them
            wanted = [i for i in wanted if i < len(found)]
    result = {}
    for i in wanted:
        gradient, spec = found[i], specs[i]
        if gradient.__class__ is torch.Tensor and gradient.dtype is spec.native:
            result[i] = gradient
        else:
            result[i] = meant(application, gradient, spec, i)
    return result


def _versions(application: Application, dys: Sequence[Any]) -> tuple[int, ...]:
    """How often the upstream, and outputs that a rule is given, were changed."""
    if torch.compiler.is_dynamo_compiling():
        return traced_versions()
    if application.grad is not None:
        return (versions(dys),)
    outputs = [y for y in trees.leaves(application.y) if isinstance(y, torch.Tensor)]
    return (versions([*dys, *outputs]),)


def changed_upstream(operation: Any, rule: Any) -> UnsupportedOperationError:
    """The error for a rule that writes into what it is given."""
    return UnsupportedOperationError(
        f"the gradient of operation {operation.name!r} changed its upstream gradient, "
        "or an output that it was given, in place, and others use these too\n"
        "  what to do: make a new tensor (dx = dy * 2) or work on a copy "
        f"(dy = dy.clone()) in {contract.named(rule)}"
    )


def meant(application: Application, gradient: Any, spec: Any, i: int) -> Any:
    """What a checked gradient or tangent stands for; None is no gradient."""
    if gradient is None:
        return None
    if gradient is contract.zero:
        return spec.zeros()
    if isinstance(gradient, contract.NotDifferentiable):
        name = application.name_of(i)
        raise contract.no_gradient(application.operation.name, name, gradient.why)
    return spec.accepts(gradient)


def tangents(application: Application, dxs: Sequence[Any]) -> list[torch.Tensor]:
    """The tangents of the outputs; None stands for a tangent of zero."""
    if application.operation.jvp_rule is None:
        return _transposed_gradients(application, dxs)
    pairs = zip(dxs, application.call.leaves, strict=True)
    found = application.tangents(
        [spec.zeros() if dx is None else dx for dx, spec in pairs]
    )
    specs: Any = application.outputs.flat
    return [
        spec.zeros() if dy is None else meant(application, dy, spec, i)
        for i, (dy, spec) in enumerate(zip(found, specs, strict=True))
    ]


# A rule is linear in its upstream, so its derivative there is the rule itself at any
# point, and what pulls back through it is its transpose. At ones, since at zeros the
# user's code may take shortcuts.


def _transposed_gradients(
    application: Application, dxs: Sequence[Any]
) -> list[torch.Tensor]:
    given = [i for i, dx in enumerate(dxs) if dx is not None]
    leaves: Any = application.call.leaves

    def rule(*dys: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = gradients(application, dys, given)
        pairs = [(found[i], leaves[i]) for i in given]
        return tuple(spec.zeros() if dx is None else dx for dx, spec in pairs)

    specs: Any = application.outputs.flat
    with contract.transposing(
        application.operation, application.vjp, mode="forward", missing="jvp"
    ):
        return _transpose(rule, specs, [dxs[i] for i in given])


def _transposed_tangents(
    application: Application, dys: Sequence[Any], wanted: Collection[int]
) -> dict[int, torch.Tensor | None]:
    specs: Any = application.call.leaves

    def rule(*dxs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = dict(zip(wanted, dxs, strict=True))
        return tuple(tangents(application, [given.get(i) for i in range(len(specs))]))

    with contract.transposing(
        application.operation, application.vjp, mode="reverse", missing="vjp"
    ):
        found = _transpose(rule, [specs[i] for i in wanted], dys)
    return dict(zip(wanted, found, strict=True))


def _transpose(rule: Any, specs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    _, pull = vjp(rule, *(spec.ones() for spec in specs))
    return list(pull(tuple(given)))
