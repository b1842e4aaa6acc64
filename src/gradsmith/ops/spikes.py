"""Spikes of a membrane: 1 from a threshold on, with a smooth slope in its place."""

from __future__ import annotations

from math import pi
from typing import Any

from .. import numpy as gnp
from ..operations.define import operation
from ._arguments import takes
from ._inputs import like, require_positive, wide


def _step(x: Any, threshold: Any) -> Any:
    # Not by isnan, which Inductor takes of one element at a time: 3.8 of the time
    return gnp.where(x != x, x, gnp.astype(x >= threshold, x.dtype))


@takes("x")
@operation(surrogate="the slope of a fast sigmoid in place of the step's")
def spike_fast_sigmoid(x: Any, threshold: float = 1.0, slope: float = 25.0) -> Any:
    """1 where x >= threshold, else 0; its slope 1 / (1 + slope |x - threshold|)^2.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([0.9, 1.0, 2.0])
    >>> gs.ops.spike_fast_sigmoid(x)
    array([0., 1., 1.])
    >>> gs.grad(lambda x: np.sum(gs.ops.spike_fast_sigmoid(x)))(x).round(3)
    array([0.082, 1.   , 0.001])

    Raises
    ------
    GradsmithError
        If the slope is not above 0.
    """
    require_positive("spike_fast_sigmoid", slope=slope)
    return _step(x, threshold)


@spike_fast_sigmoid.vjp
def _(dy: Any, y: Any, x: Any, threshold: float, slope: float) -> Any:
    s = 1 / (1 + slope * gnp.abs(wide(x) - threshold))
    return {"x": dy * like(s * s, x)}


@takes("x")
@operation(surrogate="the slope of an arctan in place of the step's")
def spike_arctan(x: Any, threshold: float = 1.0, slope: float = 2.0) -> Any:
    """1 where x >= threshold, else 0, with the slope of an arctan.

    It is slope / 2 / (1 + (pi / 2 slope (x - threshold))^2).

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([0.9, 1.0, 2.0])
    >>> gs.ops.spike_arctan(x)
    array([0., 1., 1.])
    >>> gs.grad(lambda x: np.sum(gs.ops.spike_arctan(x)))(x).round(3)
    array([0.91 , 1.   , 0.092])

    Raises
    ------
    GradsmithError
        If the slope is not above 0.
    """
    require_positive("spike_arctan", slope=slope)
    return _step(x, threshold)


@spike_arctan.vjp
def _(dy: Any, y: Any, x: Any, threshold: float, slope: float) -> Any:
    u = (wide(x) - threshold) * (pi / 2 * slope)
    return {"x": dy * like(slope / 2 / (1 + u * u), x)}
