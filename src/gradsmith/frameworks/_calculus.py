"""What the parts `calculus` share with those who ask them."""

from __future__ import annotations

from typing import NamedTuple


class Traits(NamedTuple):
    """What a function is made of.

    One that `iterates` goes on until something has converged, or calls a program that
    may: its results are as exact as that. One that `rejects` draws random numbers until
    one is accepted, and the derivative of what was drawn is another than that of its
    distribution.
    """

    iterates: bool = False
    rejects: bool = False


PLAIN = Traits()


class Script(NamedTuple):
    """The lines of a script that differentiates a function `loss` of an array.

    `array` makes an array of NumPy's, `total` sums one; `gradient` are the lines that
    set `rule` to the gradient of `loss` by the NumPy array `{x}`.
    """

    imports: tuple[str, ...]
    array: str
    total: str
    gradient: tuple[str, ...]
