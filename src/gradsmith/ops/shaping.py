"""Operations that change nothing but the gradient which comes back through them."""

from __future__ import annotations

from typing import Any

from .. import numpy as gnp
from ..core.transforms import vjp
from ..operations.define import operation
from ._arguments import takes
from ._inputs import fitted, is_number, like, require_positive, wide, wrong
from ._random import normal, require_seed
from .corners import direction, divide, length


@takes("x", takes_complex=True)
@operation(surrogate="the gradient is reversed")
def reverse(x: Any, strength: float = 1.0) -> Any:
    """x unchanged; its gradient is multiplied by -strength.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1.0, 2.0])
    >>> gs.ops.reverse(x)
    array([1., 2.])
    >>> gs.grad(lambda x: np.sum(gs.ops.reverse(x, strength=0.5)))(x)
    array([-0.5, -0.5])
    """
    return x


@reverse.vjp
def _(dy: Any, y: Any, x: Any, strength: float) -> Any:
    return {"x": fitted(-strength * dy, x), "strength": None}


@takes("x", takes_complex=True)
@operation(surrogate="the gradient is scaled")
def scale(x: Any, factor: float) -> Any:
    """x unchanged; its gradient is multiplied by `factor`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1.0, 2.0])
    >>> gs.ops.scale(x, 0.1)
    array([1., 2.])
    >>> gs.grad(lambda x: np.sum(gs.ops.scale(x, 0.1)))(x)
    array([0.1, 0.1])
    """
    return x


@scale.vjp
def _(dy: Any, y: Any, x: Any, factor: float) -> Any:
    return {"x": fitted(factor * dy, x), "factor": None}


@takes("x")
@operation(surrogate="the gradient is clipped", linear=False)
def clip_by_value(x: Any, low: float, high: float) -> Any:
    """x unchanged; its gradient is clipped to [low, high].

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1.0, 2.0])
    >>> gs.grad(lambda x: np.sum(gs.ops.clip_by_value(x, -1.0, 1.0) ** 3))(x)
    array([1., 1.])

    Raises
    ------
    GradsmithError
        If low > high.
    """
    if is_number(low) and is_number(high) and not low <= high:
        raise wrong(
            "clip_by_value", "low", "low <= high", (low, high), "exchange the two"
        )
    return x


@clip_by_value.vjp
def _(dy: Any, y: Any, x: Any, low: float, high: float) -> Any:
    return {"x": fitted(gnp.clip(dy, low, high), x), "low": None, "high": None}


@takes("x")
@operation(surrogate="the gradient is clipped by its norm", linear=False)
def clip_by_norm(x: Any, max_norm: float, axis: Any = None) -> Any:
    """x unchanged; its gradient is scaled down to a norm of at most `max_norm`.

    The norm is over all elements, or along axes.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([3.0, 4.0])
    >>> gs.grad(lambda x: np.sum(gs.ops.clip_by_norm(x, 1.0) ** 2))(x)
    array([0.6, 0.8])

    Raises
    ------
    GradsmithError
        If max_norm is not above 0.
    """
    require_positive("clip_by_norm", max_norm=max_norm)
    return x


@clip_by_norm.vjp
def _(dy: Any, y: Any, x: Any, max_norm: float, axis: Any) -> Any:
    return {"x": _shortened(dy, max_norm, axis), "max_norm": None}


@operation
def _shortened(dy: Any, max_norm: float, axis: Any) -> Any:
    """dy with a norm of at most `max_norm`: a kernel, also where a compiler has dy."""
    return _within(dy, max_norm, axis)


@_shortened.vjp
def _(ds: Any, s: Any, dy: Any, max_norm: float, axis: Any) -> Any:
    _, pull = vjp(lambda dy: _within(dy, max_norm, axis), dy)
    return {"dy": pull(ds)[0], "max_norm": None}


def _within(dy: Any, max_norm: Any, axis: Any) -> Any:
    dz = wide(dy)
    size, scale = length(dz, axis)  # its squares neither overflow nor vanish
    fits = size <= max_norm * scale
    along, of = direction(dz * scale, size, axis)
    shorter = along * divide(max_norm * gnp.ones_like(size), of)
    return like(gnp.where(fits, dz, shorter), dy)


@takes("x", takes_complex=True)
@operation(surrogate="NaN in the gradient becomes 0", linear=False)
def nan_to_zero(x: Any) -> Any:
    """x unchanged; its gradient is 0 where it would be NaN.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([0.0, 4.0])
    >>> with np.errstate(all="ignore"):
    ...     gs.grad(lambda x: np.sum(0 * np.sqrt(gs.ops.nan_to_zero(x))))(x)
    array([0., 0.])
    """
    return x


@nan_to_zero.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.where(gnp.isnan(dy), 0.0, dy)


@takes("x")
@operation(surrogate="noise is added to the gradient", linear=False)
def noise(x: Any, seed: Any, std: float = 1.0) -> Any:
    """x unchanged; normal noise is added to its gradient.

    The same seed gives the same noise in every framework. For new noise in each call of
    compiled code, pass the seed as an array of one integer, such as the step.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1.0, 2.0])
    >>> gs.grad(lambda x: np.sum(gs.ops.noise(x, seed=0, std=0.1)))(x).round(3)
    array([1.096, 0.973])

    Raises
    ------
    GradsmithError
        If the seed is not an integer.
    """
    require_seed("noise", seed)
    return x


@noise.vjp
def _(dy: Any, y: Any, x: Any, seed: Any, std: float) -> Any:
    return {"x": dy + like(std * normal(wide(dy), seed), dy), "std": None}


def _unchanged(dx: Any, y: Any, x: Any, *options: Any) -> Any:
    # Forward mode is of the value, which is x: a tangent is no gradient to be clipped.
    return dx[0] if isinstance(dx, tuple) else dx


for _op in (clip_by_value, clip_by_norm, nan_to_zero, noise):
    _op.jvp(_unchanged)
