"""What the reference says is raised, is."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import ops

X, WHOLE, TWO = np.ones(3), np.arange(3), np.ones((2, 3))


def square(x):
    return np.sum(x * x)


@gs.custom_gradient
def short(x):
    return x * 1, lambda dy: dy[:1]


@gs.custom_gradient
def without(x):
    return x * 1, lambda dy: gs.not_differentiable("a table")


def asked_twice():
    x = gs.Tensor(X)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    tape.gradient(y, x)
    tape.gradient(y, x)


def watched():
    with gs.GradientTape() as tape:
        tape.watch(X)


def accumulated(x, dx):
    with gs.ForwardAccumulator(x, dx):
        pass


def assigned():
    gs.Tensor(X)[0] = 1


CASES = {
    gs.TapeError: [asked_twice, watched, lambda: accumulated(X, X)],
    gs.UnsupportedOperationError: [
        lambda: gs.grad(lambda x: np.sum(np.asarray(x)))(X),
        lambda: gs.compile(lambda x: float(x[0]) * x)(X),
        lambda: gs.trace(lambda x: float(x[0]) * x, X),
    ],
    gs.GradientContractError: [
        lambda: gs.not_differentiable(""),
        lambda: gs.grad(lambda x: np.sum(short(x)))(X),
    ],
    gs.NotDifferentiableError: [lambda: gs.grad(lambda x: np.sum(without(x)))(X)],
    TypeError: [lambda: gs.compile(3)],
    ValueError: [lambda: gs.unbroadcast(TWO, (4,))],
    gs.GradsmithError: [
        assigned,
        lambda: accumulated(gs.Tensor(WHOLE), gs.Tensor(WHOLE)),
        lambda: accumulated(gs.Tensor(X), gs.Tensor(np.ones(2))),
        lambda: gs.Variable(X).assign(np.ones(2)),
        lambda: gs.Variable(X).assign(X + 0j),
        lambda: gs.grad(lambda x: x)(X),
        lambda: gs.grad(square)(WHOLE),
        lambda: gs.value_and_grad(square)(WHOLE),
        lambda: gs.vjp(square, X)[1](np.ones(5)),
        lambda: gs.jvp(square, [X], [np.ones(2)]),
        lambda: gs.jvp(square, [X], []),
        lambda: gs.jacobian(square, mode="sideways"),
        lambda: gs.jacobian(square)(WHOLE),
        lambda: gs.hessian(lambda x: x)(X),
        lambda: gs.hvp(lambda x: x, [X], [X]),
        lambda: gs.custom_gradient(3),
        lambda: gs.custom_gradient(surrogate=3)(lambda x: x),
        lambda: gs.operation(lambda needs: needs),
        lambda: gs.with_gradient(lambda x: x),
        lambda: gs.fuse(3),
        lambda: gs.python_op(lambda x: x, dtype="int32"),
        lambda: gs.spec("batch -3!"),
        lambda: gs.spec("3", low=2, high=1),
        lambda: ops.binary_cross_entropy_with_logits(X, X, reduction="most"),
        lambda: ops.binary_cross_entropy_with_logits(X, X, pos_weight=-1),
        lambda: ops.focal(X, X, gamma=-1),
        lambda: ops.cross_entropy(TWO, np.array([0, 5])),
        lambda: ops.cross_entropy(TWO, np.array([0.0, 1.0])),
        lambda: ops.kl_divergence(TWO, np.array([0, 1])),
        lambda: ops.softmax(X, axis=3),
        lambda: ops.log_softmax(X, axis=3),
        lambda: ops.gelu(X, approximate="roughly"),
        lambda: ops.huber(X, X, delta=0),
        lambda: ops.gaussian_nll(X, X, X, eps=0),
        lambda: ops.clip_by_value(X, 2, 1),
        lambda: ops.clip_by_norm(X, 0),
        lambda: ops.odeint(lambda t, y: y, X, np.array([0.0, 1.0]), method="guess"),
        lambda: ops.root(lambda x: x * x + 1, np.array(1.0)),
        lambda: ops.fixed_point(lambda x: 2 * x + 1, np.array(1.0)),
        lambda: ops.argmin(np.sum, np.zeros(2)),
        lambda: ops.linear_solve(np.zeros((2, 2)), np.ones(2)),
        lambda: ops.linear_solve(TWO, np.ones(2)),
    ],
}


@pytest.mark.parametrize(
    ("error", "call"),
    [(error, call) for error, calls in CASES.items() for call in calls],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_promised_is_raised(error, call):
    with pytest.raises(error):
        call()
