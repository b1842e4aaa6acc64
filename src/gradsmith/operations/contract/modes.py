"""One mode of differentiation found from the rule of the other, or refused."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ...core.errors import NotDifferentiableError, UnsupportedOperationError, annotate


def transposing(
    operation: Any, vjp: Any, *, mode: str, missing: str
) -> AbstractContextManager[None]:
    """The context in which a mode is found from the other one's rule.

    `vjp` is the operation's gradient, in whichever form it came, if it has one.
    """
    name = operation.name
    if vjp is None and operation.jvp_rule is None:
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
