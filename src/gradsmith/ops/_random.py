"""Random numbers that are the same in every framework: hashes of seed and position.

No state, no generator: whoever gives the seed again gets the numbers again, also under
a compiler, in a checkpoint and in another framework.
"""

from __future__ import annotations

from math import pi
from typing import Any

from .. import numpy as gnp
from .._arrays import framework_of
from ._inputs import kind, wrong


def require_seed(op: str, seed: Any) -> None:
    name = kind(seed)
    if name is None:
        whole, got = type(seed) is int, repr(seed)
    else:
        shape = tuple(seed.shape)
        whole, got = "int" in name and shape == (), f"{name} of shape {shape}"
    if not whole:
        expected = "a whole number, or an array of one (shape ())"
        raise wrong(op, "seed", expected, got, "give an int, or the step as an array")


def uniform(like: Any, seed: Any, stream: int = 0) -> Any:
    """Numbers between 0 and 1, excluding both, in the shape of an array; float32."""
    n = gnp.size(like)
    place = gnp.arange(n, dtype="int32", like=like)
    h = _mixed(place * _signed(0x9E3779B1) + _signed(0x7F4A7C15 * (stream + 1)))
    h = _mixed(gnp.bitwise_xor(h, _word(seed, 0)))
    h = _mixed(gnp.add(h, _word(seed, 32)))
    share = gnp.astype(gnp.bitwise_and(gnp.right_shift(h, 9), 0x7FFFFF), "float32")
    return gnp.reshape((share + 0.5) * 2.0**-23, gnp.shape(like))


def normal(like: Any, seed: Any) -> Any:
    """Normal numbers in the shape of an array, by Box and Muller; float32."""
    size = gnp.sqrt(-2 * gnp.log(uniform(like, seed, 0)))
    return size * gnp.cos(2 * pi * uniform(like, seed, 1))


def gumbel(like: Any, seed: Any) -> Any:
    """Gumbel numbers in the shape of an array; float32."""
    return -gnp.log(-gnp.log(uniform(like, seed)))


def _word(seed: Any, shift: int) -> Any:
    """32 bits of the seed; an array has no more."""
    if framework_of(seed) is None:
        return _signed(seed >> shift)
    return gnp.astype(seed, "int32") if shift == 0 else 0


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
