"""One call of an operation as a node: its rules in both modes.

Each mode is by its own rule if there is one, else by the transpose of the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ....core.errors import UnsupportedOperationError
from ....operations import contract
from ....operations.application import Application, OutputSpecs, run_body
from ....operations.parameters import Bound
from ..._captured import with_captured
from ..._outputs import flattened, rebuilt
from .captured import (
    DEPTH,
    arrays_in,
    captured_by,
    copied,
    is_known,
    may_refuse,
    require_known,
    same_random_numbers,
)
from .nodes import Arrays, attached
from .specs import ArraySpec, as_output, has_gradient


class BoundCall:
    """One call of an operation, whose body has run.

    The arguments of the node are those of the operation, its outputs, and the arrays
    that its gradient function captured, the residuals. The body ran on constants: MLX
    must not differentiate it. How residuals depend on the arguments is found by running
    it again, once a second derivative asks for that.

    MLX asks for the gradients of all arguments of a node. Outputs and residuals are
    therefore constants too, unless the body captured arrays, on which they depend.
    """

    def __init__(self, operation: Any, bound: Bound) -> None:
        self.operation = operation
        self.bound = bound
        xs = [*bound.leaves]
        self.specs = [ArraySpec(x) for x in xs]
        self.described = bound.with_leaves(self.specs)
        # Functions and objects among the arguments may hold arrays, too.
        given = {id(x) for x in xs}
        reached = arrays_in(operation.fn, bound.values)
        self.captures = any(id(x) not in given for x in reached)
        inner = self._constants(xs)
        values, self.grad = self._run(inner)
        residuals = self._residuals(inner)
        if not self.captures:
            values = [mx.stop_gradient(y) for y in values]
            residuals = [mx.stop_gradient(x) for x in residuals]
        self.wanted, self.moving = _varying(xs), _varying(values)
        self.n, self.m = len(xs), len(xs) + len(values)
        self.refused: dict[
            int, tuple[str, str]
        ] = {}  # gradients that don't exist, and why
        if may_refuse(operation):
            xs = [attached(Gate(self, i), [x])[0] for i, x in enumerate(xs)]
        self.args = [*xs, *values, *residuals]

    def _constants(self, xs: Arrays) -> Arrays:
        """The arguments as the body is given them.

        One that is given functions or objects may differentiate these and evaluate what
        it finds. MLX 0.32 then cuts off what the arguments come from, and a second
        derivative is 0 without a word; so they are new arrays, if there are values.
        """
        if any(hasattr(v, "__dict__") for v in self.bound.values) and is_known(xs):
            return [copied(x) for x in xs]
        return [mx.stop_gradient(x) for x in xs]

    def _run(self, xs: Arrays) -> tuple[Arrays, Any]:
        outputs, grad = run_body(self.operation, self.bound.with_leaves(xs))
        name = self.operation.name
        ys, self.template = flattened(outputs, lambda y: as_output(y, name))
        return ys, grad

    def structured(self, ys: Sequence[Any]) -> Any:
        """Arrays in the structure of the outputs."""
        return rebuilt(self.template, ys)

    def _residuals(self, xs: Arrays) -> Arrays:
        """The arrays that the gradient function captured beside the arguments."""
        self.again = False  # whether it holds some that can't be exchanged
        if self.grad is None:
            rules = (self.operation.vjp_rule, self.operation.jvp_rule)
            require_known(self.operation, [r for r in rules if r is not None])
            return []
        self.captured = captured_by(self.grad)
        self.again = len(self.captured) < len(arrays_in(self.grad))
        residuals = _beside(self.captured, xs)
        # Where each is among the arguments, then among the residuals
        self.places = {id(x): i for i, x in enumerate([*xs, *residuals])}
        return residuals

    # The node

    def results(self, args: Arrays) -> Arrays:
        return args[self.n : self.m]

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        gradients = self._gradients(self._application(args, ys), dys)
        if self.captures:
            gradients |= dict(enumerate(dys, self.n))
        return _filled([*gradients], [*gradients.values()], args)

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        found = self._tangents(self._application(args, ys), moved[: self.n])
        dys = _filled(self.moving, found, ys)
        if not self.captures:
            return dys
        return [a + b for a, b in zip(dys, self.results(moved), strict=True)]

    # The rules

    def _application(self, args: Arrays, ys: Arrays) -> Application:
        bound = self.bound.with_leaves(args[: self.n])
        specs = [ArraySpec(y) if has_gradient(y) else None for y in ys]
        with_arguments = self.grad is None or self.operation.jvp_rule is not None
        return Application(
            self.operation,
            self.described,
            OutputSpecs(
                rebuilt(self.template, specs, static=None),
                [spec for spec in specs if spec is not None],
            ),
            [],
            grad=self._grad(bound, args[self.m :]),
            bound=bound if with_arguments else None,
            y=self.structured(ys) if with_arguments else None,
        )

    def _grad(self, bound: Bound, residuals: Arrays) -> Any:
        """The gradient function with these arrays in the place of what it captured."""
        if self.grad is None:
            return None
        if self.again:
            with same_random_numbers(self.operation):
                return run_body(self.operation, bound)[1]
        if residuals:
            residuals = attached(Residuals(self), [*bound.leaves, *residuals])
        arrays, places = [*bound.leaves, *residuals], self.places
        swap = lambda x: arrays[places[id(x)]] if id(x) in places else x
        return with_captured(self.grad, swap, DEPTH)

    def _gradients(self, application: Application, dys: Arrays) -> dict[int, Any]:
        """The gradients by the position of their array."""
        upstream = [dys[i] for i in self.moving]
        if application.vjp is None:
            found = self._transposed_tangents(application, upstream)
        else:
            found = self._pulled(application, upstream)
        return dict(zip(self.wanted, found, strict=True))

    def _pulled(self, application: Application, dys: Sequence[Any]) -> Arrays:
        """The wanted gradients by the vjp."""
        found = application.gradients(dys, self.wanted)
        for i in self.wanted:
            if isinstance(found[i], contract.NotDifferentiable):
                self.refused[i] = application.name_of(i), found[i].why
        return [_meant(found[i], self.specs[i]) for i in self.wanted]

    def _tangents(self, application: Application, dxs: Sequence[Any]) -> Arrays:
        """The tangents of the outputs that have one."""
        if self.operation.jvp_rule is None:
            return self._transposed_gradients(application, dxs)
        specs: Any = application.outputs.flat
        pairs = zip(application.tangents(dxs), specs, strict=True)
        return [_meant(dy, spec) for dy, spec in pairs]

    # A rule is linear in its upstream, so its derivative there is the rule itself at
    # any point. At ones, since at zeros the user's code may take shortcuts.

    def _transposed_gradients(
        self, application: Application, dxs: Sequence[Any]
    ) -> Arrays:
        specs: Any = application.outputs.flat
        vjp = application.vjp
        with contract.transposing(self.operation, vjp, mode="forward", missing="jvp"):
            rule = lambda *dys: self._pulled(application, dys)
            return _transposed(rule, specs, [dxs[i] for i in self.wanted])

    def _transposed_tangents(
        self, application: Application, dys: Sequence[Any]
    ) -> Arrays:
        zeros = [spec.zeros() for spec in self.specs]
        wanted = [self.specs[i] for i in self.wanted]
        vjp = application.vjp
        with contract.transposing(self.operation, vjp, mode="reverse", missing="vjp"):
            rule = lambda *dxs: self._tangents(
                application, _filled(self.wanted, dxs, zeros)
            )
            return _transposed(rule, wanted, dys)


def _transposed(
    rule: Callable[..., Arrays], specs: Sequence[ArraySpec], given: Sequence[Any]
) -> Arrays:
    return mx.vjp(rule, [spec.ones() for spec in specs], [*given])[1]


def _meant(gradient: Any, spec: ArraySpec) -> Any:
    """What a checked gradient or tangent stands for."""
    if gradient is None or gradient is contract.zero:
        return spec.zeros()
    if isinstance(gradient, contract.NotDifferentiable):
        return spec.zeros() * mx.nan  # MLX does not say whether anyone asks for it
    return spec.accepts(gradient)


class Gate:
    """An argument as it is. MLX asks for its gradient only if somebody else does."""

    def __init__(self, call: BoundCall, i: int) -> None:
        self.call = call
        self.i = i

    def results(self, args: Arrays) -> Arrays:
        return args

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        if self.i in self.call.refused:
            name, why = self.call.refused[self.i]
            raise contract.no_gradient(self.call.operation.name, name, why)
        return dys

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        return moved


class Residuals:
    """What a gradient function captured, differentiated by running the body again."""

    def __init__(self, call: BoundCall) -> None:
        self.call = call

    def results(self, args: Arrays) -> Arrays:
        return args[self.call.n :]

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        varied, moving, run = self._function(args, ys)
        dxs = mx.vjp(run, [args[i] for i in varied], [dys[i] for i in moving])[1]
        return [*_filled(varied, dxs, args[: self.call.n]), *dys]

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        varied, moving, run = self._function(args, ys)
        dys = mx.jvp(run, [args[i] for i in varied], [moved[i] for i in varied])[1]
        pairs = zip(_filled(moving, dys, ys), self.results(moved), strict=True)
        return [a + b for a, b in pairs]

    def _function(self, args: Arrays, ys: Arrays) -> Any:
        """Which arguments and residuals vary, and the function between them."""
        xs = args[: self.call.n]
        varied, moving = _varying(xs), _varying(ys)

        def run(*some: Any) -> Arrays:
            given = dict(zip(varied, some, strict=True))
            found = self._again([given.get(i, x) for i, x in enumerate(xs)], len(ys))
            return [found[i] for i in moving]

        return varied, moving, run

    def _again(self, xs: Arrays, n: int) -> Arrays:
        call = self.call
        with same_random_numbers(call.operation):
            _, grad = run_body(call.operation, call.bound.with_leaves(xs))
        found = _beside(captured_by(grad), xs)
        if len(found) != n:
            raise UnsupportedOperationError(
                f"the body of operation {call.operation.name!r} was run again for a "
                "second derivative, and its gradient captured something else\n"
                "  what to do: let it depend on nothing but its arguments"
            )
        return found


def _beside(captured: Arrays, xs: Arrays) -> Arrays:
    """Those that are not among xs."""
    known = {id(x) for x in xs}
    return [x for x in captured if id(x) not in known]


def _varying(xs: Arrays) -> list[int]:
    return [i for i, x in enumerate(xs) if has_gradient(x)]


def _filled(places: list[int], given: Sequence[Any], like: Arrays) -> Arrays:
    """Arrays at their places, and zeros elsewhere."""
    found = dict(zip(places, given, strict=True))
    return [found[i] if i in found else mx.zeros_like(x) for i, x in enumerate(like)]
