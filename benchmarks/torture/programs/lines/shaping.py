"""Shapes: views, joining, splitting, padding, repeating."""

from __future__ import annotations

import math

from ..writer import SkipLineError, Writer
from ._table import NumpyOnly, kind


def _factors(w: Writer, size: int) -> tuple[int, ...]:
    """A random shape of that many elements."""
    shape, left = [], size
    while left > 1 and len(shape) < 3:
        n = w.one_of([n for n in range(1, left + 1) if left % n == 0])
        shape.append(n)
        left //= n
    return (*shape, left) if left != 1 or w.chance(0.3) else tuple(shape)


@kind(2)
def reshape(w: Writer) -> str:
    name = w.any()
    size = w.values[name].size
    shape = list(_factors(w, size)) if size else [0, 2]
    if shape and size and w.chance(0.3):
        shape[w.rng.randrange(len(shape))] = -1
    text = repr(tuple(shape))
    forms = [f"np.reshape({name}, {text})", f"{name}.reshape({text})"]
    forms += [f"{name}.reshape({text}, order='F')", f"np.ravel({name})"]
    forms += [f"{name}.ravel()", f"{name}.flatten()", f"np.ravel({name}, order='F')"]
    if shape:
        forms.append(f"{name}.reshape({', '.join(map(str, shape))})")
    return w.one_of(forms)


@kind(2)
def permute(w: Writer) -> str:
    name = w.any(1)
    ndim = w.values[name].ndim
    order = w.rng.sample(range(ndim), ndim)
    a, b = w.axis(name), w.axis(name)
    forms = [f"{name}.T", f"np.transpose({name})", f"np.transpose({name}, {order})"]
    forms += [f"{name}.transpose({', '.join(map(str, order))})"]
    forms += [f"np.swapaxes({name}, {a}, {b})", f"{name}.swapaxes({a}, {b})"]
    forms += [f"np.moveaxis({name}, {a}, {b})", f"np.rollaxis({name}, {a})"]
    if ndim >= 2:
        forms += [f"{name}.mT", f"np.matrix_transpose({name})", f"np.rot90({name})"]
    return w.one_of(forms)


@kind(1.5)
def axes(w: Writer) -> str:
    name = w.any()
    ndim = w.values[name].ndim
    at = w.rng.randint(-ndim - 1, ndim)
    forms = (f"np.expand_dims({name}, {at})", f"np.squeeze({name})")
    forms += (f"{name}.squeeze()", f"np.atleast_1d({name})", f"np.atleast_2d({name})")
    forms += (f"{name}[None]", f"{name}[..., None]", f"np.atleast_3d({name})")
    return w.one_of(forms)


@kind(1.2)
def broadcast(w: Writer) -> str:
    name = w.any()
    shape = w.values[name].shape
    wide = (w.one_of((1, 2, 3)), *(3 if n == 1 and w.chance(0.5) else n for n in shape))
    forms = (f"np.broadcast_to({name}, {wide})",)
    forms += (f"np.broadcast_arrays({name}, {w.partner(name)})[0]",)
    forms += (f"{name} + np.zeros({wide})", f"np.ones({wide}) * {name}")
    return w.one_of(forms)


@kind(1.2)
def repeat(w: Writer) -> str:
    name = w.any()
    ndim = w.values[name].ndim
    forms = [f"np.tile({name}, 2)", f"np.tile({name}, (2, 1))", f"np.repeat({name}, 2)"]
    forms += [f"{name}.repeat(2)", f"np.resize({name}, (2, 3))"]
    if ndim:
        axis = w.axis(name)
        counts = w.integers((w.values[name].shape[axis],), 3, signed=False)
        forms += [f"np.repeat({name}, 2, axis={axis})"]
        forms += [f"np.repeat({name}, {counts}, axis={axis})"]
    return w.one_of(forms)


@kind(1.2)
def turn(w: Writer) -> str:
    name = w.any(1)
    axis = w.axis(name)
    forms = [f"np.flip({name})", f"np.flip({name}, axis={axis})", f"{name}[::-1]"]
    forms += [f"np.roll({name}, 1)", f"np.roll({name}, -2, axis={axis})"]
    if w.values[name].ndim >= 2:
        forms += [f"np.roll({name}, (1, 2), axis=(0, 1))", f"np.fliplr({name})"]
        forms += [f"np.flipud({name})", f"np.rot90({name}, 3)", f"np.tril({name})"]
        forms += [f"np.triu({name}, 1)", f"np.tril({name}, -1)"]
    return w.one_of(forms)


@kind(1)
def pad(w: Writer) -> str:
    name = w.real(1, filled=True)
    ndim = w.values[name].ndim
    widths = [(w.one_of((0, 1, 2)), w.one_of((0, 1))) for _ in range(ndim)]
    modes = ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp")
    mode = w.one_of((*modes, "mean", "maximum", "minimum"))
    if w.chance(0.3):
        number = w.number()
        return f"np.pad({name}, {widths}, constant_values={number})"
    return f"np.pad({name}, {widths}, mode={mode!r})"


