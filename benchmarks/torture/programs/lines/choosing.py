"""Indexing and choosing: slices, integer and boolean arrays, where, select."""

from __future__ import annotations

from ..writer import SkipLineError, Writer
from ._table import NumpyOnly, kind


def _slice(w: Writer, n: int) -> str:
    a, b = sorted(w.rng.randint(-n, n) for _ in range(2)) if n else (0, 0)
    options = (":", f"{a}:", f":{b}", "::2", "::-1", f"{a}:{b}", "1:", ":-1", "-2:")
    return w.one_of(options)


@kind(4)
def basic(w: Writer) -> str:
    name = w.any(1)
    parts = []
    for n in w.values[name].shape[: w.rng.randint(1, w.values[name].ndim)]:
        at_number = n and w.chance(0.35)
        parts.append(str(w.rng.randrange(-n, n)) if at_number else _slice(w, n))
    if w.chance(0.2):
        parts.insert(w.rng.randint(0, len(parts)), "None")
    if w.chance(0.25):
        parts.append("...")
    return f"{name}[{', '.join(parts)}]"


@kind(2)
def fancy(w: Writer) -> str:
    name = w.any(1, filled=True)
    shape = w.values[name].shape
    index = w.integers(w.one_of(((2,), (3,), (2, 2), (), (0,), (1, 3))), shape[0])
    forms = [f"{name}[{index}]", f"{name}[list({w.integers((2,), shape[0])})]"]
    if len(shape) >= 2:
        other = w.integers(w.values[index].shape, shape[1])
        last = w.integers((2,), shape[-1])
        forms += [f"{name}[{index}, {other}]", f"{name}[..., {last}]"]
        forms += [f"{name}[:, {w.integers((2,), shape[1])}]", f"{name}[{index}, 0]"]
        forms += [f"{name}[{index}, ::-1]", f"{name}[{index}, None]"]
        rows, columns = w.integers((2,), shape[0]), w.integers((3,), shape[1])
        forms += [f"{name}[np.ix_({rows}, {columns})]"]
    if len(shape) >= 3:
        forms += [f"{name}[{index}, :, {w.integers(w.values[index].shape, shape[2])}]"]
    return w.one_of(forms)


@kind(1)
def masked(w: Writer) -> str:
    name = w.real(1)
    shape = w.values[name].shape
    forms = [f"{name}[{w.mask(shape)}]", f"{name}[{name} > {w.number()}]"]
    forms += [f"{name}[{w.mask(shape[:1])}]", f"{name}[{w.mask(shape)}, None]"]
    forms += [
        f"np.extract({w.mask(shape)}, {name})",
        f"{name}[np.nonzero({name} > 0.1)]",
    ]
    if len(shape) >= 2:
        forms += [
            f"{name}[:, {w.mask(shape[1:2])}]",
            f"{name}[0, {w.mask(shape[1:2])}]",
        ]
    return w.one_of(forms)


@kind(1)
def take(w: Writer) -> str:
    name = w.any(1, filled=True)
    axis = w.axis(name)
    n = w.values[name].shape[axis]
    index = w.integers(w.one_of(((2,), (), (2, 2))), n)
    forms = [f"np.take({name}, {index}, axis={axis})"]
    forms += [f"{name}.take({index}, axis={axis})", f"np.take({name}, {index})"]
    if w.chance(0.3):
        mode = w.one_of(("wrap", "clip"))
        return NumpyOnly(f"np.take({name}, {index} + 3, axis={axis}, mode={mode!r})")
    return w.one_of(forms)


@kind(2)
def where(w: Writer) -> str:
    name = w.any()
    other = w.partner(name)
    real = w.real()
    mask = w.mask(w.near_shape(w.values[name].shape))
    forms = (f"np.where({mask}, {name}, {other})", f"np.where({mask}, {other}, {name})")
    forms += (f"np.where({real} > {w.number()}, {real}, -{real})",)
    forms += (f"np.where({real} > 0, {real}**2, np.sin({real}))",)
    return w.one_of(forms)


@kind(1)
def select(w: Writer) -> str:
    name = w.real()
    c = w.number(-1, 0)
    masks = f"[{name} < {c}, {name} < 0.8]"
    values = f"[{name} * 2.0, np.exp({name})]"
    forms = (f"np.select({masks}, {values})", f"np.select({masks}, {values}, 0.5)")
    forms += (f"np.select({masks}, {values}, default={name} + 1.0)",)
    forms += (f"np.select({masks}, [{name}, {w.number()}], {name}.sum())",)
    return w.one_of(forms)


@kind(0.6)
def choose(w: Writer) -> str:
    name = w.real()
    index = w.integers(w.values[name].shape, 2, signed=False)
    forms = (f"np.choose({index}, [{name}, {name} * 2.0])",)
    pieces = "[lambda t: t**2, lambda t: np.sin(t)]"
    forms += (f"np.piecewise({name}, [{name} < 0.1, {name} >= 0.1], {pieces})",)
    forms += (f"np.piecewise({name}, [{name} < 0.1], [0.5, lambda t: t * 3.0])",)
    return NumpyOnly(w.one_of(forms))


@kind(0.5)
def along(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    shape = list(w.values[name].shape)
    index = w.integers(tuple(shape), shape[axis])
    forms = (f"np.take_along_axis({name}, {index}, axis={axis})",)
    largest = f"np.argmax({name}, axis={axis}, keepdims=True)"
    forms += (f"np.take_along_axis({name}, {largest}, axis={axis})",)
    forms += (f"np.max({name}, axis={axis}) + np.argmin({name}, axis={axis})",)
    return w.one_of(forms)


@kind(0.4)
def histograms(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    n = w.values[name].size
    if not n:
        raise SkipLineError
    index = w.integers((n,), 3, signed=False)
    forms = (f"np.bincount({index}, weights={name})",)
    forms += (f"np.bincount({index}, {name}, minlength=4)",)
    forms += (f"np.histogram({w.literal((n,))}, 3, (-2, 2), weights={name})[0]",)
    forms += (f"np.apply_along_axis(lambda t: t * t.sum(), 0, {name})",)
    forms += (f"np.apply_over_axes(np.sum, {name}, 0)",)
    forms += (f"np.trim_zeros({name}) * 1.0",)
    return NumpyOnly(w.one_of(forms))
