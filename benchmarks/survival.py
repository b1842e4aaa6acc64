"""Where a rule survives: ours beside each framework's own mechanisms.

The operation is x * x with its derivative as the rule, written in each mechanism as
fully as that allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np

from benchmarks._measure import Progress
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, machine

X = np.array([0.5, 1.5, -2.0], np.float32)


def ours() -> Any:
    import gradsmith as gs

    @gs.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda dy: 2 * x * dy

    return square


def tf_custom_gradient() -> Any:
    tf = load("tensorflow")

    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda dy: 2 * x * dy

    return square


def jax_custom_vjp() -> Any:
    jax = load("jax")

    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, dy: (2 * x * dy,))
    return square


def jax_custom_jvp() -> Any:
    jax = load("jax")

    @jax.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvps(lambda dx, y, x: 2 * x * dx)
    return square


def torch_function() -> Any:
    torch = load("torch")

    class Square(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * dy

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * dx

    return Square


def torch_custom_op() -> Any:
    torch = load("torch")

    def square(x):
        return x * x

    # Given here, since annotations as strings would be looked up where torch is not
    square.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(
        "gradsmith_benchmarks::square", square, mutates_args=()
    )
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(
        lambda ctx, dy: 2 * ctx.saved_tensors[0] * dy,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return op


def mlx_custom_function() -> Any:
    """With a rule that is not the derivative: MLX shows no rule that could be marked.

    With a vjp alone, as its documentation has it.
    """
    mx = load("mlx.core")
    square = mx.custom_function(lambda x: x * x)
    square.vjp(lambda x, dy, y: 3 * x * dy)
    return square


MECHANISMS: dict[str, dict[str, Callable[[], Any]]] = {
    "tensorflow": {"Gradsmith": ours, "tf.custom_gradient": tf_custom_gradient},
    "jax": {
        "Gradsmith": ours,
        "custom_vjp": jax_custom_vjp,
        "custom_jvp": jax_custom_jvp,
    },
    "torch": {
        "Gradsmith": ours,
        "autograd.Function": torch_function,
        "custom_op": torch_custom_op,
    },
    "mlx": {"Gradsmith": ours, "custom_function": mlx_custom_function},
}


@cache
def survey(framework: str, quick: bool = False) -> Any:
    """The mechanisms of a framework side by side."""
    import gradsmith as gs

    load(framework)
    mechanisms = MECHANISMS[framework].items()
    return gs.survival_table(
        {name: _survival(make(), framework, quick) for name, make in mechanisms}
    )


def _survival(op: Any, framework: str, quick: bool) -> Any:
    """An operation that can't even be called is refused everywhere."""
    from gradsmith.core.arrays import FRAMEWORKS
    from gradsmith.core.errors import first_line
    from gradsmith.tools.survival import Fate, Outcome, Survival, survives

    theirs = FRAMEWORKS[framework]
    only = [row.name for row in theirs.transformations.ROWS][: 2 if quick else None]
    try:
        return survives(op, X, framework=framework, only=only)
    except Exception as error:
        refused = [Outcome(name, Fate.REFUSED, first_line(error)) for name in only]
        version = theirs.arrays.version
        return Survival(op.name, theirs.title, version, tuple(refused))


@dataclass
class SurvivalReport:
    """The tables of the installed frameworks, as other reports are."""

    name: str
    options: Options
    tables: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether ours is never dropped, and never wrong."""
        return all(table.columns[0][1].ok for table in self.tables.values())

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {"framework": framework, "mechanism": name, **asdict(outcome)}
            for framework, table in self.tables.items()
            for name, survival in table.columns
            for outcome in survival.outcomes
        ]
        return {
            "name": self.name,
            "rows": rows,
            "ok": self.ok,
            "skipped": [
                {"peer": name, "install": PEERS[name].install} for name in self.skipped
            ],
            "quick": self.options.quick,
            "machine": machine(),
        }

    def table(self) -> str:
        parts = [f"{_title(t)}\n{t}\n" for t in self.tables.values()]
        parts += [
            f"skipped: {PEERS[name].title} is not installed ({PEERS[name].install})"
            for name in self.skipped
        ]
        return "\n".join([self.name, *parts])

    def markdown(self) -> str:
        return "\n\n".join(map(markdown, self.tables.values()))


def run(options: Options) -> SurvivalReport:
    report, progress = SurvivalReport("survival", options), Progress("survival")
    finder = Report("survival", options)
    for name in finder.available(*MECHANISMS):
        progress(f"{PEERS[name].title}, {len(MECHANISMS[name])} mechanisms")
        report.tables[name] = survey(name, options.quick)
    report.skipped = finder.skipped
    return report


# --- in documents --------------------------------------------------------------------


def markdown(table: Any) -> str:
    return f"**{_title(table)}**\n\n{table.markdown()}"


def _title(table: Any) -> str:
    survival = table.columns[0][1]
    return f"{survival.framework} {survival.version}"
