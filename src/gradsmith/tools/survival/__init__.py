"""Where does the rule of an operation survive? The canary as a feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.arrays import title_of
from ...core.errors import GradsmithError
from ...operations.info import names_of
from .._inputs import framework_for, info_of, prepared
from .choice import scalar_of
from .choose import chosen, kit_for
from .result import Outcome, Survival, SurvivalTable, Verdict
from .run import outcomes

__all__ = [
    "Outcome",
    "Survival",
    "SurvivalTable",
    "Verdict",
    "survival_table",
    "survives",
]


def survives(
    op: Any,
    *inputs: Any,
    framework: str | None = None,
    only: str | Iterable[str] | None = None,
    skip: str | Iterable[str] = (),
    **keywords: Any,
) -> Survival:
    """Run an operation through every transformation, and say where its rule was used.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def square(x):
    ...     return x * x, lambda dy: 2 * x * dy
    >>> print(gs.survives(square, np.arange(3.0), only=["GradientTape", "jvp"]))
    square in NumPy ...
      GradientTape  ✓ honoured
      jvp           ✓ honoured
      2 honoured

    The operation is one of ours, or a framework's own: `tf.custom_gradient`,
    `jax.custom_vjp`, `jax.custom_jvp`, `jax.custom_gradient`,
    `torch.autograd.Function`, `torch.library.custom_op`. `inputs` and `keywords` are
    what it is called with; numbers in place of arrays will do.

    `framework` is `"numpy"` (the embedded engine), `"tensorflow"`, `"jax"` or
    `"torch"`, by default that of the operation or of the inputs; NumPy's arrays are
    converted. `only` and `skip` name the transformations to run, or not to run.
    """
    name = framework_for(op, (inputs, keywords), framework, caller="survives()")
    kit = kit_for(name)
    subject = info_of(op, name)
    args, kwargs = prepared(
        (inputs, keywords), kit.array, caller=f"survives({subject.name})"
    )
    rows = chosen(kit.ROWS, only, skip)
    if not names_of(subject, args):
        rows = [row for row in rows if not row.keyword]
    scalar = scalar_of(kit, subject, args, kwargs)
    found = outcomes(subject, scalar, rows, plain=kit.ROWS[0])
    return Survival(subject.name, title_of(name), kit.version, found, subject.unaltered)


def survival_table(survivals: Mapping[str, Survival] | Iterable[Survival]) -> Any:
    """Several results side by side; a dict gives the columns their titles.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> step = gs.with_gradient(np.sign, lambda dy, y, x: dy, surrogate="through")
    >>> found = gs.survives(step, np.array([0.5, -2.0]), only="grad")
    >>> print(gs.survival_table({"ours": found}).markdown())
    | transformation | ours |
    | --- | --- |
    | grad | ✓ honoured |
    """
    if isinstance(survivals, Mapping):
        columns = [(str(label), survival) for label, survival in survivals.items()]
    else:
        columns = [(getattr(s, "operation", ""), s) for s in survivals]
    for _, survival in columns:
        if not isinstance(survival, Survival):
            raise GradsmithError(
                f"survival_table() wants results of gs.survives, not {survival!r}"
            )
    return SurvivalTable(tuple(columns))
