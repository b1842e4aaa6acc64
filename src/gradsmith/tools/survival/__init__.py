"""Where does the rule of an operation survive? The canary as a feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.arrays import FRAMEWORKS
from ...core.errors import GradsmithError
from ...core.hooks import unrecorded
from ...frameworks._transformations import Row
from ...operations.info import names_of
from .._inputs import framework_for, info_of, prepared
from .result import Fate, Outcome, Survival, SurvivalTable
from .run import outcomes
from .scalar import scalar_of

__all__ = [
    "Fate",
    "Outcome",
    "Survival",
    "SurvivalTable",
    "survival_table",
    "survives",
]


@unrecorded()
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

    The operation is one of Gradsmith's, or a framework's own: `tf.custom_gradient`,
    `jax.custom_vjp`, `jax.custom_jvp`, `jax.custom_gradient`,
    `torch.autograd.Function`, `torch.library.custom_op`, `mx.custom_function`. `inputs`
    and `keywords` are its arguments; numbers work in place of arrays.

    `framework` is `"numpy"` (the embedded engine), `"tensorflow"`, `"jax"`, `"torch"`
    or `"mlx"`, by default that of the operation or of the inputs; NumPy's arrays are
    converted. `only` and `skip` name the transformations to run, or not to run.

    Raises
    ------
    GradsmithError
        If a transformation that `only` or `skip` names is not known, or the
        framework is not known or not installed.
    """
    name = framework_for(op, (inputs, keywords), framework, caller="survives()")
    theirs = FRAMEWORKS[name]
    arrays, known = theirs.arrays, theirs.transformations.ROWS
    info = info_of(op, name)
    args, kwargs = prepared(
        (inputs, keywords), arrays.array, caller=f"survives({info.name})"
    )
    rows = _chosen(known, only, skip)
    if not names_of(info, args):
        rows = [row for row in rows if not row.keyword]
    scalar = scalar_of(arrays, info, args, kwargs)
    found = outcomes(info, scalar, rows, plain=known[0])
    return Survival(info.name, theirs.title, arrays.version, found, info.unaltered)


def _chosen(
    rows: Sequence[Row], only: str | Iterable[str] | None, skip: str | Iterable[str]
) -> list[Row]:
    """The rows that were asked for."""
    known = [row.name for row in rows]
    wanted = known if only is None else _names(only, known)
    unwanted = _names(skip, known)
    return [row for row in rows if row.name in wanted and row.name not in unwanted]


def _names(names: str | Iterable[str], known: Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if name not in known:
            raise GradsmithError(
                f"there is no transformation {name!r} here; there are "
                f"{', '.join(known)}"
            )
    return found


def survival_table(
    survivals: Mapping[str, Survival] | Iterable[Survival],
) -> SurvivalTable:
    """Put several results side by side; the keys of a dict are the column titles.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> step = gs.with_gradient(np.sign, lambda dy, y, x: dy, surrogate="through")
    >>> found = gs.survives(step, np.array([0.5, -2.0]), only="grad")
    >>> print(gs.survival_table({"ours": found}).markdown())
    | transformation | ours |
    | --- | --- |
    | grad | ✓ honoured |

    Raises
    ------
    GradsmithError
        If it is given anything but results of `gs.survives`.
    """
    if isinstance(survivals, Mapping):
        columns = [(str(label), survival) for label, survival in survivals.items()]
    else:
        columns = [(getattr(s, "operation", ""), s) for s in survivals]
    for _, survival in columns:
        if not isinstance(survival, Survival):
            raise GradsmithError(
                f"survival_table() needs results of gs.survives, not {survival!r}"
            )
    return SurvivalTable(tuple(columns))
