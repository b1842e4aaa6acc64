"""Words that the adapters share: of a mode that is missing, and of tracing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .._errors import NotDifferentiableError, UnsupportedOperationError, annotate


def transposing(
    operation: Any, has_vjp: bool, *, mode: str, missing: str
) -> AbstractContextManager[None]:
    """The context in which a mode is found from the other one's rule."""
    name = operation.name
    if not has_vjp and operation.jvp_rule is None:
        raise UnsupportedOperationError(
            f"operation {name!r} has no gradient yet: give it one with @{name}.vjp or "
            f"@{name}.jvp"
        )
    if not operation.linear:
        raise NotDifferentiableError(
            f"operation {name!r} has no {mode} mode: its rule is declared not to be "
            "linear (linear=False), so it has no transpose. Give it a rule of its "
            f"own with @{name}.{missing}."
        )
    return annotate(
        f"while the {mode} mode of operation {name!r} was found by transposing its "
        f"rule; @{name}.{missing} would give it directly"
    )


def note_values_wanted(error: Exception, operation: str) -> None:
    """Say on the user's exception that values were asked for while there were none."""
    error.add_note(
        f"operation {operation!r} is being traced, and arrays have no values yet: "
        "choose with gnp.where instead of `if`, call gradsmith.numpy (gnp) instead of "
        "np, or make it a gs.python_op, which is given NumPy arrays"
    )
