"""Operations under torch.func's transformations and forward-mode dual numbers.

The body runs on detached tensors, at the level it is called at, so that what it
captured is followed as usual. What it returned, and what its gradient function
captured, then pass through a node that connects them to the arguments: outputs by the
rule, captured tensors by the derivative of the body. The latter is what a second
derivative needs; a first one does not ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..._application import Application, run_body
from ..._errors import UnsupportedOperationError
from ..._parameters import Bound, takes
from ._autocast import entered, states
from ._closures import restored, stripped
from ._levels import levels_of, primal_of, require_one_order
from ._outputs import Outputs
from ._private import forward_mode, is_any_autocast, vjp
from ._rules import gradients, tangents
from ._run import Run
from ._specs import AutocastSpec, TensorSpec, has_gradient, require_supported


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that every transformation differentiates it by its rule."""
    inner = bound.with_leaves([x.detach() for x in bound.leaves])
    returned, grad = run_body(operation, inner)
    outputs = Outputs(operation, returned)
    if not outputs.varied:
        return outputs.structured(outputs.flat)
    require_supported(bound.leaves)
    _refuse_variables(operation, grad, outputs)
    require_one_order(operation, bound.leaves, outputs.flat)
    autocast = states(bound.leaves) if is_any_autocast() else ()
    run = Transformed(operation, inner, outputs, grad, autocast)
    ys = Connected.apply(run, *outputs.flat, *run.take_residuals(), *bound.leaves)
    return outputs.structured(ys)


def _refuse_variables(operation: Any, grad: Any, outputs: Outputs) -> None:
    vjp = grad or operation.vjp_rule
    if vjp is None or not takes(vjp).variables:
        return
    if any(map(levels_of, outputs.flat)):
        raise UnsupportedOperationError(
            f"the gradient of operation {operation.name!r} takes variables=, and "
            "torch.func knows no variables\n"
            "  what to do: pass what the body captured as arguments"
        )


class Transformed(Run):
    """One run of a body. The tensors are saved by each transformation for itself.

    They are the arguments', the outputs, and what `grad` captured beside these.
    """

    __slots__ = ("k", "residuals", "spec", "varied_residuals")

    def __init__(
        self, operation: Any, bound: Bound, outputs: Outputs, grad: Any, autocast: Any
    ) -> None:
        super().__init__(operation, bound, outputs, None, autocast)
        self.k = len(outputs.flat)
        self.spec = outputs.specs_from(
            [TensorSpec(outputs.flat[i]) for i in outputs.varied]
        )
        tensors = [*bound.leaves, *outputs.flat]
        if grad is not None:
            self.grad = stripped(grad, tensors)
        self.residuals: Any = tensors[self.leaves + self.k :]

    def take_residuals(self) -> list[torch.Tensor]:
        """What the gradient function captured; from now on it is not held here."""
        residuals = self.residuals
        self.residuals = len(residuals)
        self.varied_residuals = [k for k, x in enumerate(residuals) if has_gradient(x)]
        self.saved = ()
        self.outputs.flat = []
        spec = AutocastSpec if self.autocast else TensorSpec
        self.bound = self.bound.with_leaves([spec(x) for x in self.bound.leaves])
        return residuals

    def rule(self, saved: Sequence[torch.Tensor]) -> Application:
        """What the rules are called with, from the tensors of one transformation."""
        ys = saved[self.leaves : self.leaves + self.k]
        grad = restored(self.grad, saved) if self.grad is not None else None
        return Application(
            self.operation,
            self.bound,
            self.spec,
            (),
            grad=grad,
            bound=self.bound.with_leaves(saved[: self.leaves]),
            y=self.outputs.structured(ys),
        )

    def upstream(self, dys: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
        """One cotangent for each output that has a gradient; None stands for zeros."""
        return [
            torch.zeros_like(saved[self.leaves + i]) if dys[i] is None else dys[i]
            for i in self.outputs.varied
        ]

    def pulled(self, leaves: Sequence[Any], dys: Sequence[Any]) -> dict[int, Any]:
        """The gradients of the arguments by cotangents of the residuals."""
        given = [k for k, dy in enumerate(dys) if dy is not None]
        varied = [i for i, x in enumerate(leaves) if has_gradient(x)]
        if not given:
            return {}
        _, pull = vjp(self._of(leaves, varied, given), *_at(leaves, varied))
        return dict(zip(varied, pull(tuple(dys[k] for k in given)), strict=True))

    def pushed(self, leaves: Sequence[Any], dxs: Sequence[Any]) -> dict[int, Any]:
        """The tangents of the residuals by tangents of the arguments.

        By transposing the pullback, for forward mode does not nest in itself.
        """
        varied = [i for i, x in enumerate(leaves) if dxs[i] is not None]
        given = self.varied_residuals
        if not given:
            return {}
        fn = self._of(leaves, varied, given)
        residuals, pull = vjp(fn, *_at(leaves, varied))
        _, push = vjp(pull, tuple(map(torch.ones_like, residuals)))
        (found,) = push(tuple(dxs[i] for i in varied))
        return dict(zip(given, found, strict=True))

    def _of(self, leaves: Sequence[Any], varied: list[int], given: list[int]) -> Any:
        """Some residuals as a function of some arguments."""

        def fn(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            all_of_them = [*leaves]
            for i, x in zip(varied, xs, strict=True):
                all_of_them[i] = x
            with entered(self.autocast):
                residuals = self.residuals_at(all_of_them)
            return tuple(residuals[k] for k in given)

        return fn

    def residuals_at(self, leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """What the gradient function captures if the body runs on other arguments."""
        bound = self.bound.with_leaves(leaves)
        returned, grad = run_body(self.operation, bound)
        tensors = [*leaves, *Outputs(self.operation, returned).flat]
        stripped(grad, tensors)
        return tensors[self.leaves + self.k :]


def _at(tensors: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [tensors[i] for i in places]


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
        run, saved = ctx.run, ctx.saved_tensors
        outputs, residuals = dys[: run.k], dys[run.k :]
        found: dict[int, Any] = {}
        wanted = [i for i, x in enumerate(saved[: run.leaves]) if has_gradient(x)]
        if any(dy is not None for dy in outputs):
            upstream = run.upstream(outputs, saved)
            with entered(run.autocast):
                found = gradients(run.rule(saved), upstream, wanted)
        for i, dx in run.pulled(saved[: run.leaves], residuals).items():
            found[i] = found[i] + dx if i in found else dx
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
                for i, dy in run.pushed(saved[: run.leaves], given).items():
                    pushed[i + run.k] = dy
            for i, dy in pushed.items():
                own[i] = dy if own[i] is None else own[i] + dy
        tensors = saved[run.leaves :]
        return tuple(
            None if not has_gradient(x) else torch.zeros_like(x) if dy is None else dy
            for dy, x in zip(own, tensors, strict=True)
        )
