"""What ours costs beside a framework's own mechanism, written by hand.

One small operation, x * x on 1000 float32 with its gradient, forward and gradient. Ours
is the same definition in all frameworks. Compiled, both should be the same graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import survival
from benchmarks._measure import Progress, interleaved
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, Row
from gradsmith.core.errors import first_line

X = np.linspace(-1, 1, 1000, dtype=np.float32)
EAGER, COMPILED = 1.15, 1.05


@dataclass(frozen=True)
class Case:
    """One comparison: how an operation is called, and what its graph is made of."""

    framework: str
    name: str
    by_hand: str
    make: Callable[[], Any]  # the operation by hand
    call: Callable[[Any], Callable[[], Any]]  # of an operation: forward and gradient
    target: float | None
    graph: Callable[[Any], Counter[str]] | None = None
    unit: str = "ops"  # what the graph is counted in


# --- TensorFlow ----------------------------------------------------------------------


def _tf_gradient(op: Any) -> Callable[[Any], Any]:
    tf = load("tensorflow")

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        return tape.gradient(y, x)

    return gradient


def tf_eager(op: Any) -> Callable[[], Any]:
    x, gradient = load("tensorflow").constant(X), _tf_gradient(op)
    return lambda: gradient(x)


def tf_compiled(op: Any) -> Callable[[], Any]:
    tf = load("tensorflow")
    x, gradient = tf.constant(X), tf.function(_tf_gradient(op))
    return lambda: gradient(x)


def tf_graph(op: Any) -> Counter[str]:
    tf = load("tensorflow")
    function = tf.function(_tf_gradient(op)).get_concrete_function(tf.constant(X))
    return Counter(operation.type for operation in function.graph.get_operations())


# --- JAX -----------------------------------------------------------------------------


def _jax_gradient(op: Any) -> Callable[[Any], Any]:
    jax = load("jax")
    return jax.grad(lambda x: op(x).sum())


def jax_eager(op: Any) -> Callable[[], Any]:
    x, gradient = load("jax.numpy").asarray(X), _jax_gradient(op)
    return lambda: gradient(x).block_until_ready()


def jax_compiled(op: Any) -> Callable[[], Any]:
    x, gradient = load("jax.numpy").asarray(X), load("jax").jit(_jax_gradient(op))
    return lambda: gradient(x).block_until_ready()


def jax_graph(op: Any) -> Counter[str]:
    lowered = load("jax").jit(_jax_gradient(op)).lower(X).as_text()
    return Counter(
        line.partition(" = ")[2].split()[0]
        for line in lowered.splitlines()
        if " = " in line and "module @" not in line
    )


# --- PyTorch -------------------------------------------------------------------------


def torch_function() -> Any:
    """As it is written where nothing but speed and .backward() is asked for."""
    torch = load("torch")

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * dy

    return Square.apply


def torch_complete_function() -> Any:
    """As it is written to work with torch.func too."""
    return survival.torch_function().apply


def torch_eager(op: Any) -> Callable[[], Any]:
    torch = load("torch")
    torch.set_num_threads(1)  # its best on small arrays
    x, dy = torch.tensor(X, requires_grad=True), torch.ones(len(X))
    return lambda: torch.autograd.grad(op(x), x, dy)[0]


def torch_compiled(op: Any) -> Callable[[], Any]:
    torch = load("torch")
    torch._dynamo.reset()
    return torch_eager(torch.compile(lambda x: op(x), fullgraph=True))


def torch_graph(op: Any) -> Counter[str]:
    """The lines of the code that Inductor generates, where views are gone."""
    torch = load("torch")
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    compiled = torch.compile(lambda x: op(x), fullgraph=True)
    _, sources = run_and_get_code(torch_eager(compiled))
    lines = [line.strip() for source in sources for line in source.splitlines()]
    return Counter(line for line in lines if line and not line.startswith("#"))


CASES = [
    Case(
        "tensorflow",
        "eager",
        "tf.custom_gradient",
        survival.tf_custom_gradient,
        tf_eager,
        EAGER,
    ),
    Case(
        "tensorflow",
        "tf.function",
        "tf.custom_gradient",
        survival.tf_custom_gradient,
        tf_compiled,
        COMPILED,
        tf_graph,
    ),
    Case("jax", "without jit", "custom_vjp", survival.jax_custom_vjp, jax_eager, None),
    Case(
        "jax",
        "jax.jit",
        "custom_vjp",
        survival.jax_custom_vjp,
        jax_compiled,
        COMPILED,
        jax_graph,
    ),
    Case("torch", "eager", "autograd.Function", torch_function, torch_eager, EAGER),
    Case(
        "torch",
        "eager",
        "the same with jvp and vmap",
        torch_complete_function,
        torch_eager,
        None,
    ),
    Case(
        "torch",
        "torch.compile",
        "autograd.Function",
        torch_function,
        torch_compiled,
        COMPILED,
        torch_graph,
        unit="lines",
    ),
]


def run(options: Options) -> Report:
    report, progress = Report("wrap", options), Progress("wrap")
    for name in report.available("tensorflow", "jax", "torch"):
        load(name)
        for case in CASES:
            if case.framework == name:
                progress(f"{PEERS[name].title}, {case.name}")
                try:
                    _measure(case, report, progress)
                except Exception as error:
                    report.refused.append(f"{_title(case)}: {first_line(error)}")
    return report


def _measure(case: Case, report: Report, progress: Progress) -> None:
    by_hand, ours = case.make(), survival.ours()
    calls = {"ours": case.call(ours), "by hand": case.call(by_hand)}
    for name, call in calls.items():  # a wrong gradient is easily fast
        np.testing.assert_allclose(
            _numpy(call()), 2 * X, rtol=1e-6, err_msg=f"{_title(case)}, {name}"
        )
    rounds, turn = (1, 0.001) if report.options.quick else (15, 0.1)
    seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
    report.rows.append(
        Row(
            case=_title(case),
            ours=seconds["ours"] * 1e6,
            peer=seconds["by hand"] * 1e6,
            peer_name=case.by_hand,
            target=case.target,
            unit="us",
        )
    )
    if case.graph is not None:
        _compare_graphs(case, case.graph(ours), case.graph(by_hand), report)


def _compare_graphs(
    case: Case, ours: Counter[str], by_hand: Counter[str], report: Report
) -> None:
    report.rows.append(
        Row(
            case=f"{_title(case)}, size of the graph",
            ours=ours.total(),
            peer=by_hand.total(),
            peer_name=case.by_hand,
            target=None,
            unit=case.unit,
        )
    )
    more, less = ours - by_hand, by_hand - ours
    differs = f"differs by {dict(more)} more, {dict(less)} less"
    verdict = differs if more or less else "is the same"
    report.notes.append(f"{_title(case)}: the graph {verdict}")


def _title(case: Case) -> str:
    return f"{PEERS[case.framework].title}, {case.name}"


def _numpy(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if hasattr(x, "detach") else x)
