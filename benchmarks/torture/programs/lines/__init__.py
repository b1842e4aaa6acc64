"""The kinds of lines: each writes one, given the values so far.

A kind is a function of the `Writer` that returns an expression, or statements that
assign `OUT`. `KINDS` has them with their weights.
"""

from . import (
    choosing,
    complexes,
    control,
    elementwise,
    linear,
    lists,
    reductions,
    shaping,
    tools,
    transforms,
)
from ._table import KINDS, NumpyOnly

__all__ = ["KINDS", "NumpyOnly"]
_ = (choosing, complexes, control, elementwise, linear, lists, reductions)
_ += (shaping, tools, transforms)
