"""Functions of whole arrays on balls, by the engine's rules where those are exact.

A function that moves, sums or multiplies elements does so with objects as well, and its
transpose has no constants: the engine's rules serve. So do the functions that it
defines by others. What has formulas of its own is not taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from ....core.errors import UnsupportedOperationError
from ....core.rule import (
    Bilinear,
    Composite,
    Function,
    Linear,
    find_rule,
    index,
    reduction_of,
)
from ....rules import load_present, pointwise
from ....rules.axes import counted, kept_shape
from ....rules.reductions import logaddexp_reduce
from ....rules.scipy_hook import KINDS
from ....rules.statistics import variance
from .arb import arb, balls_of, each, ones, zeros
from .balls import CALLS, OTHERS, Balls, call, constant, made, value_of
from .choices import greatest
from .series import SERIES

load_present()

_EXACT = (np.sum, np.prod, np.cumsum, np.cumprod, np.reshape)  # by their own rules
_ROUNDED = ("fft", "interpolation", "polynomials", "quantiles", "statistics")
_as_ball = each(lambda x: x if x.__class__ is arb else arb(x))


def _by_engine(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if isinstance(fn, tuple):
        return call(reduction_of(*fn), args, kwargs)
    rule = find_rule(fn)
    if isinstance(rule, Composite):
        return rule.definition(*args, **kwargs)
    if type(rule) in (Linear, Bilinear) or fn in _EXACT:
        assert isinstance(rule, Function)
        if _family(rule) not in _ROUNDED:
            return _call_function(rule, args, kwargs)
    return NotImplemented


OTHERS.append(_by_engine)


def _family(rule: Function) -> str:
    vjp = rule.vjp[0] if isinstance(rule.vjp, tuple) else rule.vjp
    return vjp.__module__.rpartition(".")[2] if vjp else ""


def _call_function(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if any(isinstance(x, Balls) for x in kwargs.values()):
        args, kwargs = rule.bind(args, kwargs)
    kwargs = {k: v for k, v in kwargs.items() if k not in ("dtype", "out")}
    inputs = rule.inputs(args)
    plain = rule.with_inputs(args, [np.asarray(value_of(x)) for x in inputs])
    y = balls_of(rule.fn(*plain, **kwargs))
    tracked = [i for i, x in enumerate(inputs) if isinstance(x, Balls) and x.node]
    if not tracked:
        return made(y, inputs, ())
    back = rule.pullback(tracked, (plain, kwargs), y)
    n = len(tracked)
    return made(y, inputs, {i: _one_of(back, k, n) for k, i in enumerate(tracked)})


def _one_of(back: Any, k: int, n: int) -> Any:
    needs = [j == k for j in range(n)]
    return lambda dy: _dense(back(dy, needs)[k])


def _dense(dx: Any) -> Any:
    """A cotangent as balls: zeros that NumPy put in are whole numbers."""
    dx = dx if isinstance(dx, np.ndarray) else dx.dense()
    return balls_of(_as_ball(dx))


def total(a: Any, axis: Any = None, *more: Any, **options: Any) -> Any:
    """A sum. All cotangents are balls, and none needs a conversion."""
    mask = options.pop("where", True)
    if mask is not True:
        a = np.where(mask, a, 0)
    if more or options.keys() - {"keepdims"}:
        return _by_engine(np.sum, (a, axis, *more), options)
    x, keepdims = value_of(a), options.get("keepdims") is True
    kept = kept_shape(x.shape, axis)
    y = np.add.reduce(x, axis=axis, keepdims=keepdims)
    return made(y, (a,), [lambda dy: np.broadcast_to(np.reshape(dy, kept), x.shape)])


def mean(a: Any, axis: Any = None, *_: Any, keepdims: Any = False, **__: Any) -> Any:
    return np.sum(a, axis=axis, keepdims=keepdims) / counted(True, a.shape, axis)


CALLS[np.sum] = total
CALLS[np.mean] = mean
CALLS[np.ones_like] = lambda a, *_, **__: constant(ones(a.shape), a)
CALLS[np.zeros_like] = lambda a, *_, **__: constant(zeros(a.shape), a)
CALLS[np.full_like] = lambda a, fill_value, *_, **__: (
    CALLS[np.zeros_like](a) + (fill_value)
)
for _table in (CALLS, SERIES):
    _table[np.astype] = lambda x, dtype, **_: x
    _table[np.copy] = lambda a, *_, **__: a
    for _name in ("shape", "ndim", "size"):
        _table[getattr(np, _name)] = lambda a, _name=_name: getattr(a, _name)
SERIES[np.ones_like] = lambda a, *_, **__: a * 0 + 1
SERIES[np.zeros_like] = lambda a, *_, **__: a * 0
SERIES[np.full_like] = lambda a, fill_value, *_, **__: a * 0 + fill_value
for _fn in (np.iscomplexobj, np.isrealobj):
    CALLS[_fn] = lambda x, _real=_fn is np.isrealobj: _real
CALLS[np.result_type] = lambda *xs: np.result_type(
    *[getattr(x, "dtype", x) for x in xs]
)


KINDS.append(Balls)  # SciPy's Python functions ask for them


# Functions that are defined by others: clipping, norms, spreads

CALLS[pointwise.clip_both] = lambda x, low, high: np.minimum(np.maximum(x, low), high)
CALLS[pointwise.clip_below] = lambda x, low: np.maximum(x, low)
CALLS[pointwise.clip_above] = lambda x, high: np.minimum(x, high)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """A vector's norm; of a whole array if no axis is given."""
    if isinstance(axis, tuple) or (ord is not None and axis is None and x.ndim > 1):
        raise UnsupportedOperationError("norms of matrices have no certified value yet")
    size = np.abs(x)
    if ord in (inf, -inf):
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if ord in (None, 2):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / Balls(balls_of(ord)))


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    return norm(x, ord, axis, keepdims)


