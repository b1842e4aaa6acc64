"""Random numbers that are the same in every framework: hashes of seed and position.

No state, no generator: whoever gives the seed again gets the numbers again, also under
a compiler, in a checkpoint and in another framework.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as gnp
from ..core.tensor import unwrap
from ..program.kernels.mode import in_kernel
from ._inputs import is_whole, kind, polynomial, shape_of, wrong


def require_seed(op: str, seed: Any) -> None:
    name = kind(seed)
    if name is None:
        whole, got = is_whole(seed), repr(seed)
    else:
        shape = shape_of(seed)
        whole, got = "int" in name and shape == (), f"{name} of shape {shape}"
    if not whole:
        expected = "a whole number, or an array of one (shape ())"
        raise wrong(op, "seed", expected, got, "give an int, or the step as an array")


def uniform(like: Any, seed: Any) -> Any:
    """Numbers between 0 and 1, excluding both, of an array's shape and dtype."""
    place = _places(like)
    h = _mixed(gnp.add(place, _signed(0x9E3779B1)))
    h = _mixed(gnp.add(h, _seed_word(seed)))
    share = gnp.astype(gnp.bitwise_and(gnp.right_shift(h, 9), 0x7FFFFF), like.dtype)
    return gnp.reshape((share + 0.5) * 2.0**-23, gnp.shape(like))


def _places(like: Any) -> Any:
    """0, 1, 2... for the elements of an array, as int32."""
    n = gnp.size(like)
    if in_kernel():  # made there, and not captured
        return np.arange(n, dtype=np.int32, like=unwrap(like))
    return gnp.arange(n, dtype="int32", like=like)


def normal(like: Any, seed: Any) -> Any:
    """Normal numbers of an array's shape and dtype, 32 bits or more.

    The quantile of u over x = 2 u - 1 is smooth in the root of -log(1 - x^2): this
    polynomial is off by 3e-5 of it, and costs half of what Box and Muller's way does.
    """
    x = 2 * uniform(like, seed) - 1
    v = gnp.sqrt(3 - gnp.log((1 - x) * (1 + x))) - _MIDDLE
    return x * polynomial(v, _QUANTILE)


_MIDDLE = 3**0.5 + 1.5
_QUANTILE = (
    3.6235047019532707,
    1.664835094017213,
    -0.06751557595948048,
    0.005086578102532492,
    0.028497110517434997,
    -0.030891862902508546,
    0.0023383955378887085,
    0.0064004845618524904,
)


def gumbel(like: Any, seed: Any) -> Any:
    """Gumbel numbers of an array's shape and dtype, 32 bits or more."""
    return -gnp.log(-gnp.log(uniform(like, seed)))


def _seed_word(seed: Any) -> Any:
    """32 bits of the seed; a number and an array of it give the same."""
    name = kind(seed)
    if name is None:
        return _signed(int(seed) + _signed(int(seed) >> 32) * _UPPER)
    low = gnp.astype(seed, "int32")
    if "64" in name:
        upper = gnp.astype(gnp.right_shift(seed, 32), "int32")
    elif name.startswith("uint"):
        return low
    else:
        upper = gnp.right_shift(low, 31)
    return gnp.add(low, gnp.multiply(upper, _UPPER))


_UPPER = 0x2C1B3C6D


def _signed(word: int) -> int:
    """The int32 of the same bits."""
    return (word + 2**31) % 2**32 - 2**31


def _mixed(h: Any) -> Any:
    """Each bit of the result depends on all of h; products of int32 wrap."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = gnp.multiply(_folded(h, shift), _signed(factor))
    return _folded(h, 16)


def _folded(h: Any, shift: int) -> Any:
    # A shift of a negative number brings ones from the left: they are masked out.
    low = gnp.bitwise_and(gnp.right_shift(h, shift), 2 ** (32 - shift) - 1)
    return gnp.bitwise_xor(h, low)
