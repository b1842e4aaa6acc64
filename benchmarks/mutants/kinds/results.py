"""The right gradient, then changed: sign, factor, noise, precision, nothing at all."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from ..kind import Kind, each, of_all, of_first
from ..operation import Operation, Rule

PLACE = 5  # the one element that is wrong
TINY = 1e-6
LOWER = {"float64": "float32", "float32": "float16"}


def lower(x: Any) -> str:
    """The next dtype below; the shortest ones stay what they are."""
    name = gnp.finfo(x).dtype
    return LOWER.get(name, name)


def negative(op: Operation) -> Rule:
    return of_all(op, lambda dx: -dx)


def one_negative(op: Operation) -> Rule:
    def change(dx: Any, x: Any) -> Any:
        shape = tuple(gnp.shape(x))
        here = np.zeros(shape, bool)
        here.flat[PLACE % max(here.size, 1) if here.size else slice(0)] = True
        return gnp.where(gnp.asarray(here, like=dx), -dx, dx)

    return of_first(op, change)


def factor(c: float) -> Any:
    return lambda op: of_all(op, lambda dx: c * dx)


def tiny(op: Operation) -> Rule:
    """For the function times TINY, whose outputs the rule doesn't know."""

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = op.rule(dy, op.forward(*xs), *xs)
        return tuple(None if dx is None else -TINY * dx for dx in dxs)

    return rule


def nothing(op: Operation) -> Rule:
    last = op.floats[-1]

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = op.rule(dy, y, *xs)
        return (*dxs[:last], None, *dxs[last + 1 :])

    return rule


def rolled(op: Operation) -> Rule | None:
    if not op.args[op.floats[0]].shape:
        return None
    return of_first(op, lambda dx, x: gnp.roll(dx, 1, axis=-1))


def noisy(op: Operation) -> Rule:
    rng = np.random.default_rng(0)  # goes on from call to call

    def change(dx: Any) -> Any:
        error = 1 + 1e-3 * rng.standard_normal(tuple(gnp.shape(dx)))
        return dx * gnp.astype(gnp.asarray(error, like=dx), dx.dtype)

    return of_all(op, change)


def rounded(op: Operation) -> Rule:
    """The backward pass in half the bits, its result in all of them."""

    def short(x: Any) -> Any:
        if not is_float(x):
            return x
        return gnp.astype(gnp.astype(x, lower(x)), x.dtype)

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return op.rule(each(short, dy), each(short, y), *map(short, xs))

    return rule


def is_float(x: Any) -> bool:
    return "float" in str(x.dtype)


def short_result(op: Operation) -> Rule:
    return of_all(op, lambda dx: gnp.astype(dx, lower(dx)))


KINDS = (
    Kind("sign", negative, diagnosis=("sign",)),
    Kind("sign of one element", one_negative, diagnosis=("sign",)),
    Kind("factor 2", factor(2), diagnosis=("factor",)),
    Kind("factor 0.5", factor(0.5), diagnosis=("factor",)),
    Kind("factor 1.001", factor(1.001), diagnosis=("factor",)),
    Kind("tiny and of wrong sign", tiny, diagnosis=("sign",), scale=TINY),
    Kind("none", nothing),
    Kind("off by one", rolled),
    Kind("noise", noisy),
    Kind("low precision", rounded, diagnosis=("precision",)),
    Kind("low dtype returned", short_result),
)
