"""One call of an operation: its body run on any arrays, its rules in JAX's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.cotangent import Spec
from ....operations import contract
from ....operations.application import Application, OutputSpecs, run_body
from ....operations.arguments import has_gradient
from ....operations.parameters import Bound
from ..._outputs import flattened, rebuilt
from .specs import (
    as_array,
    as_output,
    conjugate,
    describe,
    fitted,
    no_tangent,
    tangent_type,
    zeros,
)

_HOLE = np.empty(0)  # in place of an array: a traced one would be kept alive


class BoundCall:
    """A call without its arrays, which may come at different levels of tracing."""

    __slots__ = ("bound", "described", "operation", "specs")

    def __init__(self, operation: Any, bound: Bound) -> None:
        self.operation = operation
        self.specs = [describe(x) for x in bound.leaves]
        self.described = bound.with_leaves(self.specs)
        self.bound = bound.with_leaves([_HOLE] * len(bound.leaves))

    def run(self, leaves: Sequence[Any]) -> Ran:
        bound = self.bound.with_leaves(leaves)
        outputs, grad = run_body(self.operation, bound)
        return Ran(self, bound, *flattened(outputs, as_output), grad)

    def wanted(self, perturbed: Sequence[bool]) -> list[int]:
        """The positions of the arrays that have a tangent."""
        pairs = enumerate(zip(self.specs, perturbed, strict=True))
        return [i for i, (spec, moves) in pairs if moves and has_gradient(spec)]


class Ran:
    """A call after its body ran, or with the outputs given."""

    __slots__ = ("bound", "call", "grad", "template", "ys")

    def __init__(
        self, call: BoundCall, bound: Bound, ys: Sequence[Any], template: Any, grad: Any
    ) -> None:
        self.call = call
        self.bound = bound
        self.ys = ys
        self.template = template
        self.grad = grad

    def outputs(self, ys: Sequence[Any]) -> Any:
        return rebuilt(self.template, ys)

    def rules(self, wanted: Sequence[int]) -> Rules:
        specs = [describe(y) for y in self.ys]
        moving = [i for i, spec in enumerate(specs) if has_gradient(spec)]
        return Rules(self, wanted, moving, self._application(specs))

    def _application(self, specs: list[Spec]) -> Application:
        with_rules = self.grad is None or self.call.operation.jvp_rule is not None
        shown = [spec if has_gradient(spec) else None for spec in specs]
        tree = rebuilt(self.template, shown, static=None)
        flat = [spec for spec in shown if spec is not None]
        return Application(
            self.call.operation,
            self.call.described,
            OutputSpecs(tree, flat),
            [],
            grad=self.grad,
            bound=self.bound if with_rules else None,
            y=self.outputs(self.ys) if with_rules else None,
        )


class Rules:
    """The rules of a call, on flat tangents in JAX's convention.

    `wanted` are the positions of the arrays that have tangents, `moving` those of the
    outputs that can have one.
    """

    __slots__ = ("application", "inputs", "ins", "moving", "outs", "wanted")

    def __init__(
        self,
        ran: Ran,
        wanted: Sequence[int],
        moving: Sequence[int],
        application: Application,
    ) -> None:
        self.wanted = wanted
        self.moving = moving
        self.application = application
        self.inputs = [tangent_type(x) for x in ran.bound.leaves]
        self.ins = [self.inputs[i] for i in wanted]
        self.outs = [tangent_type(ran.ys[i]) for i in moving]

    @property
    def can_pull(self) -> bool:
        return self.application.vjp is not None

    @property
    def can_push(self) -> bool:
        return self.application.operation.jvp_rule is not None

    def pull(self, *dys: Any) -> list[Any]:
        """The cotangents of the wanted arrays."""
        upstream = [conjugate(as_array(dy)) for dy in dys]
        flat = self.application.gradients(upstream, self.wanted)
        return [self._meant(i, flat[i]) for i in self.wanted]

    def push(self, *dxs: Any) -> list[Any]:
        """The tangents of the outputs that have one."""
        places = dict(zip(self.wanted, map(as_array, dxs), strict=True))
        flat = self.application.tangents(
            [
                places[i] if i in places else no_tangent(spec)
                for i, spec in enumerate(self.application.call.leaves)
            ]
        )
        return [
            zeros(out) if dy is None or dy is contract.zero else fitted(dy, out)
            for dy, out in zip(flat, self.outs, strict=True)
        ]

    def _meant(self, i: int, gradient: Any) -> Any:
        """What a checked gradient stands for."""
        if isinstance(gradient, contract.NotDifferentiable):
            name = self.application.operation.name
            raise contract.no_gradient(name, self.application.name_of(i), gradient.why)
        if gradient is None or gradient is contract.zero:
            return zeros(self.inputs[i])
        return conjugate(fitted(gradient, self.inputs[i]))