CALLS[np.linalg.norm] = norm
CALLS[np.linalg.vector_norm] = vector_norm


def var(a: Any, fn: Any, options: Any) -> Any:
    axis = options["axis"]
    free = counted(True, a.shape, axis) - options["ddof"]
    off = a - np.mean(a, axis=axis, keepdims=True)
    kept = options.get("keepdims") is True
    return np.sum(off * off, axis=axis, keepdims=kept) / free


def log_of_sum(x: Any, axis: Any = 0, *, weights: Any = None, **options: Any) -> Any:
    """log(sum(exp(x))), which is np.logaddexp.reduce and scipy.special.logsumexp."""
    x, top = below_greatest(x, axis)
    e = np.exp(x) if weights is None else weights * np.exp(x)
    y = np.log(np.sum(e, axis=axis, keepdims=True)) + top
    return y if options.get("keepdims") else np.squeeze(y, axis)


def below_greatest(x: Any, axis: Any) -> tuple[Any, Any]:
    """x less its greatest element, and that: a constant, which cancels."""
    top = Balls(greatest(x.value, axis=axis, keepdims=True), x.dtype)
    return x - top, top


CALLS[variance] = var
CALLS[logaddexp_reduce] = log_of_sum

# Methods


def _method(fn: Any) -> Any:
    return lambda self, *args, **kwargs: call(fn, (self, *args), kwargs)


def _axes_method(fn: Any) -> Any:
    def method(self: Balls, *axes: Any, **kwargs: Any) -> Any:
        return call(fn, (self, axes[0] if len(axes) == 1 else axes or None), kwargs)

    return method


_METHODS = (
    "argmax argmin astype clip copy cumprod cumsum diagonal dot max mean min prod "
    "ravel repeat squeeze std sum swapaxes take trace var"
)
for _name in _METHODS.split():
    setattr(Balls, _name, _method(getattr(np, _name)))
for _name in ("reshape", "transpose"):
    setattr(Balls, _name, _axes_method(getattr(np, _name)))
for _name, _fn in {"T": np.transpose, "mT": np.matrix_transpose}.items():
    setattr(Balls, _name, property(_method(_fn)))
setattr(Balls, "__getitem__", _method(index))  # noqa: B010 (no attribute for pyright)
