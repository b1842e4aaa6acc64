"""Elementwise functions that NumPy writes with others: where, clip, round and so on."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of, real_of
from . import _elementwise as e
from ._dispatch import portable
from ._operands import converted, first_array, is_array, kind_of, operand


def _where(condition: Any, x1: Any, x2: Any) -> Any:
    return np.where(condition, x1, x2)  # with the condition alone it does another thing


@portable(_where)
def where(K: Any, condition: Any, x1: Any, x2: Any, /) -> Any:
    """x1 where the condition holds, x2 elsewhere.

    >>> where(np.array([True, False]), 1.0, 2.0)
    array([1., 2.])
    """
    floats = K.as_floats("where", x1, x2)
    if floats is None:
        like = first_array(K, (x1, x2, condition))
        name = K.result_type(kind_of(K, x1), kind_of(K, x2))
        floats = converted(K, x1, name, like), converted(K, x2, name, like)
    if not K.is_bool(condition):
        condition = as_bool(K, operand(K, condition, first_array(K, floats)))
    return K.where(condition, *floats)


def as_bool(K: Any, x: Any) -> Any:
    x = operand(K, x)
    return x if K.is_bool(x) else K.ELEMENTWISE["not_equal"](x, 0)


_BOUNDS = (int, float, type(None))


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    return np.clip(x, min, max)


@portable(_clip)
def clip(K: Any, x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements, those below `min` raised to it, and those above `max` lowered.

    >>> clip(np.array([-2.0, 0.5, 2.0]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if K.is_float(x) and type(min) in _BOUNDS and type(max) in _BOUNDS:
        return K.clip(x, min, max)  # 5 us less
    given = [each for each in (x, min, max) if each is not None]
    name = K.result_type(*[kind_of(K, each) for each in given])
    like = first_array(K, given)
    bounds = [b if b is None else converted(K, b, name, like) for b in (min, max)]
    return K.clip(converted(K, x, name, like), *bounds)


@portable(np.round)
def round(K: Any, x: Any, /, decimals: int = 0) -> Any:
    """The nearest number with so many decimals; of two, the even one.

    >>> round(np.array([0.5, 1.5, 2.25]))
    array([0., 2., 2.])
    """
    name = K.kind(x)
    if name.startswith("complex"):
        return K.complex(round(real(x), decimals), round(imag(x), decimals))
    if decimals == 0 and (name == "bool" or K.is_float(x)):
        return e.rint(x)
    if not K.is_float(x):
        if decimals >= 0:
            return x
        return K.cast(round(K.cast(x, "float64"), decimals), name)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals > 0:
        return e.divide(e.rint(e.multiply(x, scale)), scale)
    return e.multiply(e.rint(e.divide(x, scale)), scale)


around = round


@portable(np.real)
def real(K: Any, x: Any, /) -> Any:
    """The real parts of the elements.

    >>> real(np.array([1 + 2j]))
    array([1.])
    """
    return K.real(x) if K.kind(x).startswith("complex") else x


@portable(np.imag)
def imag(K: Any, x: Any, /) -> Any:
    """The imaginary parts of the elements; zeros of real ones.

    >>> imag(np.array([1 + 2j]))
    array([2.])
    """
    return K.imag(x) if K.kind(x).startswith("complex") else K.zeros_like(x)


@portable(np.angle)
def angle(K: Any, x: Any, /, deg: bool = False) -> Any:
    """The angles of complex numbers, in (-pi, pi].

    >>> angle(np.array([1j, -1.0]), deg=True)
    array([ 90., 180.])
    """
    is_complex = K.kind(x).startswith("complex")
    y = e.arctan2(imag(x), real(x)) if is_complex else e.arctan2(0, K.stop_gradient(x))
    return e.multiply(y, 180 / pi) if deg else y


@portable(np.nan_to_num)
def nan_to_num(
    K: Any, x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """The elements, with numbers in the place of NaN and of the infinities.

    >>> nan_to_num(np.array([np.nan, 1.0]))
    array([0., 1.])
    """
    name = K.kind(x)
    if name.startswith("complex"):
        parts = (nan_to_num(p, nan=nan, posinf=posinf, neginf=neginf)
                 for p in (real(x), imag(x)))  # fmt: skip
        return K.complex(*parts)
    if not K.is_float(x):
        return x
    top = K.finfo(name).max
    pairs = [(e.isnan(x), nan), (e.equal(x, np.inf), top if posinf is None else posinf)]
    pairs.append((e.equal(x, -np.inf), -top if neginf is None else neginf))
    for place, value in pairs:
        x = K.where(place, converted(K, value, name, x), x)
    return x


@portable(np.sinc)
def sinc(K: Any, x: Any, /) -> Any:
    """sin(pi x) / (pi x), which is 1 at 0.

    >>> float(sinc(np.array(0.0)))
    1.0
    """
    x = K.cast(x, inexact_of(K.kind(x)))
    small = e.less(e.absolute(x), 1e-4 if real_of(K.kind(x)) == "float64" else 1e-2)
    z = e.multiply(K.where(small, K.ones_like(x), x), pi)
    # The series has the derivatives at 0 that the quotient hasn't.
    t = e.square(e.multiply(K.where(small, x, K.zeros_like(x)), pi))
    series = e.add(e.multiply(t, e.subtract(e.divide(t, 120), 1 / 6)), 1)
    return K.where(small, series, e.divide(e.sin(z), z))


@portable(np.heaviside)
def heaviside(K: Any, x1: Any, x2: Any, /) -> Any:
    """The step: 0 below 0, 1 above it, x2 at 0.

    >>> heaviside(np.array([-1.0, 0.0, 1.0]), 0.5)
    array([0. , 0.5, 1. ])
    """
    name = K.loop("heaviside", kind_of(K, x1), kind_of(K, x2))[-1]
    like = first_array(K, (x1, x2))
    x1, x2 = converted(K, x1, name, like), converted(K, x2, name, like)
    step = where(e.less(x1, 0), K.zeros_like(x1), K.ones_like(x1))
    y = where(e.equal(x1, 0), x2, step)
    return where(e.isnan(x1), K.stop_gradient(x1), y)


@portable(np.isclose)
def isclose(K: Any, x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8) -> Any:
    """Whether |x1 - x2| <= atol + rtol |x2|; infinities of one sign are close.

    >>> isclose(np.array([1.0, 1.1]), 1.0)
    array([ True, False])
    """
    near = e.less_equal(
        e.absolute(e.subtract(x1, x2)),
        e.add(e.multiply(e.absolute(x2), rtol), atol),
    )
    finite = e.isfinite(x2) if is_array(K, x2) else bool(np.isfinite(x2))
    return e.logical_or(e.logical_and(near, finite), e.equal(x1, x2))
