"""Operations on the embedded engine.

The body and the gradient see plain, read-only arrays, unless somebody may differentiate
what they compute; then they see tensors.

A tensor or variable that the body captures is differentiated through the body: while it
runs, a stand-in for each active recorder follows what comes from outside, and is blind
to the arguments, for which the rule speaks. What it finds becomes one more input of the
operation, whose gradient is the upstream itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _contract, _tree
from .._cotangent import Spec, spec_of
from .._errors import NotDifferentiableError, UnsupportedOperationError
from .._forward import ForwardAccumulator, transpose
from .._parameters import accepts
from .._rule import complete
from .._tape import Node, Tape, Traced, leave_mark, only, state
from .._tensor import Variable, readonly, unwrap, wrap

_BLIND: Any = object()


def call(operation: Any, bound: Any) -> Any:
    """Run an operation and tell the active recorders of it."""
    if state.recorders:
        return _call_recorded(operation, bound)
    values = bound.with_leaves([readonly(unwrap(x)) for x in bound.leaves])
    outputs, _ = _run_body(operation, bound, values)
    if any(isinstance(x, Traced) for x in bound.leaves):
        return _tree.map(lambda y: wrap(y) if _is_value(y) else y, outputs)
    return outputs


def _run_body(operation: Any, bound: Any, values: list[Any]) -> tuple[Any, Any]:
    try:
        returned = bound.signature.call(operation.fn, (), values)
    except Exception as error:
        error.add_note(f"raised by the body of operation {operation.name!r}")
        raise
    if operation.closure:
        return _contract.split_outputs(operation.name, returned)
    return returned, None


def _is_value(y: Any) -> bool:
    return isinstance(y, (np.ndarray, np.generic))


def _call_recorded(operation: Any, bound: Any) -> Any:
    recorders = state.recorders
    stand_ins = [_stand_in(recorder) for recorder in recorders]
    lifted = len(recorders) > 1 or recorders[0].lifts
    if lifted:
        leaves = [_blinded(x, recorders, stand_ins) for x in bound.leaves]
        active = tuple(r for pair in zip(recorders, stand_ins, strict=True) for r in pair)
    else:
        leaves = [readonly(unwrap(x)) for x in bound.leaves]
        active = tuple(stand_ins)
    values = bound.with_leaves(leaves)
    with only(active):
        outputs, grad = _run_body(operation, bound, values)

    variables = _read_variables(stand_ins) if accepts(grad, "variables") else []
    ys = _Outputs(outputs, leaves, stand_ins)
    captured = [_captured(y, recorders, stand_ins) for y in ys.differentiable]
    inputs = [*bound.leaves, *captured, *variables]
    followed = any(
        r.mark_of(x) is not None
        for x in inputs
        if isinstance(x, Traced)
        for r in recorders
    )
    if not followed and not any(isinstance(x, Traced) for x in bound.leaves):
        return outputs  # plain arrays in, plain arrays out
    if followed and ys.differentiable:
        rule = _Call(operation, bound, values, grad, ys, variables)
        y = ys.differentiable[0] if len(ys.differentiable) == 1 else ys.differentiable
        for recorder in recorders:
            recorder.record(rule, inputs, None, None, y)
    return ys.tree


class _Outputs:
    """The outputs of a body as tensors: all of them, and those that have gradients."""

    def __init__(
        self, outputs: Any, leaves: Sequence[Any], stand_ins: Sequence[Any]
    ) -> None:
        taken = {id(x) for x in leaves}
        self.differentiable: list[Traced] = []

        def output(y: Any) -> Any:
            if isinstance(y, (float, complex)):
                y = np.asarray(y)
            if _is_value(y):
                y = wrap(y)
            elif not isinstance(y, Traced):
                return y
            elif id(y) in taken or not any(s.key in (y.marks or ()) for s in stand_ins):
                y = wrap(y.value)  # an argument, or from outside: not ours to mark
            taken.add(id(y))
            if y.dtype.kind in "fcO":
                self.differentiable.append(y)
            return y

        self.tree = _tree.map(output, outputs)
        self.specs = [spec_of(y) for y in self.differentiable]
        mine = {id(y): spec for y, spec in zip(self.differentiable, self.specs, strict=True)}
        self.spec_tree = _tree.map(lambda y: mine.get(id(y)), self.tree)

    def plain(self) -> Any:
        return _tree.map(unwrap, self.tree)

    def structured(self, dys: Sequence[Any]) -> Any:
        """Cotangents or tangents in the structure of the outputs."""
        rest = iter(dys)
        return _tree.map(lambda spec: None if spec is None else next(rest), self.spec_tree)


class _Call:
    """The rule of one call of an operation."""

    def __init__(
        self,
        operation: Any,
        bound: Any,
        values: list[Any],
        grad: Any,
        ys: _Outputs,
        variables: list[Variable],
    ) -> None:
        self.operation = operation
        self.name = operation.name
        self.signature = bound.signature
        self.values = values
        self.grad = grad
        self.variables = variables
        self.silent: dict[int, str] = {}
        self.likes = [spec_of(x) for x in bound.leaves]
        self.leaf_names = _leaf_names(bound)
        self.arguments = _arguments(bound, self.likes)
        # Only recorders beside the one that holds y may look at it as a tensor.
        lifted = any(isinstance(x, Traced) for v in values for x in _tree.leaves(v))
        self.y = ys.tree if lifted else ys.plain()
        self.specs, self.spec_tree, self.structured = ys.specs, ys.spec_tree, ys.structured

    # Reverse

    def pullback(self, tracked: Sequence[int], call: Any, y: Any) -> Any:
        n, k = len(self.likes), len(self.specs)

        def pull(dy: Any, needs: Any) -> list[Any]:
            wanted = {
                i for p, i in enumerate(tracked) if needs is None or needs[p]
            }
            dys = [dy] if k == 1 else complete(dy, self.specs)
            own = [i for i in wanted if not n <= i < n + k]
            gradients = self.gradients(own, dys) if own else {}
            return [
                None if i not in wanted
                else dys[i - n] if n <= i < n + k
                else gradients[i]
                for i in tracked
            ]  # fmt: skip

        return pull

    def gradients(self, wanted: Sequence[int], dys: list[Any]) -> dict[int, Any]:
        """The gradients of the wanted inputs by the user's rule."""
        operation = self.operation
        rule = self.grad if operation.closure else operation.vjp_rule
        if rule is None:
            return self._transposed_tangents(wanted, dys)
        dys = [dy if isinstance(dy, Traced) else readonly(dy) for dy in dys]
        flat = self._checked(self._call_rule(rule, wanted, dys))
        result = {}
        for i in wanted:
            j = i if i < len(self.likes) else i - len(self.specs)
            result[i] = self._meant(flat[j], j)
        return result

    def _call_rule(self, rule: Any, wanted: Sequence[int], dys: list[Any]) -> Any:
        options: dict[str, Any] = {}
        if accepts(rule, "needs"):
            needed = {self.leaf_names[i].argument for i in wanted if i < len(self.likes)}
            options["needs"] = {a.name: a.name in needed for a in self.arguments}
        if self.variables:
            options["variables"] = self.variables
        try:
            if self.operation.closure:
                return rule(*self._upstream(rule, dys), **options)
            if options:
                rule = _with_options(rule, options)
            before = (self.structured(dys), self.y)
            return self.signature.call(rule, before, self.values)
        except Exception as error:
            error.add_note(f"raised by the gradient of operation {self.name!r}")
            raise

    def _upstream(self, rule: Any, dys: list[Any]) -> Sequence[Any]:
        """One argument for each output, or all in one if `grad` takes only one."""
        structured = self.structured(dys)
        several = isinstance(structured, (tuple, list)) and len(structured) > 1
        return structured if several and accepts(rule, len(structured)) else (structured,)

    def _checked(self, returned: Any) -> list[Any]:
        if not self.variables:
            return _contract.check_gradients(self.name, returned, self.arguments)
        returned, for_variables = _contract.split_variables(self.name, returned)
        arguments = [_contract.Argument(v.name, spec_of(v)) for v in self.variables]
        own = _contract.check_gradients(self.name, returned, self.arguments)
        if not isinstance(for_variables, (dict, tuple)):
            for_variables = tuple(for_variables)
        return own + _contract.check_gradients(self.name, for_variables, arguments)

    def _meant(self, gradient: Any, j: int) -> Any:
        """What a checked gradient stands for."""
        if j >= len(self.likes):
            name, like = self.variables[j - len(self.likes)].name, None
        else:
            name, like = self.leaf_names[j].leaf, self.likes[j]
        if isinstance(gradient, _contract.NotDifferentiable):
            raise _contract.refuse(self.name, name, gradient.why)
        if gradient is None:
            self.silent[j] = (
                f"operation {self.name!r} declares no gradient for {name!r}"
            )
        if gradient is _contract.zero:
            return like.zeros() if like else None
        return gradient if state.recorders else unwrap(gradient)

    # Forward

    def push(self, tangents: Sequence[Any], call: Any, y: Any) -> Any:
        n, k = len(self.likes), len(self.specs)
        own, captured = [*tangents[:n], *tangents[n + k :]], tangents[n : n + k]
        if all(dx is None for dx in own):
            dys: list[Any] = [None] * k
        elif self.operation.jvp_rule is not None and not any(
            dx is not None for dx in own[n:]
        ):
            dys = self.tangents(own[:n])
        else:
            dys = self._transposed_gradients(own)
        dys = [
            b if a is None else a if b is None else a + b
            for a, b in zip(dys, captured, strict=True)
        ]
        return dys[0] if k == 1 else dys

    def tangents(self, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs by the user's jvp."""
        rest = iter(
            [like.zeros() if dx is None else dx
             for dx, like in zip(dxs, self.likes, strict=True)]
        )  # fmt: skip
        trees = [_tree.map(lambda s: s and next(rest), a.specs) for a in self.arguments]
        before = (trees[0] if len(trees) == 1 else tuple(trees), self.y)
        try:
            returned = self.signature.call(self.operation.jvp_rule, before, self.values)
        except Exception as error:
            error.add_note(f"raised by the jvp of operation {self.name!r}")
            raise
        flat = _contract.check_tangents(self.name, returned, self.spec_tree, self.specs)
        flat = [None if dy is _contract.zero else dy for dy in flat]
        return [dy if state.recorders else unwrap(dy) for dy in flat]

    # One rule is the transpose of the other

    def _transposed_gradients(self, tangents: Sequence[Any]) -> list[Any]:
        if not self.operation.linear:
            raise NotDifferentiableError(
                f"operation {self.name!r} has no forward mode: its gradient is declared "
                "not to be linear in the upstream (linear=False), so it has no "
                f"transpose. Give it a rule of its own with @{self.name}.jvp."
            )
        self._require_rule()
        n, k = len(self.likes), len(self.specs)
        positions = [i if i < n else i + k for i in range(len(tangents))]
        tracked = [i for i, dx in enumerate(tangents) if dx is not None]

        def gradients(dys: list[Any]) -> list[Any]:
            found = self.gradients([positions[i] for i in tracked], dys)
            return [found[positions[i]] for i in tracked]

        zeros = [spec.zeros() for spec in self.specs]
        with self._noting("forward", "the gradient", "jvp"):
            return transpose(gradients, zeros, [tangents[i] for i in tracked])

    def _transposed_tangents(self, wanted: Sequence[int], dys: list[Any]) -> Any:
        self._require_rule()

        def tangents(dxs: list[Any]) -> list[Any]:
            given = dict(zip(wanted, dxs, strict=True))
            return self.tangents([given.get(i) for i in range(len(self.likes))])

        zeros = [self.likes[i].zeros() for i in wanted]
        with self._noting("reverse", "the jvp", "vjp"):
            found = transpose(tangents, zeros, dys)
        return dict(zip(wanted, found, strict=True))

    def _require_rule(self) -> None:
        operation = self.operation
        if not operation.closure and not (operation.vjp_rule or operation.jvp_rule):
            raise UnsupportedOperationError(
                f"operation {self.name!r} has no gradient yet: give it one with "
                f"@{self.name}.vjp or @{self.name}.jvp"
            )

    def _noting(self, mode: str, rule: str, other: str) -> Any:
        from .._errors import annotate

        return annotate(
            f"while finding the {mode} mode of operation {self.name!r} by transposing "
            f"{rule}; @{self.name}.{other} would give it directly"
        )


class _LeafName:
    """The name of a leaf and of the argument that it is in."""

    __slots__ = ("argument", "leaf")

    def __init__(self, argument: str, leaf: str) -> None:
        self.argument = argument
        self.leaf = leaf


def _leaf_names(bound: Any) -> list[_LeafName]:
    return [
        _LeafName(argument, leaf)
        for argument, value in zip(bound.names, bound.values, strict=True)
        for leaf, x in _tree.leaves_with_names(value, argument)
        if bound.is_array(x)
    ]


def _arguments(bound: Any, likes: list[Spec]) -> list[_contract.Argument]:
    """The arguments that hold arrays, with the specs of these."""
    rest = iter(likes)
    arguments = []
    for name, value in zip(bound.names, bound.values, strict=True):
        specs = _tree.map(lambda x: next(rest) if bound.is_array(x) else None, value)
        if any(spec is not None for spec in _tree.leaves(specs)):
            arguments.append(_contract.Argument(name, specs))
    return arguments


def _with_options(rule: Any, options: dict[str, Any]) -> Any:
    return lambda *args, **kwargs: rule(*args, **kwargs, **options)


# --- what the body captures ----------------------------------------------------------


class _StandIn:
    """Follows for a recorder what a body captures, and is blind to its arguments."""

    outer: Any
    key: object
    variables: dict[int, tuple[Variable, Any]]

    def mark_of(self, x: Traced, *, reading: bool = True) -> Any:
        mark = x.marks and x.marks.get(self.key)
        if mark is not None:
            return None if mark is _BLIND else mark
        if isinstance(x, Variable):
            return self.mark_of_variable(x)
        return self.outer.mark_of(x)

    def mark_of_variable(self, x: Variable) -> Any:
        mark = self.outer.mark_of(x)
        if mark is not None:
            self.variables[id(x)] = (x, mark)
        return mark

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        self.outer.lost([x for x in xs if self.mark_of(x) is not None], where, why)

    def record(self, rule: Any, inputs: Any, call: Any, kept: Any, y: Any) -> None:
        super().record(rule, inputs, call, kept, y)  # type: ignore[misc]
        blind = any(
            isinstance(x, Traced) and x.marks and x.marks.get(self.key) is _BLIND
            for x in inputs
        )
        for output in (y,) if isinstance(y, Traced) else y:
            if blind and not (output.marks and self.key in output.marks):
                leave_mark(output, self.key, _BLIND)


class _CapturedTape(_StandIn, Tape):
    def __init__(self, outer: Tape) -> None:
        super().__init__(lifts=outer.lifts, watch_variables=outer.watch_variables)
        self.outer = outer
        self.variables = {}

    def mark_of_variable(self, x: Variable) -> Node | None:
        """A node of our own, which can be cut off if the rule speaks for variables."""
        if id(x) not in self.variables:
            node = self.outer.mark_of(x)
            if node is None:
                return None
            self.variables[id(x)] = (x, Node(None, (node,), lambda dy, needs: (dy,)))
        return self.variables[id(x)][1]

    def cut_variables(self) -> None:
        for _, node in self.variables.values():
            node.parents = ()


class _CapturedTangents(_StandIn, ForwardAccumulator):
    def __init__(self, outer: ForwardAccumulator) -> None:
        super().__init__((), ())
        self.outer = outer
        self.variables = {}

    def cut_variables(self) -> None:
        if self.variables:
            names = ", ".join(repr(x.name) for x, _ in self.variables.values())
            raise UnsupportedOperationError(
                f"forward mode with respect to {names}, captured by an operation whose "
                "gradient takes variables=, is not supported: pass it as an argument"
            )


def _stand_in(recorder: Any) -> Any:
    if isinstance(recorder, Tape):
        return _CapturedTape(recorder)
    return _CapturedTangents(recorder)


def _blinded(x: Any, recorders: Sequence[Any], stand_ins: Sequence[Any]) -> Traced:
    """A tensor that the recorders follow as they do x, and the stand-ins don't."""
    marks: dict[object, Any] = {s.key: _BLIND for s in stand_ins}
    if isinstance(x, Traced):
        for recorder in recorders:
            mark = recorder.mark_of(x)
            if mark is not None:
                marks[recorder.key] = mark
    return wrap(unwrap(x), marks)


def _captured(y: Traced, recorders: Sequence[Any], stand_ins: Sequence[Any]) -> Traced:
    """An output as far as it depends on what the body captured."""
    found = ((r.key, s.mark_of(y)) for r, s in zip(recorders, stand_ins, strict=True))
    return wrap(y.value, {key: mark for key, mark in found if mark is not None})


def _read_variables(stand_ins: Sequence[Any]) -> list[Variable]:
    """The variables that a body read, from now on a matter of its gradient alone."""
    variables = {}
    for stand_in in stand_ins:
        stand_in.cut_variables()
        variables.update({key: x for key, (x, _) in stand_in.variables.items()})
    return list(variables.values())
