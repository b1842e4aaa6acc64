"""The rules of one call, between lists of tensors, as TensorFlow asks them.

Each mode is by its own rule if there is one, else by the transpose of the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import tensorflow as tf

from ....core import trees
from ....operations import contract
from ....operations.application import Application
from ....operations.parameters import Bound
from ..._captured import with_captured
from ..private import EagerTensor, alias, pass_on, record_operation, tapes_see
from .specs import TensorSpec, dense, has_gradient, is_known, specs_of


class BoundCall:
    """One call of an operation: its rules and the tensors that they are given.

    The inputs are the arrays in the arguments, the variables that the rule speaks for
    and then, if `captured`, the outputs as far as they depend on what the body
    captured, whose gradient is the upstream itself.
    """

    __slots__ = (
        "application", "arrays", "captured", "check", "inputs", "operation", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        operation: Any,
        bound: Bound,
        xs: Sequence[Any],
        outputs: Any,
        *,
        grad: Callable[..., Any] | None,
        variables: Sequence[tuple[Any, Any]],
        wanted: Sequence[int],
        captured: bool,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.operation = operation
        self.check = check  # called before a gradient is, which may be refused
        self.wanted = wanted
        self.captured = captured
        self.arrays = len(xs)
        # Only an open shape asks for more of an input than its spec
        specs = [TensorSpec(x) for x in xs]
        self.inputs = [
            None if is_known(s) else x for s, x in zip(specs, xs, strict=True)
        ]
        with_arguments = grad is None or operation.jvp_rule is not None
        self.application = Application(
            operation,
            bound.with_leaves(specs),
            specs_of(outputs),
            [(variable, TensorSpec(value)) for variable, value in variables],
            grad=grad,
            bound=bound.with_leaves(xs) if with_arguments else None,
            y=outputs if with_arguments else None,
        )

    def at(self, xs: Sequence[Any], ys: Sequence[Any]) -> Self:
        """The same call with its arguments and outputs as they are in another graph."""
        application, rest = self.application, iter(ys)
        assert application.bound is not None
        return self._with(
            xs,
            grad=None,
            bound=application.bound.with_leaves(xs),
            y=trees.map(lambda y: next(rest) if has_gradient(y) else y, application.y),
        )

    def _with(self, inputs: Sequence[Any], **given: Any) -> Self:
        application = self.application
        copy = self.__new__(type(self))
        copy.operation, copy.wanted, copy.captured = self.operation, self.wanted, False
        copy.arrays, copy.inputs, copy.check = self.arrays, list(inputs), None
        copy.application = Application(
            self.operation,
            application.call,
            application.outputs,
            application.variables,
            **given,
        )
        return copy

    def apart(self, inputs: Sequence[Any]) -> Self:
        """The same call with tensors that the accumulator does not follow.

        While it works out a tangent it follows nothing new; others do. If it followed
        a tangent, the tapes would forget that when the accumulator goes: TensorFlow
        counts the uses of a result from when it is recorded, after those in its
        tangent. So the outputs that the rule reads are recorded here, too.
        """
        grad = self.application.grad
        if grad is not None and not self.has_jvp:
            unfollowed = lambda x: tf.identity(x) if type(x) is EagerTensor else x
            grad = with_captured(grad, unfollowed)
            return self._with(self.inputs, grad=grad, bound=None, y=None)
        inputs, ys = [*map(tf.identity, inputs)], [*map(alias, self.ys())]
        forward = self.forward(ys, inputs)
        record_operation(self.operation.name, ys, inputs, self.backward, forward)
        return self.at(inputs[: self.arrays], ys)

    @property
    def has_jvp(self) -> bool:
        """Whether forward mode is by the jvp, whose matter variables are not."""
        return self.operation.jvp_rule is not None and not self.application.variables

    def tangents(self, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs by the jvp."""
        given = [self.filled(i, 0) if dx is None else dx for i, dx in enumerate(dxs)]
        try:
            flat = self.application.tangents([dense(dx, "") for dx in given])
        except Exception as error:
            pass_on(error)
            raise
        ys = self.ys()
        return [
            tf.zeros_like(y)
            if dy is None or dy is contract.zero
            else dense(dy, self.operation.name)
            for dy, y in zip(flat, ys, strict=True)
        ]

    def ys(self) -> list[Any]:
        """The outputs that have gradients."""
        return [y for y in trees.leaves(self.application.y) if has_gradient(y)]

    def filled(self, i: int, value: float) -> Any:
        """A tensor like an input, of zeros, ones or NaN."""
        spec: Any = self.application.specs()[i]
        like = self.inputs[i] if i < self.arrays else None
        shape = spec.shape if like is None else tf.shape(like)
        return tf.cast(tf.fill(shape, value), spec.native)

    # Reverse

    def backward(self, *dys: Any) -> list[Any]:
        """For a tape: the gradients of all inputs, None where nobody follows."""
        if self.check is not None:
            self.check()
        found = self.gradients(dys, self.wanted)
        return [*found, *dys] if self.captured else found

    def gradients(
        self, dys: Sequence[Any], wanted: Sequence[int], missing: Any = None
    ) -> list[Any]:
        """The gradients of the arrays and variables at the wanted positions.

        `missing(i)` is what stands for one that is declared not to exist, if it is
        not known whether somebody asked for it.
        """
        application = self.application
        gradients: list[Any] = [None] * (self.arrays + len(application.variables))
        if not wanted:
            return gradients
        try:
            dys = [dense(dy, self.operation.name) for dy in dys]
            if application.vjp is None:
                flat = self._transposed_tangents(dys, wanted)
            else:
                flat = application.gradients(dys, wanted)
            for i in wanted:
                gradient = flat[i]
                if type(gradient) is not EagerTensor:
                    gradient = self._meant(gradient, i, missing)
                gradients[i] = gradient
        except Exception as error:
            pass_on(error)
            raise
        return gradients

    def _meant(self, gradient: Any, i: int, missing: Any) -> Any:
        """What a checked gradient stands for, as a tensor."""
        if isinstance(gradient, contract.NotDifferentiable):
            if missing is not None:
                return missing(i)
            name = self.application.name_of(i)
            raise contract.no_gradient(self.operation.name, name, gradient.why)
        if gradient is None:
            return None
        if gradient is contract.zero:
            return self.filled(i, 0)
        return dense(gradient, self.operation.name)

    def _transposed_tangents(self, dys: list[Any], wanted: Sequence[int]) -> list[Any]:
        def tangents(*dxs: Any) -> list[Any]:
            given = dict(zip(wanted, dxs, strict=True))
            return self.tangents([given.get(i) for i in range(self.arrays)])

        with contract.transposing(self.operation, None, mode="reverse", missing="vjp"):
            ones = [self.filled(i, 1) for i in wanted]
            found = dict(zip(wanted, _transposed(tangents, ones, dys), strict=True))
        return [found.get(i) for i in range(self.arrays)]

    # Forward

    def forward(
        self, ys: Sequence[Any], inputs: Sequence[Any]
    ) -> Callable[..., list[Any]]:
        """For an accumulator: the tangents of the outputs from those of the inputs."""
        own = self.arrays + len(self.application.variables)

        def push(*dxs: Any) -> list[Any]:
            # A tangent may be an argument too, which the accumulator follows
            dxs = tuple(dx if dx is None else tf.identity(dx) for dx in dxs)
            if self.has_jvp:
                call = self.apart(inputs)
                with tapes_see():
                    dys = call.tangents(dxs[:own])
            else:
                dys = self._transposed_gradients(ys, inputs, dxs[:own])
            rest = dxs[own:]
            return [dy + dm for dy, dm in zip(dys, rest, strict=True)] if rest else dys

        return push

    def _transposed_gradients(
        self, ys: Sequence[Any], inputs: Sequence[Any], dxs: Sequence[Any]
    ) -> list[Any]:
        vjp = self.application.vjp
        with contract.transposing(self.operation, vjp, mode="forward", missing="jvp"):
            if self.check is not None:
                self.check()
            call = self.apart(inputs)
            ones = [tf.ones_like(y) for y in ys]
            # If left to transpose it itself, an accumulator gets nothing of a rule that
            # opens a tape
            with tapes_see():
                backward = lambda *dys: call.gradients(dys, self.wanted)
                return _transposed(backward, ones, dxs)

    def refuse(self, *dxs: Any) -> list[Any]:
        vjp = self.application.vjp
        with contract.transposing(self.operation, vjp, mode="forward", missing="jvp"):
            raise AssertionError("there is a transpose, and nobody asked for it")


def _transposed(
    fn: Callable[..., Any], ones: Sequence[Any], given: Sequence[Any]
) -> list[Any]:
    """What a linear function's transpose gives, found at ones.

    At zeros the user's code may take shortcuts.
    """
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(ones)
        found = fn(*ones)
    pairs = zip(found, given, strict=True)
    pairs = [(g, dx) for g, dx in pairs if g is not None and dx is not None]
    ys, dys = [g for g, _ in pairs], [dx for _, dx in pairs]
    return tape.gradient(ys, ones, dys, tf.UnconnectedGradients.ZERO)
