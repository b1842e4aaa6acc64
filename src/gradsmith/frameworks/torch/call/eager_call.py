"""One run of a body: what its rule will be called with, but for the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ....operations.application import Application, OutputSpecs, run_body
from ....operations.parameters import Bound
from ..private import is_alias
from .autocast import State
from .captured import Captured, Variable, not_the_same, require_same
from .closures import alike, restored, stripped
from .hidden import Named, hidden_in, versions
from .outputs import Outputs
from .specs import AutocastSpec, TensorSpec


class Again(NamedTuple):
    """A body that ran again, on arguments connected to what they come from."""

    outputs: Outputs
    grad: Any


def changed_in_place() -> RuntimeError:
    """What autograd raises, for a tensor that it did not save itself."""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an "
        "inplace operation, after the operation that saved it for its gradient"
    )


def given_back(y: torch.Tensor, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """An output as a node gives it back: a new tensor, or a view of an input.

    PyTorch knows that a view it is, and refuses to change it in place.
    """
    for x in inputs:
        if is_alias(y, x):
            if y.dtype is not x.dtype or y.is_conj() or y.is_neg():
                return y.clone()
            return x.as_strided(y.shape, y.stride(), y.storage_offset())
    return y.detach()


class EagerCall:
    """One run of a body, until its rule is called.

    The tensors are saved by autograd: the arguments' first, then those that `grad`
    captured or, in rule form, the outputs. `bound` is the call without them.
    """

    __slots__ = (
        "autocast", "bound", "captured", "grad", "hidden", "leaves", "named",
        "operation", "outputs", "saved", "variables", "version",
    )  # fmt: skip

    def __init__(
        self,
        operation: Any,
        bound: Bound,
        outputs: Outputs,
        grad: Any,
        autocast: Sequence[State] = (),
        variables: Sequence[Variable] = (),
        captured: Captured | None = None,
    ) -> None:
        inner = bound.leaves
        self.operation = operation
        self.bound = bound
        self.leaves = len(inner)
        self.outputs = outputs
        self.autocast = autocast
        self.variables = variables
        self.captured = captured
        self.hidden: Sequence[torch.Tensor] = ()
        self.named: Named | None = None  # what the rule reads as globals
        # What is saved beside the arguments: tensors, some of them outputs
        if grad is None:
            self.grad = None
            self.saved: Sequence[Any] = outputs.flat
        else:
            tensors = [*inner]
            self.grad = stripped(grad, tensors)
            self.saved = tensors[len(inner) :]
            self.hidden = hidden_in(grad)
            self.version = versions(self.hidden)

    def finished(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs as they are given back, and all that is to be saved.

        From now on no tensor is held here. The outputs are new ones: the body's own may
        be held by others, by `grad` above all, which would make a cycle.
        """
        flat = self.outputs.flat
        ys = [given_back(y, leaves) for y in flat]
        saved, are_outputs = [*leaves[: self.leaves]], []
        for x in self.saved:
            for i, y in enumerate(flat):
                if x is y:
                    saved.append(ys[i])
                    are_outputs.append(True)
                    break
            else:
                saved.append(x)
                are_outputs.append(False)
        self.saved = are_outputs
        self.outputs.flat = []
        if self.bound.places is not None:
            values = self.bound.values
            for i in self.bound.places:
                values[i] = None
            self.bound.leaves = ()
        else:
            self.bound = self.bound.with_leaves([TensorSpec(x) for x in leaves])
        return ys, saved

    def application(
        self,
        saved: Sequence[torch.Tensor],
        dys: Sequence[torch.Tensor],
        again: Again | None = None,
    ) -> Application:
        """What the rule is called with, from the saved tensors."""
        bound = y = grad = None
        if self.named is not None and self.named.changed():
            raise changed_in_place()
        if self.grad is None:
            bound = self.bound.with_leaves(saved[: self.leaves])
            y = self.outputs.structured(saved[self.leaves :])
        elif again is None:
            if self.hidden and versions(self.hidden) != self.version:
                raise changed_in_place()
            grad = restored(self.grad, saved)
        else:
            grad = self._connected(saved, again.grad)
        spec = AutocastSpec if self.autocast else TensorSpec
        return Application(
            self.operation,
            self.bound.with_leaves([spec(x) for x in saved[: self.leaves]]),
            self.output_specs(dys),
            self.variables,
            grad=grad,
            bound=bound,
            y=y,
        )

    def output_specs(self, dys: Sequence[torch.Tensor]) -> OutputSpecs:
        """The specs of the outputs, which are those of their cotangents."""
        return self.outputs.specs_from([TensorSpec(dy) for dy in dys])

    def again(self, saved: Sequence[torch.Tensor]) -> Again | None:
        """The body run again, if what it computed on the way is to be differentiated.

        In rule form that is only so if it captured something with a gradient.
        """
        if self.grad is None and not self.captured:
            return None
        bound = self.bound.with_leaves(saved[: self.leaves])
        returned, grad = run_body(self.operation, bound)
        outputs = Outputs(self.operation, returned)
        if grad is None:
            require_same(self.operation, saved[self.leaves :], outputs.flat)
        return Again(outputs, grad)

    def _connected(self, saved: Sequence[torch.Tensor], grad: Any) -> Any:
        """The gradient function of the run again, with what it captured from it.

        An output that it captured is the saved one: that is connected by the rule.
        """
        tensors = [*saved[: self.leaves]]
        again = stripped(grad, tensors)
        if not alike(self.grad, again):
            raise not_the_same(self.operation)
        require_same(self.operation, saved, tensors)
        for i, is_output in enumerate(self.saved, self.leaves):
            if is_output:
                tensors[i] = saved[i]
        return restored(again, tensors)
