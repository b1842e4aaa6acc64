"""Functions of whole arrays on balls, by the engine's rules where those are exact.

A function that moves, sums or multiplies elements does so with objects as well, and its
transpose has no constants: the engine's rules serve. So do the functions that it
defines by others. What has formulas of its own is not taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...core.import_hooks import once_imported
from ...core.rule import (
    Bilinear,
    Composite,
    Function,
    Linear,
    find_rule,
    index,
    reduction_of,
)
from ...rules.axes import counted, kept_shape
from ...rules.scipy_hook import KINDS
from .arb import arb, balls_of, each, ones, zeros
from .balls import CALLS, OTHERS, Balls, call, constant, made, value_of

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
    """A sum. All that comes back are balls: there is nothing to look at one by one."""
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
CALLS[np.astype] = lambda x, dtype, **_: x
CALLS[np.copy] = lambda a, *_, **__: a
CALLS[np.ones_like] = lambda a, *_, **__: constant(ones(a.shape), a)
CALLS[np.zeros_like] = lambda a, *_, **__: constant(zeros(a.shape), a)
CALLS[np.full_like] = lambda a, fill_value, *_, **__: (
    CALLS[np.zeros_like](a) + (fill_value)
)
for _name in ("shape", "ndim", "size"):
    CALLS[getattr(np, _name)] = lambda a, _name=_name: getattr(a, _name)
for _fn in (np.iscomplexobj, np.isrealobj):
    CALLS[_fn] = lambda x, _real=_fn is np.isrealobj: _real
CALLS[np.result_type] = lambda *xs: np.result_type(
    *[getattr(x, "dtype", x) for x in xs]
)


KINDS.append(Balls)  # SciPy's Python functions ask for them


def _read_special(_: Any) -> None:
    import_module(f"{__package__}.special")


once_imported("scipy.special", _read_special)

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
