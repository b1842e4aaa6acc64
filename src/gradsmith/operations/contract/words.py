"""Words that stand in place of a gradient."""

from __future__ import annotations

from typing import Any

from ...core.errors import GradientContractError


class NotDifferentiable:
    """In place of a gradient: there is none, and asking for it is an error."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __repr__(self) -> str:
        return f"gs.not_differentiable({self.why!r})"


def not_differentiable(why: str) -> NotDifferentiable:
    """Return this from a rule for an argument whose gradient must not be requested.

    >>> import gradsmith as gs
    >>> gs.not_differentiable("the labels are data")
    gs.not_differentiable('the labels are data')

    Raises
    ------
    GradientContractError
        If the reason is missing.
    """
    if not isinstance(why, str) or not why.strip():
        raise GradientContractError(
            "gs.not_differentiable needs the reason, in words: "
            "gs.not_differentiable('the labels are data')"
        )
    return NotDifferentiable(why)


class _Zero:
    """In place of a gradient: it is zero."""

    def __repr__(self) -> str:
        return "gs.zero"


zero = _Zero()
"""Return this from a rule for a gradient, or a tangent, that is zero.

>>> import numpy as np
>>> import gradsmith as gs
>>> @gs.custom_gradient
... def first(x, other):
...     return x + 0 * other, lambda dy: (dy, gs.zero)
>>> gs.grad(first, argnums=1)(1.0, np.array(2.0))
np.float64(0.0)
"""


def is_word(gradient: Any) -> bool:
    """Whether this stands in place of a gradient, be it of an array or of a tree."""
    return (
        gradient is None or gradient is zero or isinstance(gradient, NotDifferentiable)
    )
