"""The rule of one call of an operation, as the embedded engine asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import trees
from ..core.cotangent import spec_of
from ..core.errors import UnsupportedOperationError
from ..core.forward import transpose
from ..core.rule import complete
from ..core.specs import AnySpec
from ..core.tape import Traced, marks_of, state
from ..core.tensor import readonly, unwrap
from . import contract
from .application import Application, OutputSpecs, run_body
from .buffers import own
from .parameters import Bound


class EngineRule:
    """Gradients and tangents by the rules of an operation; one follows from the other.

    The inputs are the arrays in the arguments and the variables that the rule speaks
    for, `own` together, and then, for each number in `captured`, the output of that
    number as far as it depends on what the body captured. All else is in the
    `Application` that is recorded with it, so that the walk back releases it.
    """

    __slots__ = ("captured", "followers", "opaque", "operation", "own", "silent")

    def __init__(self, operation: Any, own: int, captured: Sequence[int]) -> None:
        self.operation = operation
        self.own = own
        self.captured = captured
        self.silent: dict[int, str] = {}
        # What hid the body's computation from the recorders with these keys, if any did
        self.opaque = ""
        self.followers: set[Any] = set()

    @property
    def name(self) -> str:
        return f"operation {self.operation.name!r}"

    # Reverse

    def pullback(self, tracked: Sequence[int], call: Application, y: Any) -> Any:
        def pull(dy: Any, needs: Any) -> list[Any]:
            specs, wanted = call.outputs.flat, tracked
            if needs is not None:
                wanted = [i for i, need in zip(tracked, needs, strict=True) if need]
            own = [i for i in wanted if i < self.own]
            dys = [dy] if len(specs) == 1 else complete(dy, specs)
            found = self.gradients(call, dys, own) if own else {}
            for i in wanted[len(own) :]:
                number = self.captured[i - self.own]
                found[i] = dy if len(specs) == 1 else dy.get(number)
            return [found.get(i) for i in tracked]

        return pull

    def gradients(
        self, call: Application, dys: Sequence[Any], wanted: Sequence[int]
    ) -> dict[int, Any]:
        """The gradients of the wanted inputs, by their position."""
        if call.vjp is None:
            return self._transposed_tangents(call, dys, wanted)
        if self.opaque:
            self._refuse_higher_order()
        dys = [dy if isinstance(dy, Traced) else readonly(dy) for dy in dys]
        flat = call.gradients(dys, wanted)
        return {i: self._meant(call, flat[i], i, dys) for i in wanted}

    def _refuse_higher_order(self) -> None:
        """What the gradient captured of a body that we can't see into is a constant."""
        if any(recorder.key in self.followers for recorder in state().recorders):
            raise UnsupportedOperationError(
                f"the gradient of {self.name} is being differentiated, and what it "
                "captured in the body can't be traced: the arguments became plain "
                f"there ({self.opaque}). Write the rule in rule form (gs.operation and "
                "@op.vjp), which receives the arguments themselves, or the body in "
                "NumPy calls on its arguments."
            )

    def _meant(self, call: Application, gradient: Any, i: int, dys: Any) -> Any:
        """What a checked gradient stands for."""
        if type(gradient) is np.ndarray:
            return readonly(own(gradient, beside=dys, held=2))
        if gradient is None:
            name = call.name_of(i)
            self.silent[i] = f"{self.name} declares no gradient for {name!r}"
        elif isinstance(gradient, contract.NotDifferentiable):
            name = call.name_of(i)
            raise contract.no_gradient(self.operation.name, name, gradient.why)
        elif gradient is contract.zero:
            return call.specs()[i].zeros()
        return gradient if state().recorders else unwrap(gradient)

    # Forward

    def push(self, tangents: Sequence[Any], call: Application, y: Any) -> Any:
        own, k = tangents[: self.own], len(call.outputs.flat)
        dys: list[Any] = [None] * k
        if any(dx is not None for dx in own):
            dys = self.tangents(call, own)
        for i, dy in zip(self.captured, tangents[self.own :], strict=True):
            if dy is not None:
                dys[i] = dy if dys[i] is None else dys[i] + dy
        return dys[0] if k == 1 else dys

    def tangents(self, call: Application, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs, None where they are zero."""
        arrays = self.own - len(call.variables)
        moved = any(dx is not None for dx in dxs[arrays:])  # variables: not the jvp's
        if self.operation.jvp_rule is None or moved:
            return self._transposed_gradients(call, dxs)
        pairs = zip(dxs[:arrays], call.specs()[:arrays], strict=True)
        flat = call.tangents([spec.zeros() if dx is None else dx for dx, spec in pairs])
        flat = [
            None if dy is contract.zero else own(dy, beside=dxs, held=2) for dy in flat
        ]
        return flat if state().recorders else [unwrap(dy) for dy in flat]

    # One rule is the transpose of the other

    def _transposed_gradients(self, call: Application, dxs: Sequence[Any]) -> list[Any]:
        given = [i for i, dx in enumerate(dxs) if dx is not None]

        def gradients(dys: list[Any]) -> list[Any]:
            found = self.gradients(call, dys, given)
            return [found[i] for i in given]

        point = [_ones(spec) for spec in call.outputs.flat]
        with self._transposing(call, "forward", "jvp"):
            return transpose(gradients, point, [dxs[i] for i in given])

    def _transposed_tangents(
        self, call: Application, dys: Sequence[Any], wanted: Sequence[int]
    ) -> dict[int, Any]:
        def tangents(dxs: list[Any]) -> list[Any]:
            given = dict(zip(wanted, dxs, strict=True))
            return self.tangents(call, [given.get(i) for i in range(self.own)])

        specs = call.specs()
        point = [_ones(specs[i]) for i in wanted]
        with self._transposing(call, "reverse", "vjp"):
            found = transpose(tangents, point, list(dys))
        return dict(zip(wanted, found, strict=True))

    def _transposing(self, call: Application, mode: str, missing: str) -> Any:
        """The context in which a mode is found from the other one's rule."""
        return contract.transposing(
            self.operation, call.vjp, mode=mode, missing=missing
        )


def _ones(spec: AnySpec) -> Any:
    """Where a rule is transposed; at zeros the user's code may take shortcuts."""
    return np.ones(spec.shape, spec.dtype)


def gradients_of(
    operation: Any,
    bound: Bound,
    outputs: OutputSpecs,
    y: Any,
    dys: Sequence[Any],
    wanted: Sequence[int],
) -> list[Any]:
    """The gradients of the wanted arrays of a call, by the operation's rule."""
    rule, application = _applied(operation, bound, outputs, y)
    found = rule.gradients(application, dys, wanted)
    specs = application.specs()
    return [specs[i].zeros() if found[i] is None else found[i] for i in wanted]


def tangents_of(
    operation: Any, bound: Bound, outputs: OutputSpecs, y: Any, dxs: Sequence[Any]
) -> list[Any]:
    """The tangents of the outputs of a call, by the operation's rule."""
    rule, application = _applied(operation, bound, outputs, y)
    dys = rule.tangents(application, dxs)
    pairs = zip(dys, outputs.flat, strict=True)
    return [spec.zeros() if dy is None else dy for dy, spec in pairs]


def _applied(
    operation: Any, bound: Bound, outputs: OutputSpecs, y: Any
) -> tuple[EngineRule, Application]:
    bound = bound.with_leaves([readonly(x) for x in bound.leaves])
    grad = None
    if operation.closure:
        made, grad = run_body(operation, bound)
        _identify(made, y, bound.leaves)
    specs = bound.with_leaves([spec_of(x) for x in bound.leaves])
    rule = EngineRule(operation, len(bound.leaves), ())
    return rule, Application(operation, specs, outputs, [], grad=grad, bound=bound, y=y)


def _identify(made: Any, y: Any, leaves: Sequence[Any]) -> None:
    """Let outputs that a body made again, and `grad` captured, count as those given.

    Like in every framework: an output is differentiated by the rule, not by the body.
    """
    theirs = {id(x) for x in leaves}
    for new, old in zip(trees.leaves(made), trees.leaves(y), strict=True):
        if isinstance(new, Traced) and id(new) not in theirs:
            new.marks = dict(marks_of(old)) if isinstance(old, Traced) else None
