"""What a derivative is where there is no dependence."""

from __future__ import annotations

from .errors import GradsmithError


class UnconnectedGradients:
    """What a gradient is where the target does not depend on the source.

    >>> import gradsmith as gs
    >>> x, z = gs.Variable(1.0), gs.Variable(2.0)
    >>> with gs.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, z, unconnected_gradients=gs.UnconnectedGradients.ZERO)
    Tensor(0.)
    """

    NONE = "none"
    ZERO = "zero"


def wants_zero(unconnected_gradients: str) -> bool:
    """Whether zeros are asked for instead of `None`."""
    choices = (UnconnectedGradients.NONE, UnconnectedGradients.ZERO)
    if unconnected_gradients not in choices:
        raise GradsmithError(
            "unconnected_gradients must be 'none' or 'zero', not "
            f"{unconnected_gradients!r}"
        )
    return unconnected_gradients == UnconnectedGradients.ZERO