@kind(0.7)
def diagonal(w: Writer) -> str:
    name = w.any(1)
    ndim = w.values[name].ndim
    forms = [f"np.diagflat({name})"]
    if ndim >= 2:
        k = w.one_of((-1, 0, 1))
        forms = [f"np.diagonal({name}, {k})", f"np.trace({name})", f"{name}.diagonal()"]
        forms += [f"{name}.trace({k})", f"np.linalg.diagonal({name}, offset={k})"]
    if ndim <= 2:
        forms += [f"np.diag({name})", f"np.diag({name}, 1)"]
    return w.one_of(forms)


def _same(w: Writer, name: str) -> str:
    """A value of the same shape: another one, or a literal."""
    shape = w.values[name].shape
    found = [n for n in w.names if w.values[n].shape == shape]
    return w.one_of(found) if w.chance(0.7) else w.literal(shape)


@kind(2)
def join(w: Writer) -> str:
    name = w.any(1)
    other = _same(w, name)
    axis = w.axis(name)
    pair = f"[{name}, {other}]" if w.chance(0.7) else f"({other}, {name}, {name})"
    forms = (f"np.concatenate({pair}, axis={axis})", f"np.stack({pair}, axis={axis})")
    forms += (f"np.hstack({pair})", f"np.vstack({pair})", f"np.dstack({pair})")
    forms += (f"np.column_stack({pair})", f"np.append({name}, {other}, axis={axis})")
    forms += (f"np.append({name}, {other})", f"np.concatenate({pair}, axis=None)")
    forms += (f"np.block({pair})" if pair[0] == "[" else f"np.stack({pair}, -1)",)
    forms += (f"np.concat({pair}, axis={axis})",)
    return w.one_of(forms)


@kind(1)
def edit(w: Writer) -> str:
    name = w.any(1, filled=True)
    axis = w.axis(name)
    n = w.values[name].shape[axis]
    at = w.rng.randrange(n)
    forms = (f"np.delete({name}, {at}, axis={axis})", f"np.delete({name}, [0])")
    forms += (f"np.insert({name}, {at}, {w.number()}, axis={axis})",)
    forms += (f"np.insert({name}, {at}, {name}.ravel()[0])",)
    forms += (f"np.insert({name}, [0, {at}], {w.number()}, axis={axis})",)
    forms += (f"np.compress({[i != at for i in range(n)]}, {name}, axis={axis})",)
    return w.one_of(forms)


@kind(1)
def split(w: Writer) -> str:
    name = w.any(1, filled=True)
    axis = w.axis(name)
    n = w.values[name].shape[axis]
    at = w.rng.randint(0, n)
    part = w.one_of((0, 1))
    forms = (f"np.array_split({name}, 2, axis={axis})[{part}]",)
    forms += (f"np.split({name}, [{at}], axis={axis})[{part}]",)
    forms += (f"np.split({name}, {n}, axis={axis})[-1]",)
    forms += (f"np.unstack({name}, axis={axis})[0]",)
    first = f"a, *b = np.split({name}, {n}, axis={axis})\nOUT = a * len(b) + sum(b)"
    return w.one_of((*forms, first))


@kind(0.5)
def grids(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    other = w.literal((2,))
    forms = (f"np.meshgrid({name}, {other})[0]", f"np.meshgrid({other}, {name})[1]")
    forms += (f"np.meshgrid({name}, {other}, indexing='ij')[0]",)
    forms += (f"np.multiply(*np.meshgrid({name}, {other}, sparse=True))",)
    forms += (f"np.linspace({name}[0], {name}[-1], 4)",)
    forms += (f"np.linspace({name}, 2.0, 3, axis=-1)",)
    forms += (f"np.linspace(0.0, {name}, 3, endpoint=False)",)
    return w.one_of(forms)


@kind(0.6)
def like(w: Writer) -> str:
    name = w.any()
    forms = (f"np.zeros_like({name}) + {name}", f"np.full_like({name}, 0.7) * {name}")
    forms += (f"np.ones_like({name}) - {name}", f"{name}.copy()", f"np.copy({name})")
    forms += (f"np.asarray({name}) * 2.0",) if w.chance(0.1) else ()
    return w.one_of(forms)


@kind(0.4)
def windows(w: Writer) -> str:
    name = w.real(1, filled=True)
    axis = w.axis(name)
    if w.values[name].shape[axis] < 2:
        raise SkipLineError
    view = "np.lib.stride_tricks.sliding_window_view"
    return NumpyOnly(f"{view}({name}, 2, axis={axis})")


@kind(0.5)
def casts(w: Writer) -> str:
    name = w.any()
    real = w.values[name].dtype.kind == "f"
    forms = [f"{name}.astype(np.complex128)", f"np.astype({name}, np.complex128)"]
    if real:
        forms += [f"{name}.astype(np.float64)", f"{name}.astype(float, copy=False)"]
        forms += [f"{name}.astype(np.float32) * 1.5"]
    return w.one_of(forms)


@kind(0.3)
def counted(w: Writer) -> str:
    """Attributes as numbers."""
    name = w.any()
    shape = w.values[name].shape
    if math.prod(shape) == 0:
        raise SkipLineError
    forms = (
        f"{name} / {name}.size",
        f"{name} * {name}.ndim",
        f"{name} * np.size({name})",
    )
    forms += (f"{name} + np.ndim({name})", f"{name}.reshape({name}.shape + (1,))")
    forms += (f"{name} * len(np.shape({name}))",)
    return w.one_of(forms)
