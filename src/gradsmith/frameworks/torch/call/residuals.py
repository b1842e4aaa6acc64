"""One run of a body, when each transformation keeps the tensors for itself.

What the gradient function captured, the residuals, are outputs of the run too: how
they depend on the arguments is asked for by second derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....operations.application import Application, run_body
from ....operations.parameters import Bound
from ..private import vjp
from .autocast import entered
from .closures import restored, stripped
from .eager_call import EagerCall
from .hidden import hidden_in
from .levels import require_same_values
from .outputs import Outputs
from .specs import AutocastSpec, TensorSpec, has_gradient


class Transformed(EagerCall):
    """One run of a body. The tensors are saved by each transformation for itself.

    They are the arguments', the outputs, and what `grad` captured beside these. If it
    has tensors where they can't be exchanged, the body is run again for a new one.
    """

    __slots__ = ("is_nested", "k", "reruns", "residuals", "spec", "varied_residuals")

    def __init__(
        self, operation: Any, bound: Bound, outputs: Outputs, grad: Any, autocast: Any
    ) -> None:
        super().__init__(operation, bound, outputs, None, autocast)
        self.reruns = grad is not None and bool(hidden_in(grad))
        self.k = len(outputs.flat)
        self.spec = outputs.specs_from(
            [TensorSpec(outputs.flat[i]) for i in outputs.varied]
        )
        tensors = [*bound.leaves, *outputs.flat]
        if self.reruns:
            self.grad = None
        elif grad is not None:
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
        if self.reruns:
            grad = self._grad_again(saved[: self.leaves], ys)
        return Application(
            self.operation,
            self.bound,
            self.spec,
            (),
            grad=grad,
            bound=self.bound.with_leaves(saved[: self.leaves]),
            y=self.outputs.structured(ys),
        )

    def _grad_again(self, leaves: Sequence[Any], ys: Sequence[Any]) -> Any:
        returned, grad = run_body(self.operation, self.bound.with_leaves(leaves))
        again = Outputs(self.operation, returned).flat
        require_same_values(self.operation, ys, again)
        return grad

    def upstream(self, dys: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
        """One cotangent for each output that has a gradient; None stands for zeros."""
        return [
            torch.zeros_like(saved[self.leaves + i]) if dys[i] is None else dys[i]
            for i in self.outputs.varied
        ]

    def pulled(self, saved: Sequence[Any], dys: Sequence[Any]) -> dict[int, Any]:
        """The gradients of the arguments by cotangents of the residuals."""
        leaves, residuals = self._split(saved)
        given = [k for k, dy in enumerate(dys) if dy is not None]
        varied = [i for i, x in enumerate(leaves) if has_gradient(x)]
        if not given:
            return {}
        again, pull = vjp(self._of(leaves, varied, given), *_at(leaves, varied))
        require_same_values(self.operation, _at(residuals, given), again)
        return dict(zip(varied, pull(tuple(dys[k] for k in given)), strict=True))

    def pushed(self, saved: Sequence[Any], dxs: Sequence[Any]) -> dict[int, Any]:
        """The tangents of the residuals by tangents of the arguments.

        By transposing the pullback, for forward mode does not nest in itself.
        """
        leaves, residuals = self._split(saved)
        varied = [i for i, x in enumerate(leaves) if dxs[i] is not None]
        given = self.varied_residuals
        if not given or not self.is_nested:  # nobody will ask for them
            return {}
        fn = self._of(leaves, varied, given)
        again, pull = vjp(fn, *_at(leaves, varied))
        require_same_values(self.operation, _at(residuals, given), again)
        _, push = vjp(pull, tuple(map(torch.ones_like, again)))
        (found,) = push(tuple(dxs[i] for i in varied))
        return dict(zip(given, found, strict=True))

    def _split(self, saved: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        return saved[: self.leaves], saved[self.leaves + self.k :]

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
