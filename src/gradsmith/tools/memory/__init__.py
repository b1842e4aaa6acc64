"""gs.memory: what a gradient keeps alive between the passes, and on whose behalf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.arrays import FRAMEWORKS
from ...core.errors import GradsmithError, type_of
from ...core.reach import framework_reached
from ..checkpoint import checkpoint
from .model import MemoryReport, gathered


def memory(fn: Callable[..., Any], *inputs: Any, **keywords: Any) -> MemoryReport:
    """Show what the gradient of `fn(*inputs, **keywords)` keeps alive, line by line.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.memory(lambda x: np.sum(np.exp(np.sin(x))), np.zeros(1000))
    >>> [(row.operation, row.nbytes) for row in report.rows]
    [('np.exp', 8000)]
    >>> report.checkpointed
    0

    The function runs once, and once more checkpointed as a whole, for comparison.
    Generators and what it assigns (BatchNorm's statistics) are restored. Arguments and
    variables are alive anyway, and don't count. Print the report, or `report.show()`
    it; `report.svg()` and `report.plot()` are plots.

    Raises
    ------
    GradsmithError
        If it is given the value of a function instead of the function.
    """
    if not callable(fn):
        raise GradsmithError(
            f"gs.memory was given {type_of(fn)}\n"
            "  expected: a function and its inputs\n"
            "  what to do: gs.memory(fn, x), not gs.memory(fn(x))"
        )
    framework = FRAMEWORKS[framework_reached(fn, inputs, keywords)]
    unchanged, part = framework.recompute.unchanged, framework.residuals
    with unchanged(fn, inputs, keywords):
        kept = part.residuals(fn, inputs, keywords)
    with unchanged(fn, inputs, keywords):
        again = part.residuals(checkpoint(fn), inputs, keywords)
    name = getattr(fn, "__name__", type(fn).__name__)
    checkpointed = sum(each.nbytes for each in again)
    rows = gathered(kept)
    return MemoryReport(name, framework.name, rows, checkpointed, part.NOTES)
