"""Every operation beside the frameworks' own: a row each.

Where a framework has no function of its own, the plain formula stands for it; where
the gradient is no derivative, the rule by the framework's own mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import pi
from typing import Any

import gradsmith.numpy as gnp
from benchmarks._peers import load
from benchmarks.ops.native import Framework
from gradsmith import ops

OWN = "own"  # how the peer is called in the table, and what it may be
PLAIN, BY_HAND = "plain formula", "by hand"


@dataclass(frozen=True)
class Case:
    """One operation: `inputs` says what it is given, `theirs` what stands beside it.

    `own` are expressions by framework, of the framework's module and the arguments.
    """

    name: str
    ours: Callable[..., Any]
    plain: Callable[..., Any] | None
    own: dict[str, Callable[..., Any]] = field(default_factory=dict)
    inputs: str = "x"
    gradient: Callable[..., Any] | None = None  # of dy and x, for what is by hand
    floats: int | None = None  # how many arguments are differentiated; all

    def theirs(self, framework: Framework) -> tuple[str, Callable[..., Any]]:
        own = self.own.get(framework.name)
        if own is not None:
            module = load(framework.name)
            return OWN, lambda *xs: own(module, *xs)
        assert self.plain is not None
        if self.gradient is not None:
            return BY_HAND, framework.by_hand(self.plain, self.gradient)
        return PLAIN, self.plain


def _named(**own: Any) -> dict[str, Any]:
    names = {"tf": "tensorflow", "jax": "jax", "torch": "torch"}
    return {names[name]: fn for name, fn in own.items()}


def _softplus(x: Any) -> Any:
    return gnp.log(1 + gnp.exp(x))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + gnp.exp(-x))


def _lse(x: Any) -> Any:
    return gnp.log(gnp.sum(gnp.exp(x), axis=-1))


def _softmax(x: Any) -> Any:
    e = gnp.exp(x)
    return e / gnp.sum(e, axis=-1, keepdims=True)


def _gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + gnp.tanh((2 / pi) ** 0.5 * (x + 0.044715 * x**3)))


def _masked_log(x: Any) -> Any:
    return gnp.where(x > 0, gnp.log(x), 0.0)


STABLE = [
    Case(
        "sigmoid",
        ops.sigmoid,
        _sigmoid,
        _named(
            tf=lambda tf, x: tf.sigmoid(x),
            jax=lambda jax, x: jax.nn.sigmoid(x),
            torch=lambda torch, x: torch.sigmoid(x),
        ),
    ),
    Case(
        "silu",
        ops.silu,
        lambda x: x * _sigmoid(x),
        _named(
            tf=lambda tf, x: tf.nn.silu(x),
            jax=lambda jax, x: jax.nn.silu(x),
            torch=lambda torch, x: torch.nn.functional.silu(x),
        ),
    ),
    Case(
        "gelu",
        ops.gelu,
        lambda x: x * gnp.special.ndtr(x),
        _named(
            tf=lambda tf, x: tf.nn.gelu(x),
            jax=lambda jax, x: jax.nn.gelu(x, approximate=False),
            torch=lambda torch, x: torch.nn.functional.gelu(x),
        ),
    ),
    Case(
        "gelu, tanh",
        lambda x: ops.gelu(x, "tanh"),
        _gelu_tanh,
        _named(
            tf=lambda tf, x: tf.nn.gelu(x, approximate=True),
            jax=lambda jax, x: jax.nn.gelu(x, approximate=True),
            torch=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
        ),
    ),
    Case(
        "softplus",
        ops.softplus,
        _softplus,
        _named(
            tf=lambda tf, x: tf.math.softplus(x),
            jax=lambda jax, x: jax.nn.softplus(x),
            torch=lambda torch, x: torch.nn.functional.softplus(x),
        ),
    ),
    Case(
        "log_sigmoid",
        ops.log_sigmoid,
        lambda x: gnp.log(_sigmoid(x)),
        _named(
            tf=lambda tf, x: tf.math.log_sigmoid(x),
            jax=lambda jax, x: jax.nn.log_sigmoid(x),
            torch=lambda torch, x: torch.nn.functional.logsigmoid(x),
        ),
    ),
    Case(
        "softmax",
        ops.softmax,
        _softmax,
        _named(
            tf=lambda tf, x: tf.nn.softmax(x),
            jax=lambda jax, x: jax.nn.softmax(x),
            torch=lambda torch, x: torch.softmax(x, -1),
        ),
    ),
    Case(
        "log_softmax",
        ops.log_softmax,
        lambda x: gnp.log(_softmax(x)),
        _named(
            tf=lambda tf, x: tf.nn.log_softmax(x),
            jax=lambda jax, x: jax.nn.log_softmax(x),
            torch=lambda torch, x: torch.log_softmax(x, -1),
        ),
    ),
    Case(
        "logsumexp",
        lambda x: ops.logsumexp(x, -1),
        _lse,
        _named(
            tf=lambda tf, x: tf.reduce_logsumexp(x, -1),
            jax=lambda jax, x: jax.nn.logsumexp(x, -1),
            torch=lambda torch, x: torch.logsumexp(x, -1),
        ),
    ),
    Case("log1mexp", ops.log1mexp, lambda x: gnp.log(1 - gnp.exp(-x)), inputs="p"),
    Case(
        "xlogy",
        ops.xlogy,
        lambda x, y: x * gnp.log(y),
        _named(
            tf=lambda tf, x, y: tf.math.xlogy(x, y),
            jax=lambda jax, x, y: jax.scipy.special.xlogy(x, y),
            torch=lambda torch, x, y: torch.special.xlogy(x, y),
        ),
        "pp",
    ),
    Case(
        "norm",
        lambda x: ops.norm(x, -1),
        lambda x: gnp.sqrt(gnp.sum(x * x, axis=-1)),
        _named(
            tf=lambda tf, x: tf.norm(x, axis=-1),
            jax=lambda jax, x: jax.numpy.linalg.norm(x, axis=-1),
            torch=lambda torch, x: torch.linalg.vector_norm(x, dim=-1),
        ),
    ),
    Case("sqrt", ops.sqrt, gnp.sqrt, inputs="p"),
    Case(
        "divide",
        ops.divide,
        lambda x, y: x / y,
        _named(tf=lambda tf, x, y: tf.math.divide_no_nan(x, y)),
        "xx",
    ),
    Case(
        "safe_where",
        lambda x: ops.safe_where(x > 0, gnp.log, x),
        _masked_log,
    ),
]
