"""What an operation costs: a chain of 100 on 10 elements, forward and gradient.

Every contender runs the same chain with its own functions, sums it up and takes the
gradient, as its users would write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._measure import Progress, interleaved
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, Row

LENGTH = 100
X = np.linspace(-1, 1, 10, dtype=np.float32)

# JAX is made for compiled code; without jit it stands here to be read.
TARGETS = {"torch": 0.5, "autograd": 0.4, "tensorflow": 0.08, "jax": None}
COMPILED = {"torch": 0.15}


def chain(x: Any, sin: Any, tanh: Any, total: Any) -> Any:
    """A hundred operations: two functions and two products or sums with numbers."""
    for _ in range(LENGTH // 4):
        x = sin(x)
        x = x * 1.01
        x = x + 0.1
        x = tanh(x)
    return total(x)


def ours_by_tape() -> Callable[[], Any]:
    import gradsmith as gs

    x = gs.Tensor(X)

    def call() -> Any:
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = chain(x, np.sin, np.tanh, np.sum)
        return tape.gradient(y, x)

    return call


def ours_by_grad() -> Callable[[], Any]:
    import gradsmith as gs

    gradient = gs.grad(lambda x: chain(x, np.sin, np.tanh, np.sum))
    return lambda: gradient(X)


def ours_by_compile() -> Callable[[], Any]:
    import gradsmith as gs

    gradient = gs.compile(gs.grad(lambda x: chain(x, np.sin, np.tanh, np.sum)))
    return lambda: gradient(X)


def torch() -> Callable[[], Any]:
    torch = load("torch")
    torch.set_num_threads(1)  # its best on small arrays
    x = torch.tensor(X, requires_grad=True)

    def call() -> Any:
        y = chain(x, torch.sin, torch.tanh, torch.sum)
        return torch.autograd.grad(y, x)[0]

    return call


def autograd() -> Callable[[], Any]:
    anp = load("autograd.numpy")
    grad = load("autograd").grad
    gradient = grad(lambda x: chain(x, anp.sin, anp.tanh, anp.sum))
    return lambda: gradient(X)


def tensorflow() -> Callable[[], Any]:
    tf = load("tensorflow")
    x = tf.constant(X)

    def call() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = chain(x, tf.sin, tf.tanh, tf.reduce_sum)
        return tape.gradient(y, x)

    return call


def jax() -> Callable[[], Any]:
    jnp = load("jax.numpy")
    x = jnp.asarray(X)
    gradient = load("jax").grad(lambda x: chain(x, jnp.sin, jnp.tanh, jnp.sum))
    return lambda: gradient(x).block_until_ready()


OURS = {
    "gs.GradientTape": ours_by_tape,
    "gs.grad": ours_by_grad,
    "gs.compile": ours_by_compile,
}
THEIRS = {"torch": torch, "autograd": autograd, "tensorflow": tensorflow, "jax": jax}


def run(options: Options) -> Report:
    report, progress = Report("overhead", options), Progress("overhead")
    calls = {name: make() for name, make in OURS.items()}
    for name in report.available(*THEIRS):
        progress(f"importing {PEERS[name].title}")
        calls[name] = THEIRS[name]()
    _require_agreement(calls)
    rounds, turn = (1, 0.001) if options.quick else (15, 0.1)
    seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
    for ours in OURS:
        targets = COMPILED if ours == "gs.compile" else TARGETS
        for name in calls:
            if name in PEERS:
                report.rows.append(
                    Row(
                        case=f"{ours}, per operation",
                        ours=seconds[ours] / LENGTH * 1e6,
                        peer=seconds[name] / LENGTH * 1e6,
                        peer_name=PEERS[name].title,
                        target=targets.get(name),
                        unit="us",
                    )
                )
    for per_input in (2, 3, 4):
        _jacobian(report, progress, per_input)
    _second_order(report, progress)
    return report


# From how many outputs per input on a Jacobian is cheaper by columns; no target


def _jacobian(report: Report, progress: Progress, per_input: int) -> None:
    import gradsmith as gs

    x, weights = np.linspace(-1, 1, 10), np.random.default_rng(0).normal(size=(32, 10))
    last = np.random.default_rng(1).normal(size=(10 * per_input, 32))

    def f(x: Any) -> Any:
        return np.tanh(last @ np.tanh(weights @ x))

    calls = {
        mode: lambda mode=mode: gs.jacobian(f, mode=mode)(x)
        for mode in ("forward", "reverse")
    }
    case = f"Jacobian in forward mode, {per_input} outputs per input"
    _compare(report, progress, case, calls)


# The Hessian times a vector: forward over reverse, and reverse over reverse


def _second_order(report: Report, progress: Progress) -> None:
    import gradsmith as gs

    x, v = np.linspace(-1, 1, 10), np.linspace(0, 1, 10)
    gradient = gs.grad(lambda x: chain(x, np.sin, np.tanh, np.sum))
    calls = {
        "jvp of grad": lambda: gs.jvp(gradient, (x,), (v,))[1],
        "grad of grad": lambda: gs.grad(lambda x: np.sum(gradient(x) * v))(x),
    }
    case = "a Hessian times a vector, jvp of grad"
    _compare(report, progress, case, calls, target=1.0)


def _compare(
    report: Report,
    progress: Progress,
    case: str,
    calls: dict[str, Callable[[], Any]],
    target: float | None = None,
) -> None:
    (first, ours), (second, theirs) = calls.items()
    np.testing.assert_allclose(ours(), theirs(), rtol=1e-9, atol=1e-12)
    rounds, turn = (1, 0.001) if report.options.quick else (10, 0.05)
    seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
    report.rows.append(
        Row(
            case=case,
            ours=seconds[first] * 1e6,
            peer=seconds[second] * 1e6,
            peer_name=second,
            target=target,
            unit="us",
        )
    )


def _require_agreement(calls: dict[str, Callable[[], Any]]) -> None:
    """A wrong gradient is easily fast."""
    reference = np.asarray(calls["gs.grad"]())
    for name, call in calls.items():
        np.testing.assert_allclose(
            np.asarray(call()), reference, rtol=1e-4, err_msg=f"gradient of {name}"
        )
