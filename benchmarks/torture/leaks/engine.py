"""What is called in the embedded engine: each row makes a function to call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

from ..aliasing.scenarios import square, square_by_rule, square_in_python

ENTRIES: dict[str, Callable[[], Callable[[], Any]]] = {}
X = np.linspace(0.5, 1.5, 5)
LARGE = np.linspace(0.5, 1.5, 200_000)


def entry(make: Callable[[], Callable[[], Any]]) -> Callable[[], Callable[[], Any]]:
    ENTRIES[make.__name__.replace("_", " ").strip()] = make
    return make


def loss(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def _add(title: str, call: Callable[[], Any]) -> None:
    ENTRIES[title] = lambda: call


_add("grad", lambda: gs.grad(loss)(X))
_add("value_and_grad", lambda: gs.value_and_grad(loss)(X))
_add("grad, a new function each time", lambda: gs.grad(lambda x: np.sum(x * x))(X))
_add("grad, large", lambda: gs.grad(loss)(LARGE))
_add("grad, a number", lambda: gs.grad(lambda x: x * x)(3.0))
_add("grad of grad", lambda: gs.grad(lambda x: np.sum(gs.grad(loss)(x)))(X))
_add("vjp", lambda: gs.vjp(np.sin, X)[1](X))
_add("vjp, never pulled", lambda: gs.vjp(np.sin, X))
_add("jvp", lambda: gs.jvp(np.sin, (X,), (X,)))
_add("hvp", lambda: gs.hvp(loss, (X,), (X,)))
_add("hessian", lambda: gs.hessian(loss)(X))
_add("jacobian", lambda: gs.jacobian(np.sin)(X))
_add("jacfwd", lambda: gs.jacfwd(np.sin)(X))
_add("jacrev", lambda: gs.jacrev(np.sin)(X))
_add("constant", lambda: gs.constant(X))
_add("Variable", lambda: gs.Variable(X).assign(X))
_add("spec", lambda: gs.spec((3,)))
_add("unbroadcast", lambda: gs.unbroadcast(X[None], (5,)))
_add("release_memory", gs.release_memory)
_add("checkpoint", lambda: gs.grad(gs.checkpoint(loss))(X))
_add("memory", lambda: gs.memory(loss, X))
_add("find_nan", lambda: gs.find_nan(loss, X))
_add("find_nan, found", lambda: gs.find_nan(lambda x: np.sum(np.log(x - x)), X))


@entry
def tape() -> Callable[[], Any]:
    def call() -> None:
        with gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            y = loss(v)
        tape.gradient(y, v)

    return call


@entry
def tape_that_is_persistent() -> Callable[[], Any]:
    def call() -> None:
        with gs.GradientTape(persistent=True) as tape:
            v = gs.Variable(X)
            y = loss(v)
        tape.gradient(y, v)
        tape.gradient(y, v)

    return call


@entry
def tape_that_is_never_asked() -> Callable[[], Any]:
    def call() -> None:
        with gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            loss(v)

    return call


@entry
def tape_whose_body_raises() -> Callable[[], Any]:
    def call() -> None:
        with suppress(KeyError), gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            loss(v)
            raise KeyError

    return call


@entry
def forward_accumulator() -> Callable[[], Any]:
    def call() -> None:
        v = gs.constant(X)
        with gs.ForwardAccumulator(v, X) as accumulator:
            y = loss(v)
        accumulator.jvp(y)

    return call


def _operation(make: Callable[[], Any]) -> Callable[[], Callable[[], Any]]:
    def built() -> Callable[[], Any]:
        op = make()
        return lambda: gs.grad(lambda x: np.sum(op(x)))(X)

    return built


ENTRIES["custom_gradient"] = _operation(square)
ENTRIES["operation"] = _operation(square_by_rule)
ENTRIES["python_op"] = _operation(square_in_python)
_add(
    "custom_gradient, defined each time",
    lambda: gs.grad(lambda x: np.sum(square()(x)))(X),
)
_add(
    "operation, defined each time",
    lambda: gs.grad(lambda x: np.sum(square_by_rule()(x)))(X),
)
_add(
    "python_op, defined each time",
    lambda: gs.grad(lambda x: np.sum(square_in_python()(x)))(X),
)


@entry
def with_gradient() -> Callable[[], Any]:
    op = gs.with_gradient(np.sin, lambda dy, y, x: dy * np.cos(x))
    return lambda: gs.grad(lambda x: np.sum(op(x)))(X)


@entry
def operation_without_a_tape() -> Callable[[], Any]:
    op = square()
    return lambda: op(X)


@entry
def operation_that_breaks_the_contract() -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: dy[:2]))

    def call() -> None:
        with suppress(gs.GradientContractError):
            gs.grad(lambda x: np.sum(op(x)))(X)

    return call


@entry
def operation_with_new_shapes() -> Callable[[], Any]:
    op, sizes = square(), iter(range(1, 10**9))

    def call() -> None:
        x = np.ones(next(sizes) % 50 + 1)
        gs.grad(lambda x: np.sum(op(x)))(x)

    return call


@entry
def operation_with_new_static_arguments() -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x, k: (x * k, lambda dy: dy * k))
    numbers = iter(range(10**9))

    def call() -> None:
        k = float(next(numbers))
        gs.grad(lambda x: np.sum(op(x, k)))(X)

    return call


@entry
def what_is_refused() -> Callable[[], Any]:
    def call() -> None:
        with suppress(gs.GradsmithError):
            gs.grad(lambda x: np.sum(np.sin(x, out=np.empty(5))))(X)

    return call


@entry
def check() -> Callable[[], Any]:
    op = square()
    return lambda: gs.check(op, X)


@entry
def check_defined_each_time() -> Callable[[], Any]:
    return lambda: gs.check(square(), X)


@entry
def check_of_a_wrong_one() -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: 3 * x * dy))
    return lambda: str(gs.check(op, X))


@entry
def survives() -> Callable[[], Any]:
    op = square()
    return lambda: gs.survives(op, X)


@entry
def audit() -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x: (gnp.exp(x), lambda dy: dy * gnp.exp(x)))
    return lambda: gs.audit(op, (-1, 1), points=100)


@entry
def override() -> Callable[[], Any]:
    def call() -> None:
        with gs.override({np.sin: lambda dy, y, x: dy}):
            gs.grad(loss)(X)

    return call


def _step(x: Any) -> Any:
    return x + 0.01 * np.sin(x)


_add(
    "checkpoint_scan",
    lambda: gs.grad(lambda x: np.sum(gs.checkpoint_scan(_step, x, 9, snapshots=3)))(X),
)


@entry
def checkpoint_scan_on_disk() -> Callable[[], Any]:
    folder = tempfile.mkdtemp()
    options = {"snapshots": 2, "disk": 2, "folder": folder}
    scan = lambda x: np.sum(gs.checkpoint_scan(_step, x, 9, **options))
    return lambda: gs.grad(scan)(X)


@entry
def module() -> Callable[[], Any]:
    class Layer(gs.Module):
        def __init__(self) -> None:
            self.w = gs.Variable(X)

        def __call__(self, x: Any) -> Any:
            return x * self.w

    def call() -> None:
        layer = Layer()
        with gs.GradientTape() as tape:
            y = np.sum(layer(X))
        tape.gradient(y, layer.trainable_variables)

    return call


def _optimizer(name: str) -> Callable[[], Callable[[], Any]]:
    def make() -> Callable[[], Any]:
        v = gs.Variable(X)
        optimizer = getattr(gs.optimizers, name)(0.01)
        return lambda: optimizer.apply_gradients([(X, v)])

    return make


for _name in gs.optimizers.__all__:
    if isinstance(getattr(gs.optimizers, _name), type) and _name != "Optimizer":
        ENTRIES[f"optimizers.{_name}"] = _optimizer(_name)

_ELEMENTWISE = "sin cos tanh exp log1p sqrt abs square sum mean max min sort cumsum"
for _name in _ELEMENTWISE.split():
    _function = getattr(gnp, _name)
    _add(f"numpy.{_name}", lambda f=_function: gs.grad(lambda x: np.sum(f(x)))(X))

_ONE = "sigmoid softplus silu gelu log_sigmoid softmax log_softmax logsumexp norm sign"
_ONE += " sqrt round floor log1mexp one_hot_argmax spike_arctan reverse noise"
for _name in _ONE.split():
    _function = getattr(gs.ops, _name)
    _add(f"ops.{_name}", lambda f=_function: _tried(f))


def _tried(function: Any) -> Any:
    with suppress(TypeError, gs.GradsmithError):
        return gs.grad(lambda x: np.sum(function(x)))(-X)
