"""Steps with a gradient: the value is rounded, and the gradient passes through."""

from __future__ import annotations

from typing import Any

from .. import numpy as gnp
from ..operations.define import custom_gradient, operation
from ._arguments import takes
from ._inputs import (
    classes_along,
    fitted,
    is_number,
    is_whole,
    like,
    require_axis,
    require_positive,
    wide,
    wrong,
)
from ._random import gumbel, require_seed
from .exponentials import softmax, through_shares

_MOST_BITS = 16


@takes("x")
@operation(surrogate="straight-through rounding")
def round(x: Any) -> Any:
    """The nearest integer; the gradient passes through.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1.2, 0.4, 2.6])
    >>> gs.ops.round(x)
    array([-1.,  0.,  3.])
    >>> gs.grad(lambda x: np.sum(gs.ops.round(x)))(x)
    array([1., 1., 1.])
    """
    return gnp.round(x)


@takes("x")
@operation(surrogate="straight-through floor")
def floor(x: Any) -> Any:
    """The largest integer that is not above x; the gradient passes through.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1.2, 0.4, 2.6])
    >>> gs.ops.floor(x)
    array([-2.,  0.,  2.])
    >>> gs.grad(lambda x: np.sum(gs.ops.floor(x)))(x)
    array([1., 1., 1.])
    """
    return gnp.floor(x)


@takes("x")
@operation(surrogate="straight-through clamp")
def clamp(x: Any, low: float, high: float) -> Any:
    """x clipped to [low, high]; the gradient passes through, outside the bounds too.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1.2, 0.4, 2.6])
    >>> gs.ops.clamp(x, -1.0, 1.0)
    array([-1. ,  0.4,  1. ])
    >>> gs.grad(lambda x: np.sum(gs.ops.clamp(x, -1.0, 1.0)))(x)
    array([1., 1., 1.])

    Raises
    ------
    GradsmithError
        If the bounds are not numbers with low < high.
    """
    _require_range("clamp", low, high)
    return gnp.clip(x, low, high)


def _through(dy: Any, y: Any, x: Any, *options: Any) -> Any:
    return {"x": dy}


for _op in (round, floor, clamp):
    _op.vjp(_through)


@takes("x")
@operation(surrogate="the gradient of a hard tanh in place of the sign's")
def sign(x: Any) -> Any:
    """-1, 0 or 1; the gradient passes through where |x| <= 1.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1.2, 0.4, 2.6])
    >>> gs.ops.sign(x)
    array([-1.,  1.,  1.])
    >>> gs.grad(lambda x: np.sum(gs.ops.sign(x)))(x)
    array([0., 1., 0.])
    """
    return gnp.sign(x)


@sign.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return gnp.where(gnp.abs(x) <= 1, dy, 0.0)


@takes("x")
@operation(surrogate="straight-through quantization")
def quantize(x: Any, bits: int, low: float = -1.0, high: float = 1.0) -> Any:
    """The nearest of 2**bits even levels from low to high.

    The gradient passes through between low and high, and is 0 outside.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([-1.2, 0.4, 2.6])
    >>> gs.ops.quantize(x, bits=2)
    array([-1.        ,  0.33333333,  1.        ])
    >>> gs.grad(lambda x: np.sum(gs.ops.quantize(x, bits=2)))(x)
    array([0., 1., 0.])

    Raises
    ------
    GradsmithError
        If the bounds are not numbers with low < high, or bits is not an integer from
        1 to 16.
    """
    _require_range("quantize", low, high)
    if not is_whole(bits) or not 1 <= bits <= _MOST_BITS:
        expected = f"a whole number from 1 to {_MOST_BITS}"
        raise wrong("quantize", "bits", expected, repr(bits), "give another number")
    z = wide(x)
    step = (high - low) / (2 ** int(bits) - 1)
    levels = gnp.round((gnp.clip(z, low, high) - low) / step)
    return gnp.clip(like(levels * step + low, x), low, high)


@quantize.vjp
def _(dy: Any, y: Any, x: Any, bits: int, low: float, high: float) -> Any:
    return {"x": gnp.where((x >= low) & (x <= high), dy, 0.0)}


def _require_range(op: str, low: Any, high: Any) -> None:
    if not (is_number(low) and is_number(high) and low < high):
        got = f"low={low!r}, high={high!r}"
        raise wrong(op, "range", "numbers with low < high", got, "give other bounds")


@takes("x")
@operation(surrogate="the gradient of softmax in place of the argmax's")
def one_hot_argmax(x: Any, axis: int = -1, temperature: float = 1.0) -> Any:
    """1 at the maximum (the first of several), 0 elsewhere.

    The gradient is that of softmax(x / temperature).

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1.0, 3.0, 2.0])
    >>> gs.ops.one_hot_argmax(x)
    array([0., 1., 0.])
    >>> gs.grad(lambda x: gs.ops.one_hot_argmax(x)[1])(x).round(3)
    array([-0.06 ,  0.223, -0.163])

    Raises
    ------
    GradsmithError
        If x has no such axis, or the temperature is not above 0.
    """
    require_axis("one_hot_argmax", x, axis)
    require_positive("one_hot_argmax", temperature=temperature)
    return _one_hot(x, axis)


@one_hot_argmax.vjp
def _(dy: Any, y: Any, x: Any, axis: int, temperature: float) -> Any:
    u = wide(x) / temperature
    return _through_softmax(wide(dy), softmax(u, axis), u, x, axis, temperature)


def _one_hot(x: Any, axis: int) -> Any:
    place = gnp.expand_dims(gnp.argmax(x, axis=axis), axis)
    return gnp.astype(gnp.equal(classes_along(x, axis), place), x.dtype)


@takes("x")
@custom_gradient(surrogate="of a hard choice, the gradient of its probabilities")
def gumbel_softmax(
    x: Any, seed: Any, temperature: float = 1.0, hard: bool = False, axis: int = -1
) -> Any:
    """A random choice by the logits x, as probabilities that can be differentiated.

    With `hard=True` the value is 1 at the choice and 0 elsewhere, and the gradient that
    of the probabilities. The same seed makes the same choice in every framework.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.log(np.array([0.2, 0.5, 0.3]))
    >>> gs.ops.gumbel_softmax(x, seed=0, hard=True)
    array([1., 0., 0.])
    >>> gs.grad(lambda x: gs.ops.gumbel_softmax(x, seed=0)[0])(x).round(3)
    array([ 0.25 , -0.127, -0.123])

    Raises
    ------
    GradsmithError
        If x has no such axis, the temperature is not above 0, or the seed is not an
        integer.
    """
    require_axis("gumbel_softmax", x, axis)
    require_positive("gumbel_softmax", temperature=temperature)
    require_seed("gumbel_softmax", seed)
    z = wide(x)
    u = (z + gumbel(gnp.stop_gradient(z), seed)) / temperature
    p = softmax(u, axis)

    def grad(dy: Any) -> Any:
        return _through_softmax(wide(dy), p, u, x, axis, temperature)

    return like(_one_hot(p, axis) if hard else p, x), grad


def _through_softmax(
    dy: Any, p: Any, u: Any, x: Any, axis: int, temperature: Any
) -> dict[str, Any]:
    """The gradients of p = softmax(u), where u is x and more over the temperature."""
    dx = through_shares(dy, p, axis) / temperature
    if is_number(temperature):
        return {"x": fitted(dx, x)}
    return {"x": fitted(dx, x), "temperature": fitted(-dx * u, temperature)}
