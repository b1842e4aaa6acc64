"""The table of functions of corresponding elements, a row each, for balls and series.

A row is as in the engine's table: a function and its partial derivatives, whose
parameters say what they need. It has its value and its power series beside it, and its
formulas are exact: constants are balls, and no series ends. Partial derivatives are
formulas of arrays of balls, or of one series. Domains and kinks are the engine's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from math import inf
from operator import methodcaller
from typing import Any

import numpy as np

from ....core.cotangent import unbroadcast
from ....core.rule import Elementwise, find_rule
from . import formulas as f
from . import series_formulas as s
from .arb import arb, balls_of, each
from .balls import CALLS, Balls, made, state, times, value_of
from .series import SERIES, Series, enclosures, unknown
from .series import state as intervals
from .series import value_of as series_of
from .series_formulas import by_own_value, by_slope


def row(
    fn: Any,
    value: Callable[..., Any],
    *partials: Any,
    series: Any = None,
    outside: Callable[..., Any] | None = None,
) -> None:
    """Declare a function by its value on balls and its partial derivatives.

    `value` is a function of balls; a ufunc is one of arrays of them. `series` is the
    function on series: the name of a method, `by_slope` if it is made of the partial
    derivative, `by_own_value` if that is one of y, or None if there is none yet.
    `outside` tells where there is no value, as at poles.
    """
    n = len(partials)
    rule = Elementwise(fn, *partials)
    ufunc = value if isinstance(value, np.ufunc) else each(value, n)
    CALLS[fn] = _on_balls(rule, ufunc, outside)
    if series in (by_slope, by_own_value):
        series = series(value, partials[0])
    elif isinstance(series, str):
        series = methodcaller(series)
    if series is not None:
        SERIES[fn] = _on_series(fn, each(_or_unknown(series), n), outside)


def lifted(fn: Callable[..., Any]) -> Any:
    """A partial derivative by a formula of balls: see `row` for its parameters."""
    ufunc = each(fn, fn.__code__.co_argcount)
    return wraps(fn)(lambda *args: ufunc(*args))


def on_either(value: Callable[..., Any], series: Any) -> Any:
    """A function of an array of balls, or of one series."""
    ufunc = each(value)
    series = methodcaller(series) if isinstance(series, str) else series
    return lambda x: ufunc(x) if isinstance(x, (np.ndarray, arb)) else series(x)


def _on_balls(rule: Elementwise, value: Any, outside: Any) -> Any:
    def call(*args: Any) -> Balls:
        values = [value_of(x) for x in args]
        y = value(*values)
        if state.notes.careful:
            _note_domain(rule.fn, values, outside)
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


def _domain_of(fn: Any) -> tuple[float, float]:
    return getattr(find_rule(fn), "domain", (-inf, inf))


def _note_domain(fn: Any, values: Any, outside: Any) -> None:
    """Note where a function is outside of its domain, or at a pole."""
    if outside is not None:
        state.notes.outside.append(outside(*values))
    low, high = _domain_of(fn)
    for end, beyond in ((low, np.less), (high, np.greater)):
        if abs(end) < inf:
            state.notes.outside.append(beyond(values[0], arb(end)))
            at_end = np.equal(values[0], arb(end))
            state.notes.kinks.append(at_end)  # the value may be infinite, or its slope


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


def _or_unknown(series: Any) -> Any:
    def call(*args: Any) -> Any:
        try:
            return series(*args)
        except (ValueError, ZeroDivisionError, AttributeError, TypeError):
            return unknown()  # a division by an interval with 0, a Huge's own

    return call


def _on_series(fn: Any, series: Any, outside: Any) -> Any:
    low, high = _domain_of(fn)
    limited = abs(low) < inf or abs(high) < inf

    def call(*args: Any) -> Series:
        if limited:
            x = enclosures(args[0])
            intervals.outside |= np.asarray((x < arb(low)) | (x > arb(high)), bool)
        if outside is not None:
            gone = outside(*[enclosures(x) for x in args])
            intervals.outside |= np.asarray(gone, bool)
        return Series(series(*[series_of(x) for x in args]))

    return call


def _is_zero(x: Any) -> Any:
    return np.equal(x, 0)


_is_integer = each(arb.is_integer)
_exp = on_either(arb.exp, s.exp)
_log, _sqrt = each(arb.log), on_either(arb.sqrt, "sqrt")

row(np.add, np.add, 1, 1, series=operator.add)
row(np.subtract, np.subtract, 1, -1, series=operator.sub)
row(np.negative, np.negative, -1, series=operator.neg)
row(np.positive, lambda x: x, 1, series=lambda u: u)
row(np.multiply, np.multiply, lambda x2: x2, lambda x1: x1, series=operator.mul)
row(
    np.true_divide,
    np.true_divide,
    lambda x2: 1 / x2,
    lambda y, x2: -y / x2,
    series=operator.truediv,
    outside=lambda x1, x2: _is_zero(x2),
)
row(
    np.reciprocal,
    np.reciprocal,
    lambda y: -y * y,
    series=lambda u: 1 / u,
    outside=_is_zero,
)
row(np.square, np.square, lambda x: 2 * x, series=lambda u: u * u)
_power = each(f.power, 2)
for _fn in (np.power, np.float_power):
    row(
        _fn,
        f.power,
        lambda x1, x2: x2 * _power(x1, x2 - 1),
        lambda y, x1: y * _log(x1),
        series=s.power,
        outside=lambda x1, x2: np.less(x1, 0) & ~np.asarray(_is_integer(x2), bool),
    )

# Exponentials and logarithms

row(np.exp, arb.exp, lambda y: y, series=s.exp)
row(
    np.exp2,
    f.exp2,
    lambda y: y * arb.const_log2(),
    series=lambda u: s.exp(u * arb.const_log2()),
)
row(np.expm1, arb.expm1, lambda x: _exp(x), series=s.expm1)
row(np.log, arb.log, lambda x: 1 / x, series="log")
row(np.log2, f.log2, lambda x: 1 / (x * arb.const_log2()), series=f.log2)
row(np.log10, f.log10, lambda x: 1 / (x * arb.const_log10()), series=f.log10)
row(np.log1p, arb.log1p, lambda x: 1 / (1 + x), series=s.log1p)
_expit = each(f.expit)
row(
    np.logaddexp,
    f.logaddexp,
    lambda x1, x2: _expit(x1 - x2),
    lambda x1, x2: _expit(x2 - x1),
    series=s.logaddexp,
)


def _logaddexp2(x1: Any, x2: Any) -> Any:
    ln2 = arb.const_log2()
    return f.logaddexp(x1 * ln2, x2 * ln2) / ln2


row(
    np.logaddexp2,
    _logaddexp2,
    lambda x1, x2: _expit((x1 - x2) * arb.const_log2()),
    lambda x1, x2: _expit((x2 - x1) * arb.const_log2()),
)
row(np.sqrt, arb.sqrt, lambda y: 0.5 / y, series="sqrt")
row(np.cbrt, f.cbrt, lambda y: 1 / (3 * (y * y)), series=s.cbrt)
row(
    np.hypot,
    f.hypot,
    lambda y, x1: x1 / y,
    lambda y, x2: x2 / y,
    series=lambda u, v: (u * u + v * v).sqrt(),
)

# Trigonometry

_sin, _cos = each(arb.sin), each(arb.cos)
row(np.sin, arb.sin, _cos, series="sin")
row(np.cos, arb.cos, lambda x: -_sin(x), series="cos")
row(np.tan, arb.tan, lambda y: 1 + y * y, series="tan")
row(np.arcsin, arb.asin, lambda x: 1 / _sqrt((1 - x) * (1 + x)), series=by_slope)
row(np.arccos, arb.acos, lambda x: -1 / _sqrt((1 - x) * (1 + x)), series=by_slope)
row(np.arctan, arb.atan, lambda x: 1 / (1 + x * x), series="atan")
row(
    np.arctan2,
    arb.atan2,
    lambda x1, x2: x2 / (x1 * x1 + x2 * x2),
    lambda x1, x2: -x1 / (x1 * x1 + x2 * x2),
)
row(np.sinc, arb.sinc_pi, each(f.sinc_slope), series=s.sinc)


def _times(factor: Callable[[], Any]) -> tuple[Any, Any]:
    return (lambda x: x * factor()), (lambda x: factor())


for _fn in (np.deg2rad, np.radians):
    _value, _slope = _times(lambda: arb.pi() / 180)
    row(_fn, _value, _slope, series=_value)
for _fn in (np.rad2deg, np.degrees):
    _value, _slope = _times(lambda: 180 / arb.pi())
    row(_fn, _value, _slope, series=_value)

# Hyperbolic functions


def _square_of_sech(x: Any) -> Any:
    y = x.sech()
    return y * y


_sinh, _cosh = each(arb.sinh), each(arb.cosh)
_sech2 = on_either(_square_of_sech, s.sech2)
row(np.sinh, arb.sinh, _cosh, series=s.sinh)
row(np.cosh, arb.cosh, _sinh, series=lambda u: (s.exp(u) + s.exp(-u)) / 2)
row(np.tanh, arb.tanh, lambda x: _sech2(x), series=by_slope)
row(np.arcsinh, arb.asinh, lambda x: 1 / _sqrt(1 + x * x), series=by_slope)
row(np.arccosh, arb.acosh, lambda x: 1 / _sqrt((x - 1) * (x + 1)), series=by_slope)
row(np.arctanh, arb.atanh, lambda x: 1 / ((1 - x) * (1 + x)), series=by_slope)

# Sizes and signs: their series are choices. The slope of a size at 0 is its side's.


def _size(x: Any) -> Any:
    state.notes.ties.append(np.equal(x, 0))
    return np.absolute(x)


for _fn in (np.absolute, np.fabs):
    CALLS[_fn] = _on_balls(Elementwise(_fn, each(f.sign)), _size, None)
row(np.sign, arb.sgn, None)
row(np.floor, arb.floor, None)
row(np.ceil, arb.ceil, None)
