"""What the rules of one call are asked, between lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import tensorflow as tf

from ....core import trees
from ....operations import contract
from ....operations.application import Application
from ....operations.parameters import Bound
from ..private import EagerTensor, pass_on
from .cells import with_captured
from .tensors import TensorSpec, dense, has_gradient, is_known, specs_of


class Rules:
    """The rules of one call, with the tensors that they are given.

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

    def apart(self) -> Self:
        """The same call with tensors that the accumulator does not follow.

        While it works out a tangent it follows nothing new; others do. If it followed
        a tangent, the tapes would forget that when the accumulator goes: TensorFlow
        counts the uses of a result from when it is recorded, after those in its
        tangent.
        """
        grad = self.application.grad
        if grad is not None and not self.has_jvp:
            unfollowed = lambda x: tf.identity(x) if type(x) is EagerTensor else x
            grad = with_captured(grad, unfollowed)
            return self._with(self.inputs, grad=grad, bound=None, y=None)
        assert self.application.bound is not None
        xs = [tf.identity(x) for x in self.application.bound.leaves]
        return self.at(xs, [tf.identity(y) for y in self.ys()])

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
