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
from ..._cells import with_captured
from ..._outputs import flattened, rebuilt
from .captured import arrays_in, captured_by, require_known, same_random_numbers
from .nodes import Arrays, attached
from .specs import ArraySpec, as_output, has_gradient


class Call:
    """One call of an operation, whose body has run.

    The arguments of the node are those of the operation, its outputs, and the arrays
    that its gradient function captured, the residuals. MLX asks for the gradients of
    all; so outputs and residuals are constants to it, and a second derivative runs the
    body again to find out how residuals depend on the arguments.

    If the body captured arrays, MLX must know how outputs and residuals depend on
    these. The body then runs on constants too, for outputs that depend on nothing else.
    """

    def __init__(self, operation: Any, bound: Bound) -> None:
        self.operation = operation
        self.bound = bound
        xs = [*bound.leaves]
        self.specs = [ArraySpec(x) for x in xs]
        self.described = bound.with_leaves(self.specs)
        self.captures = bool(arrays_in(operation.fn))
        if self.captures:
            with same_random_numbers(operation):
                values, _ = self._run([mx.stop_gradient(x) for x in xs])
            _, self.grad = self._run(xs)
            residuals = self._residuals(xs)
        else:
            values, self.grad = self._run(xs)
            values = [mx.stop_gradient(y) for y in values]
            residuals = [mx.stop_gradient(x) for x in self._residuals(xs)]
        self.wanted, self.moving = _varying(xs), _varying(values)
        self.n, self.m = len(xs), len(xs) + len(values)
        self.args = [*xs, *values, *residuals]

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
            return run_body(self.operation, bound)[1]
        if residuals and not self.captures:
            residuals = attached(Residuals(self), [*bound.leaves, *residuals])
        arrays, places = [*bound.leaves, *residuals], self.places
        return with_captured(
            self.grad, lambda x: arrays[places[id(x)]] if id(x) in places else x
        )

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
        return [self._meant(found[i], self.specs[i]) for i in self.wanted]

    def _meant(self, gradient: Any, spec: ArraySpec) -> Any:
        """What a checked gradient or tangent stands for."""
        if gradient is None or gradient is contract.zero:
            return spec.zeros()
        if isinstance(gradient, contract.NotDifferentiable):
            return spec.zeros() * mx.nan  # whether anyone asks for it MLX does not say
        return spec.accepts(gradient)

    def _tangents(self, application: Application, dxs: Sequence[Any]) -> Arrays:
        """The tangents of the outputs that have one."""
        if self.operation.jvp_rule is None:
            return self._transposed_gradients(application, dxs)
        specs: Any = application.outputs.flat
        pairs = zip(application.tangents(dxs), specs, strict=True)
        return [self._meant(dy, spec) for dy, spec in pairs]

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


class Residuals:
    """What a gradient function captured, differentiated by running the body again."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def results(self, args: Arrays) -> Arrays:
        return args[self.call.n :]

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        varied, moving, run = self._function(args, ys)
        dxs = mx.vjp(run, [args[i] for i in varied], [dys[i] for i in moving])[1]
        return _filled(varied, dxs, args)

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        varied, moving, run = self._function(args, ys)
        dys = mx.jvp(run, [args[i] for i in varied], [moved[i] for i in varied])[1]
        return _filled(moving, dys, ys)

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
