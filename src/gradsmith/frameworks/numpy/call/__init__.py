"""Operations on the embedded engine.

The body and the gradient see plain, read-only arrays, unless somebody may differentiate
what they compute; then they see tensors. In rule form the body still sees plain arrays,
for the rule is given what it computes from: it may be a black box.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core import trees
from ....core.arity import arity_of
from ....core.cotangent import Spec, spec_of
from ....core.errors import GradsmithError, UnsupportedOperationError
from ....core.foreign import refuse_as_tensor
from ....core.symbolic import PLAIN, Symbolic
from ....core.tape import Tape, Traced, marks_of, only, state
from ....core.tensor import Variable, readonly, wrap
from ....operations.application import Application, OutputSpecs
from ....operations.application import run_body as run_composed
from ....operations.buffers import own
from ....operations.engine_rule import EngineRule
from ....operations.parameters import Bound
from ..._captured import Captures, with_captured
from .fused import run_body


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation and tell the active recorders of it."""
    recorders = state().recorders
    if recorders:
        return _call_recorded(operation, bound, recorders)
    inner = bound.with_leaves([_plain(x) for x in bound.leaves])
    outputs, grad = run_body(operation, inner, ())
    if _any_traced(bound.leaves):
        outputs, _ = _owned(outputs, grad, inner.leaves)
        return trees.map(_as_tensor, outputs)
    return _with_originals(outputs, inner.leaves, bound.leaves)


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[Any]:
    """Run a function of NumPy arrays."""
    plain = [*map(_plain, arrays)]
    for x in plain:
        if isinstance(x, Symbolic):
            return x.called(fn, plain, specs, in_list=True)
    return list(fn(*plain))


def _call_recorded(operation: Any, bound: Bound, recorders: Sequence[Any]) -> Any:
    higher = len(recorders) > 1 or recorders[0].lifts  # derivatives may be asked for
    on_tensors = higher and operation.closure
    opaque = ""
    try:
        run = _RecordedCall(operation, bound, higher=higher, on_tensors=on_tensors)
    except (UnsupportedOperationError, ValueError) as error:
        # NumPy has its own error for an element that can't be set, caused by ours.
        why = error.__cause__ if isinstance(error, ValueError) else error
        if not on_tensors or not isinstance(why, UnsupportedOperationError):
            raise
        # The engine can't see into the body. Its own gradient does not need that.
        opaque = str(why).partition("\n")[0]
        run = _RecordedCall(operation, bound, higher=higher, on_tensors=False)
    if higher and not operation.closure and run.captured:
        # The gradient of what is captured depends on the arguments too.
        run = _RecordedCall(operation, bound, higher=higher, on_tensors=True)
    inputs = [*bound.leaves, *run.variables, *run.captured]
    if not _any_traced(inputs):
        return _with_originals(run.outputs, run.bound.leaves, bound.leaves)
    ys = run.ys
    if ys:
        own = len(inputs) - len(run.captured)
        rule = EngineRule(operation, own, run.numbers)
        if opaque:
            rule.opaque = opaque
            rule.followers = {r.key for r in recorders if _follows(r, inputs)}
        application = run.application(bound)
        for recorder in recorders:
            recorder.record(
                rule, inputs, application, None, ys[0] if len(ys) == 1 else ys
            )
    return run.tensors


