"""What the tests of single checks share: a session for an operation, and operations."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.inputs import CheckInputs
from gradsmith.tools.check.model import Finding
from gradsmith.tools.check.problem import problem_for
from gradsmith.tools.check.session import Session

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
X = np.random.default_rng(0).normal(size=(3, 4))


class Checked(Session):
    """What a single check reports; how much it weighs is tested elsewhere."""

    @property
    def reported(self) -> list[Finding]:
        return self.findings + self.limits


def checked(
    check: Any, op: Any, *inputs: Any, framework: str | None = None, seed: int = 0
) -> Checked:
    """The session after one check of an operation in float64."""
    problem = problem_for(op, CheckInputs(inputs, {}, ()), framework)
    session = Checked(problem, seed)
    check(session, problem.in_dtype("float64"), "given")
    return session


def kinds(session: Checked) -> list[str]:
    return [finding.what for finding in session.reported]


def ours(rule: Any, body: Any = gnp.tanh, **options: Any) -> Any:
    """An operation of ours with this rule: `rule(dy, y, *xs)`."""
    op = gs.operation(lambda x: body(x), **options)
    op.vjp(lambda dy, y, x: rule(dy, y, x))
    return op


def right(dy: Any, y: Any, x: Any) -> Any:
    return dy * (1 - y * y)


def native(framework: str, body: Any, rule: Any) -> Any:
    """A framework's own custom operation; `rule(dy, y, *xs)` gives a tuple."""
    return _NATIVE[framework](body, rule)


def _torch(body: Any, rule: Any) -> Any:
    import torch

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            y = body(*xs)
            ctx.save_for_backward(y, *xs)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return rule(dy, *ctx.saved_tensors)

    return Operation


def _jax(body: Any, rule: Any) -> Any:
    import jax

    def fwd(*xs: Any) -> Any:
        y = body(*xs)
        return y, (y, xs)

    op = jax.custom_vjp(lambda *xs: body(*xs))
    op.defvjp(fwd, lambda saved, dy: rule(dy, saved[0], *saved[1]))
    return op


def _tensorflow(body: Any, rule: Any) -> Any:
    import tensorflow as tf

    @tf.custom_gradient
    def op(*xs: Any) -> Any:
        y = body(*xs)
        return y, lambda dy: rule(dy, y, *xs)

    return op


_NATIVE = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}
