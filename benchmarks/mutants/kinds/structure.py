"""Axes and arguments in the wrong place, broadcasts undone in the wrong way."""

from __future__ import annotations

from math import prod
from typing import Any

import gradsmith.numpy as gnp

from ..inputs import SQUARE
from ..kind import Kind, each, of_first
from ..operation import Operation, Rule

SQUARES = tuple(SQUARE.items())


def transposed(op: Operation) -> Rule | None:
    if len(op.args[op.floats[0]].shape) != 2:
        return None
    return of_first(op, lambda dx, x: gnp.matrix_transpose(dx))


def swapped(op: Operation) -> Rule | None:
    pair = _same_shaped(op)
    if pair is None:
        return None
    i, j = pair

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = list(op.rule(dy, y, *xs))
        dxs[i], dxs[j] = dxs[j], dxs[i]
        return tuple(dxs)

    return rule


def _same_shaped(op: Operation) -> tuple[int, int] | None:
    """The first two arguments that have one shape where all lengths are equal."""
    ranks = {i: len(op.args[i].shape) for i in op.floats}
    if op.unreduced is not None:
        return 0, 1  # given in one shape
    for i in ranks:
        for j in ranks:
            digits = (op.args[i].shape + op.args[j].shape).isalpha()
            if i < j and ranks[i] == ranks[j] and digits:
                return i, j
    return None


def unreduced(op: Operation) -> Rule | None:
    return op.unreduced


def averaged(op: Operation) -> Rule | None:
    if op.unreduced is None:
        return None
    partials = op.unreduced

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = partials(dy, y, *xs)
        return tuple(_mean_to(dx, x) for dx, x in zip(dxs, xs, strict=True))

    return rule


def _mean_to(dx: Any, x: Any) -> Any:
    shape = gnp.shape(x)
    count = prod(gnp.shape(dx)) / max(prod(shape), 1)
    return gnp.unbroadcast(dx, shape) / max(count, 1)


def detached(op: Operation) -> Rule:
    """Right in first order; the second has nothing of how the rule depends on x."""
    stop = gnp.stop_gradient

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return op.rule(dy, each(stop, y), *[stop(x) for x in xs])

    return rule


KINDS = (
    Kind("transposed", transposed, diagnosis=("transpos",), sizes=SQUARES),
    Kind("swapped", swapped, diagnosis=("swap",), sizes=SQUARES, same=True),
    Kind("broadcast not summed", unreduced, diagnosis=("broadcast",)),
    Kind("mean for sum", averaged, diagnosis=("mean",)),
    Kind("detached", detached, diagnosis=("detach", "second"), second_order=True),
)