class _RecordedCall:
    """One run of a body under recorders, and what it returned, as tensors.

    `bound` is the call as the body saw it. `ys` are the outputs that have gradients,
    and `captured` those of them (by `numbers`) that depend on what the body captured,
    as far as they do.
    """

    __slots__ = (
        "bound", "captured", "grad", "higher", "numbers", "operation",
        "outputs", "tensors", "variables", "ys",
    )  # fmt: skip

    def __init__(
        self, operation: Any, bound: Bound, *, higher: bool, on_tensors: bool
    ) -> None:
        recorders = state().recorders
        captures = Captures(recorders, beside=higher)
        # Kernels know reverse mode and the first order.
        composed = higher or not all(isinstance(r, Tape) for r in recorders)
        self.operation = operation
        self.higher = higher
        self.bound = _for_body(bound, captures, on_tensors)
        try:
            with only(captures.active):
                if composed:
                    outputs, grad = run_composed(operation, self.bound)
                else:
                    outputs, grad = run_body(operation, self.bound, bound.leaves)
        except (GradsmithError, TypeError, AttributeError) as error:
            if on_tensors and _any_traced(self.bound.leaves):
                error.add_note(_WHY_TENSORS[operation.closure])
            raise
        self.outputs, self.grad = _owned(outputs, grad, self.bound.leaves)
        vjp = self.grad or operation.vjp_rule
        takes_variables = vjp is not None and arity_of(vjp).variables
        self.variables = captures.take_variables() if takes_variables else []
        self.ys: list[Any] = []
        self.captured: list[Any] = []
        self.numbers: list[int] = []
        self.tensors = self._as_tensors(captures)

    def _as_tensors(self, captures: Captures) -> Any:
        if type(self.outputs) is np.ndarray and self.outputs.dtype.kind == "f":
            self.ys.append(wrap(self.outputs))  # the usual case: 1 us less
            return self.ys[0]
        taken = {id(x) for x in self.bound.leaves}

        def output(y: Any) -> Any:
            parts = captures.parts_of(y) if isinstance(y, Traced) else []
            if not isinstance(y, Traced):
                y = _as_tensor(y)
            elif id(y) in taken or not captures.have_seen(y):
                y = wrap(y.value)  # an argument, or from outside: not ours to mark
            taken.add(id(y))
            if isinstance(y, Traced) and y.dtype.kind in "fcO":
                self.captured += parts
                self.numbers += [len(self.ys)] * len(parts)
                self.ys.append(y)
            return y

        return trees.map(output, self.outputs)

    def application(self, bound: Bound) -> Application:
        """What the rules are called with; `bound` is the call as it came."""
        for_rule = y = None
        if self.grad is None or self.operation.jvp_rule is not None:
            for_rule = _for_rule(bound) if self.higher else self.bound
            y = self.tensors if self.higher else trees.map(_plain, self.tensors)
        return Application(
            self.operation,
            bound.with_leaves([spec_of(x) for x in self.bound.leaves]),
            self._output_specs(),
            [(variable, spec_of(variable)) for variable in self.variables],
            grad=self.grad,
            bound=for_rule,
            y=y,
        )

    def _output_specs(self) -> OutputSpecs:
        if len(self.ys) == 1 and self.ys[0] is self.tensors:
            spec = spec_of(self.tensors.value)
            return OutputSpecs(spec, [spec])
        mine = {id(y): spec_of(y) for y in self.ys}
        tree = trees.map(lambda y: mine.get(id(y)), self.tensors)
        return OutputSpecs(tree, list(mine.values()))


_WHY_TENSORS = {
    True: "the body ran on tensors, since its gradient may be differentiated: by a "
    "persistent tape, or by a derivative around this one. In rule form (gs.operation "
    "and @op.vjp) a body runs on plain arrays.",
    False: "the body ran on tensors, since it captures one that is differentiated, and "
    "a higher derivative may be requested. Make what it captures an argument.",
}


def _for_body(bound: Bound, captures: Captures, on_tensors: bool) -> Bound:
    """The call as the body sees it: on tensors only if somebody follows one of them."""
    if on_tensors:
        marks = [marks_of(x) if isinstance(x, Traced) else {} for x in bound.leaves]
        if any(marks):
            pairs = zip(bound.leaves, marks, strict=True)
            return bound.with_leaves([captures.blinded(x, m) for x, m in pairs])
    return bound.with_leaves([_plain(x) for x in bound.leaves])


def _for_rule(bound: Bound) -> Bound:
    """The call as a rule sees it whose result may be differentiated."""
    frozen = [x.read_value() if isinstance(x, Variable) else x for x in bound.leaves]
    return bound.with_leaves([readonly(x) for x in frozen])


def _owned(outputs: Any, grad: Any, leaves: Sequence[Any]) -> tuple[Any, Any]:
    """The outputs, and what `grad` captured of them, in memory that stays as it is."""
    if outputs.__class__ is np.ndarray:
        y = own(outputs, grad, leaves, held=2)
        if y is outputs:
            return y, grad
        old, new = [outputs], [y]
    else:
        old = trees.leaves(outputs)
        new = [own(old[i], grad, leaves, held=2) for i in range(len(old))]
        if all(map(operator.is_, old, new)):
            return outputs, grad
    copies = {id(a): b for a, b in zip(old, new, strict=True)}
    grad = with_captured(grad, lambda x: copies.get(id(x), x))
    return trees.unflatten(outputs, new), grad


def _plain(x: Any) -> Any:
    return readonly(x.value if isinstance(x, Traced) else x)


def _follows(recorder: Any, inputs: Sequence[Any]) -> bool:
    return any(
        isinstance(x, Traced) and recorder.mark_of(x) is not None for x in inputs
    )


def _any_traced(xs: Sequence[Any]) -> bool:
    for x in xs:  # noqa: SIM110 (0.3 us less than with any())
        if isinstance(x, Traced):
            return True
    return False


def _as_tensor(y: Any) -> Any:
    """An output as a tensor, if it is an array or a number with a gradient."""
    if isinstance(y, PLAIN):
        refuse_as_tensor(y, "what an operation returned to a tape")
        return wrap(y)
    return wrap(np.asarray(y)) if isinstance(y, (float, complex)) else y


def _with_originals(
    outputs: Any, views: Sequence[Any], originals: Sequence[Any]
) -> Any:
    """The outputs, with the caller's own array where the body returned a view of it."""
    own = {id(view): x for view, x in zip(views, originals, strict=True)}
    return trees.map(lambda y: own.get(id(y), y), outputs)
