"""Values that leave for plain arrays and lists: right, or refused, never dropped."""

from __future__ import annotations

from ..writer import Writer
from ._table import NumpyOnly, kind


@kind(0.25)
def in_list(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    n = w.number()
    forms = (f"np.array([{name}[0], {n}])", f"np.full(2, {name}[0])")
    forms += (f"np.sum([{name}[0], {name}[-1]])", f"np.exp([{name}[0], {n}])")
    forms += (f"np.c_[{name}, {name}]", f"np.r_[{name}, {n}]")
    forms += (f"np.append([{name}[0], {n}], {name})", f"np.ascontiguousarray({name})")
    forms += (
        f"np.insert({name}, 0, [{name}[0]])",
        f"np.einsum('i->', [{name}[0], {n}])",
    )
    forms += (
        f"np.clip([{n}, 0.1], {name}[0], 3.0)",
        f"np.linspace([{name}[0], 0.0], 1.0, 3)",
    )
    forms += (f"np.pad({name}, 1, constant_values={name}[0])",)
    forms += (f"np.sum({name}, initial={name}[0])", f"np.asarray([{name}[0]])")
    forms += (
        f"np.cov([{name}, {name}**2])",
        f"np.meshgrid([{name}[0], {n}], [1.0, 2.0])[0]",
    )
    forms += (f"np.broadcast_arrays([{name}[0], {n}], 1.0)[0]", f"np.unique({name})")
    forms += (f"np.vectorize(lambda t: t * t)({name})", f"np.fromiter({name}, float)")
    return NumpyOnly(w.one_of(forms))


@kind(0.12)
def into_array(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    n = w.values[name].size
    forms = (f"OUT = np.zeros({n})\nOUT[:] = {name}",)
    forms += (f"OUT = np.zeros({n})\nOUT[0] = {name}[0]",)
    forms += (f"OUT = np.zeros({n})\nOUT += {name}", f"OUT = np.array({name})")
    forms += (f"OUT = {name} * 1.0\nOUT[0] = 2.0", f"OUT = np.float64({name}[0])")
    forms += (f"OUT = float({name}[0]) * {name}", f"OUT = {name}[0].item() * {name}")
    forms += (f"OUT = math.sin({name}[0]) * {name}",)
    forms += (f"OUT = np.zeros({n})\nnp.copyto(OUT, {name})",)
    forms += (f"OUT = np.sin({name}, out=np.empty({n}))",)
    forms += (f"OUT = np.array([float(t) for t in {name}])",)
    return NumpyOnly(w.one_of(forms))


@kind(0.3)
def portable_lists(w: Writer) -> str:
    name = w.real(1, filled=True)
    forms = (f"gnp.stack([{name}, {name} * 2.0])", f"gnp.concatenate([{name}, {name}])")
    forms += (
        f"np.stack([{name}[0], {name}[-1]])",
        f"np.hstack([{name}[0], {name}[-1]])",
    )
    forms += (f"np.block([{name}, {name}])", f"np.stack([t * 1.0 for t in {name}])")
    return NumpyOnly(w.one_of(forms))
