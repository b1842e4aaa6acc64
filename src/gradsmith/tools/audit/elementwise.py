"""True derivatives of functions of corresponding elements, a row each.

A row is as in the engine's table: a function and its partial derivatives, whose
parameters say what they need. It has its value beside it, and its formulas are exact:
constants are balls, and no series ends. Domains and kinks are the engine's.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ...core.cotangent import unbroadcast
from ...core.rule import Elementwise, find_rule
from . import formulas as f
from .arb import arb, balls_of, each
from .balls import CALLS, Balls, made, times, value_of
from .state import state


def row(fn: Any, value: Any, *partials: Any) -> None:
    """Declare a function by its value on balls and its partial derivatives."""
    rule = Elementwise(fn, *partials)
    CALLS[fn] = _caller(rule, value)


def _caller(rule: Elementwise, value: Any) -> Any:
    def call(*args: Any) -> Balls:
        values = [value_of(x) for x in args]
        y = value(*values)
        if state.notes.careful:
            _look(rule.fn, values)
        pulls = [_pull(rule, i, values, y) for i in range(len(args))]
        return made(y, args, pulls)

    return call


def _pull(rule: Elementwise, i: int, values: Any, y: Any) -> Any:
    partial, shape = rule.partials[i], np.shape(values[i])

    def pull(dy: Any) -> Any:
        if partial is None:
            return None
        if not callable(partial):
            return unbroadcast(dy if partial == 1 else balls_of(dy * partial), shape)
        p = partial(*[y if j < 0 else values[j] for j in rule.wants[i]])
        if state.notes.careful:
            p = _at_kinks(rule.fn, values[0], p)
        return unbroadcast(times(dy, p), shape)

    return pull


def _look(fn: Any, values: Any) -> None:
    """Note where a function is outside of its domain, or at a pole."""
    if fn in _DENOMINATORS:
        state.notes.outside.append(np.equal(values[-1], 0))
    if fn in POLES:
        state.notes.outside.append(POLES[fn](values[0]))
    if fn in (np.power, np.float_power):
        broken = ~np.asarray(_is_integer(values[1]), bool)
        state.notes.outside.append(np.less(values[0], 0) & broken)
    facts = find_rule(fn)
    if facts is None:
        return
    low, high = facts.domain
    for end, beyond in ((low, np.less), (high, np.greater)):
        if abs(end) < inf:
            state.notes.outside.append(beyond(values[0], arb(end)))
            at_end = np.equal(values[0], arb(end))
            state.notes.kinks.append(at_end)  # the value may be infinite, or its slope


_DENOMINATORS = (np.true_divide, np.reciprocal)
_is_integer = each(arb.is_integer)
POLES: dict[Any, Any] = {}  # where a function has poles


def _at_kinks(fn: Any, x: Any, p: Any) -> Any:
    """The partial, which is anything where a slope is infinite and another declared."""
    facts = find_rule(fn)
    ends = () if facts is None else (*facts.domain, *facts.kinks)
    if fn in (np.absolute, np.fabs):
        return p  # finite on both sides
    for end in ends:
        if abs(end) < inf:
            at = np.asarray(np.equal(x, arb(end)), bool)
            if at.any():
                state.notes.kinks.append(at)
                p = np.where(at, arb(0, "inf"), p)
    return p


def _identity(x: Any) -> Any:
    return x


row(np.add, np.add, 1, 1)
row(np.subtract, np.subtract, 1, -1)
row(np.negative, np.negative, -1)
row(np.positive, _identity, 1)
row(np.multiply, np.multiply, lambda x2: x2, lambda x1: x1)
row(np.true_divide, np.true_divide, lambda x2: 1 / x2, lambda y, x2: -y / x2)
row(np.reciprocal, lambda x: 1 / x, lambda y: -y * y)
row(np.square, lambda x: x * x, lambda x: 2 * x)
_power = each(f.power, 2)
_log = each(arb.log)
for _fn in (np.power, np.float_power):
    row(
        _fn,
        _power,
        lambda x1, x2: x2 * _power(x1, x2 - 1),
        lambda y, x1: y * _log(x1),
    )

# Exponentials and logarithms

_exp, _sqrt = each(f.exp), each(arb.sqrt)
row(np.exp, _exp, lambda y: y)
row(np.exp2, each(f.exp2), lambda y: y * arb.const_log2())
row(np.expm1, each(arb.expm1), lambda x: _exp(x))
row(np.log, _log, lambda x: 1 / x)
row(np.log2, each(f.log2), lambda x: 1 / (x * arb.const_log2()))
row(np.log10, each(f.log10), lambda x: 1 / (x * arb.const_log10()))
row(np.log1p, each(arb.log1p), lambda x: 1 / (1 + x))
_expit = each(f.expit)
row(
    np.logaddexp,
    each(f.logaddexp, 2),
    lambda x1, x2: _expit(x1 - x2),
    lambda x1, x2: _expit(x2 - x1),
)
row(np.sqrt, _sqrt, lambda y: 0.5 / y)
row(np.cbrt, each(f.cbrt), lambda y: 1 / (3 * (y * y)))

# Trigonometry

_sin, _cos, _sech = each(arb.sin), each(arb.cos), each(arb.sech)
_sinh, _cosh = each(arb.sinh), each(arb.cosh)
row(np.sin, _sin, lambda x: _cos(x))
row(np.cos, _cos, lambda x: -_sin(x))
row(np.tan, each(arb.tan), lambda y: 1 + y * y)
row(np.arcsin, each(arb.asin), lambda x: 1 / _sqrt((1 - x) * (1 + x)))
row(np.arccos, each(arb.acos), lambda x: -1 / _sqrt((1 - x) * (1 + x)))
row(np.arctan, each(arb.atan), lambda x: 1 / (1 + x * x))
row(
    np.arctan2,
    each(arb.atan2, 2),
    lambda x1, x2: x2 / (x1 * x1 + x2 * x2),
    lambda x1, x2: -x1 / (x1 * x1 + x2 * x2),
)
_sinc_slope = each(f.sinc_slope)
row(np.sinc, each(arb.sinc_pi), lambda x: _sinc_slope(x))
for _fn in (np.deg2rad, np.radians):
    row(_fn, lambda x: x * arb.pi() / 180, lambda x: arb.pi() / 180)
for _fn in (np.rad2deg, np.degrees):
    row(_fn, lambda x: x * 180 / arb.pi(), lambda x: 180 / arb.pi())

# Hyperbolic functions


def _sech2(x: Any) -> Any:
    y = _sech(x)
    return y * y


row(np.sinh, _sinh, lambda x: _cosh(x))
row(np.cosh, _cosh, lambda x: _sinh(x))
row(np.tanh, each(arb.tanh), lambda x: _sech2(x))
row(np.arcsinh, each(arb.asinh), lambda x: 1 / _sqrt(1 + x * x))
row(np.arccosh, each(arb.acosh), lambda x: 1 / _sqrt((x - 1) * (x + 1)))
row(np.arctanh, each(arb.atanh), lambda x: 1 / ((1 - x) * (1 + x)))

# Sizes and signs. The slope of a size at 0 is that of the side.

_sign = each(f.sign)


def _size(x: Any) -> Any:
    state.notes.ties.append(np.equal(x, 0))
    return np.absolute(x)


for _fn in (np.absolute, np.fabs):
    row(_fn, _size, lambda x: _sign(x))
row(np.sign, each(arb.sgn), None)
row(np.floor, each(arb.floor), None)
row(np.ceil, each(arb.ceil), None)
row(np.hypot, each(f.hypot, 2), lambda y, x1: x1 / y, lambda y, x2: x2 / y)
