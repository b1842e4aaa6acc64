"""Reductions and running ones, with all their options."""

from __future__ import annotations

import numpy as np

from ..writer import Writer
from ._table import NumpyOnly, kind


@kind(5)
def reduce(w: Writer) -> str:
    name = w.real(filled=True)
    function = w.one_of(("sum", "mean", "prod", "max", "min", "var", "std"))
    options = [f"axis={w.axes(name)}"]
    if w.chance(0.4):
        options.append(f"keepdims={w.one_of((True, False))}")
    if function in ("var", "std") and w.chance(0.3):
        options.append(f"ddof={w.one_of((0, 1))}")
    call = ", ".join(options)
    if w.chance(0.4):
        return f"{name}.{function}({call})"
    return f"np.{function}({name}, {call})"


@kind(1.2)
def options(w: Writer) -> str:
    """`where=`, `initial=`, `dtype=` of a reduction."""
    name = w.real(filled=True)
    function = w.one_of(("sum", "mean", "prod", "max", "min", "var", "std"))
    parts = [f"axis={w.axes(name)}"]
    simple = function in ("sum", "prod")
    if w.chance(0.5):
        parts.append(f"where={w.mask(w.near_shape(w.values[name].shape))}")
    if simple and w.chance(0.4):
        parts.append(f"initial={w.number()}")
    if function in ("max", "min"):
        parts.append(f"initial={w.number()}")
    if (simple or function == "mean") and w.chance(0.3):
        parts.append(f"dtype={w.one_of(('np.float64', 'float', 'np.complex128'))}")
    return NumpyOnly(f"np.{function}({name}, {', '.join(parts)})")


@kind(1)
def portable(w: Writer) -> str:
    name = w.real(filled=True)
    function = w.one_of(("sum", "mean", "prod", "max", "min", "var", "std"))
    return NumpyOnly(f"gnp.{function}({name}, axis={w.axes(name)}, keepdims=True)")


@kind(0.8)
def without_nan(w: Writer) -> str:
    name = w.real(filled=True)
    function = w.one_of(("sum", "mean", "prod", "max", "min", "var", "std"))
    return f"np.nan{function}({name}, axis={w.axes(name)})"


@kind(0.8)
def order_statistic(w: Writer) -> str:
    name = w.real(filled=True)
    axis = w.axes(name)
    q = w.number(0.05, 0.95)
    forms = (f"np.median({name}, axis={axis})",)
    forms += (f"np.quantile({name}, {q}, axis={axis})",)
    forms += (f"np.percentile({name}, 100 * {q}, axis={axis})",)
    forms += (f"np.quantile({name}, [0.2, {q}], axis={axis}, keepdims=True)",)
    forms += (f"np.ptp({name}, axis={axis})",)
    if w.chance(0.3):
        methods = ("lower", "higher", "midpoint", "nearest", "hazen", "weibull")
        method = w.one_of(methods)
        return NumpyOnly(f"np.quantile({name}, {q}, axis={axis}, method={method!r})")
    return w.one_of(forms)


@kind(1)
def running(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    function = w.one_of(("cumsum", "cumprod", "nancumsum"))
    if function != "nancumsum" and w.chance(0.3):
        return f"{name}.{function}(axis={axis})"
    if w.chance(0.2):
        return f"np.{function}({name})"
    return f"np.{function}({name}, axis={axis})"


@kind(0.4)
def cumulative(w: Writer) -> str:
    name = w.real(1, filled=True)
    first = w.one_of((True, False))
    function = w.one_of(("cumulative_sum", "cumulative_prod"))
    return NumpyOnly(
        f"np.{function}({name}, axis={w.axis(name)}, include_initial={first})"
    )


@kind(0.8)
def differences(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    forms = (f"np.diff({name}, axis={axis})", f"np.diff({name}, n=2, axis={axis})")
    forms += (f"np.gradient({name}, axis={axis})", f"np.ediff1d({name})")
    forms += (f"np.trapezoid({name}, axis={axis})", f"np.trapezoid({name}, dx=0.5)")
    forms += (f"np.diff({name}, axis={axis}, prepend=0.5)",)
    return w.one_of(forms)


@kind(0.7)
def averages(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    weights = w.literal((w.values[name].shape[axis],), 0.3, 1.5)
    forms = (f"np.average({name}, axis={axis}, weights={weights})",)
    forms += (f"np.average({name})", f"np.average({name}, axis={axis})")
    forms += (f"np.average({name}, weights={name}**2 + 0.5)",)
    return w.one_of(forms)


@kind(0.6)
def covariances(w: Writer) -> str:
    name = w.pick(lambda v: v.dtype.kind == "f" and v.ndim == 2 and min(v.shape) > 1)
    forms = (f"np.cov({name})", f"np.cov({name}, rowvar=False)")
    forms += (f"np.cov({name}, bias=True)", f"np.cov({name}, ddof=0)")
    return w.one_of(forms)


@kind(0.6)
def sorting(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    order = f"np.argsort({name}, axis={axis})"
    forms = (f"np.sort({name}, axis={axis})", f"np.sort({name})")
    forms += (f"np.take_along_axis({name}, {order}, axis={axis})",)
    forms += (f"np.maximum.accumulate({name}, axis={axis})",)
    forms += (f"np.partition({name}, 0, axis={axis}).min(axis={axis})",)
    forms += (f"{name}[..., np.argmax({name}[(0,) * ({name}.ndim - 1)])]",)
    if w.chance(0.2):
        return NumpyOnly(f"np.sort({name}, axis=None)")
    return w.one_of(forms)


@kind(0.4)
def norms(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    order = w.one_of(("None", "1", "2", "3", "np.inf", "-np.inf", "0.5"))
    forms = (f"np.linalg.norm({name})", f"np.linalg.norm({name}, axis={axis})")
    forms += (f"np.linalg.norm({name}, {order}, axis={axis}, keepdims=True)",)
    forms += (f"np.linalg.vector_norm({name}, axis={axis})",)
    return w.one_of(forms)


@kind(0.4)
def calculus(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    n = w.values[name].size
    grid = w.add_literal(np.linspace(0.0, 1.0, n))
    forms = (f"np.interp({w.number(0.1, 0.9)}, {grid}, {name})",)
    forms += (f"np.convolve({name}, {w.literal((2,))})",)
    forms += (f"np.correlate({name}, {w.literal((2,))}, mode='full')",)
    forms += (f"np.convolve({name}, {name}, mode='same')",)
    forms += (f"np.polyval({name}, {w.number()})",)
    forms += (f"np.trapezoid({name}, x={grid})",)
    forms += (f"np.vander({name}, 3)", f"np.unwrap({name})")
    forms += (f"np.polymul({name}, {w.literal((2,))})",)
    forms += (f"np.polyadd({name}, {w.literal((2,))})", f"np.polyder({name})")
    forms += (f"np.polyint({name})", f"np.ediff1d({name}, to_end=[0.5])")
    return NumpyOnly(w.one_of(forms))
