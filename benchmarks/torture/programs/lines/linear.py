"""Products and linear algebra."""

from __future__ import annotations

from typing import Any

from ..writer import SkipLineError, Writer
from ._table import NumpyOnly, kind


@kind(2.5)
def product(w: Writer) -> str:
    name = w.any(1, 3)
    n = w.values[name].shape[-1]
    suits = [o for o in w.names if 1 <= w.values[o].ndim <= 3]
    suits = [o for o in suits if w.values[o].shape[-2:][0] == n]
    other = w.one_of(suits) if suits and w.chance(0.6) else w.literal((n, 2))
    forms = (
        f"{name} @ {other}",
        f"np.matmul({name}, {other})",
        f"np.dot({name}, {other})",
    )
    forms += (f"{name}.dot({other})", f"np.tensordot({name}, {other}, axes=1)")
    return w.one_of(forms)


@kind(1.2)
def other_products(w: Writer) -> str:
    name = w.any(1, 2)
    other = w.literal(w.values[name].shape) if w.chance(0.5) else name
    forms = (f"np.inner({name}, {other})", f"np.outer({name}, {other})")
    forms += (f"np.vdot({name}, {other})", f"np.kron({name}, {other})")
    forms += (f"np.tensordot({name}, {other}, axes={w.values[name].ndim})",)
    forms += (f"np.vecdot({name}, {other})", f"np.linalg.outer({name}, {other})")
    forms += (f"np.cross({name}, {other})",)
    return w.one_of(forms)


@kind(0.3)
def new_products(w: Writer) -> str:
    name = w.real(2, 3, filled=True)
    shape = w.values[name].shape
    forms = (f"np.matvec({name}, {w.literal(shape[-1:])})",)
    forms += (f"np.vecmat({w.literal(shape[-2:-1])}, {name})",)
    forms += (f"np.linalg.vecdot({name}, {name}, axis=0)",)
    return NumpyOnly(w.one_of(forms))


@kind(1.5)
def einsum(w: Writer) -> str:
    name = w.any(1, 3)
    ndim = w.values[name].ndim
    one = {
        1: ("i->i", "i->", "i,i->i", "i,j->ij", "i,i", "i,j,k->ikj"),
        2: (
            "ij->ji",
            "ij->j",
            "ij->",
            "ij,ij->i",
            "ij,kj->ik",
            "ij,ik->jk",
            "ij",
            "ii->i",
        ),
        3: ("ijk->kj", "ijk,ijk->", "ijk->ik", "...k->...", "ijk,ijl->ikl", "ijj->i"),
    }[ndim]
    text = w.one_of((*one, "...->...", "...,...->..."))
    rows, *_, columns = (*w.values[name].shape[-2:], 0)[:2]
    if ("ii" in text or "jj" in text) and not rows == columns > 0:
        raise SkipLineError  # NumPy reads beyond the end of an empty array
    count = text.partition("->")[0].count(",") + 1
    others = [
        name if w.chance(0.5) else w.literal(w.values[name].shape) for _ in range(2)
    ]
    operands = ", ".join([name, *others][:count])
    if w.chance(0.2):
        return f"np.einsum({text!r}, {operands}, optimize=True)"
    return f"np.einsum({text!r}, {operands})"


def _square(v: Any) -> bool:
    return v.ndim in (2, 3) and v.shape[-1] == v.shape[-2] > 0 and v.dtype.kind == "f"


@kind(2.2)
def decompose(w: Writer) -> str:
    """Of square matrices, made regular first."""
    name = w.pick(_square)
    n = w.values[name].shape[-1]
    regular = f"({name} + {w.number(2, 3)} * np.eye({n}))"
    definite = f"({name} @ {name}.mT + np.eye({n}))"
    spread = f"({name} @ {name}.mT + np.diag(np.arange({n}) * 2.0))"
    right = w.literal((n, 2))
    forms = (f"np.linalg.inv({regular})", f"np.linalg.det({regular})")
    forms += (f"np.linalg.solve({regular}, {right})", f"np.linalg.cholesky({definite})")
    forms += (
        f"np.linalg.slogdet({definite})[1]",
        f"np.linalg.slogdet({regular}).logabsdet",
    )
    forms += (f"np.linalg.eigvalsh({spread})", f"np.linalg.eigh({spread})[0]")
    forms += (
        f"np.linalg.svd({regular}, compute_uv=False)",
        f"np.linalg.pinv({regular})",
    )
    forms += (
        f"np.linalg.matrix_power({name}, 2)",
        f"np.linalg.matrix_power({regular}, -1)",
    )
    forms += (
        f"np.abs(np.linalg.qr({regular})[1])",
        f"np.linalg.norm({regular}, 'nuc')",
    )
    forms += (
        f"np.linalg.eigh({spread}).eigenvectors**2",
        f"np.linalg.matrix_norm({name})",
    )
    forms += (f"np.linalg.qr({regular}).Q @ np.linalg.qr({regular}).R",)
    forms += (f"np.linalg.cond({regular})", f"np.linalg.norm({regular}, 2)")
    forms += (f"np.linalg.multi_dot([{name}, {name}.T, {right}])",)
    forms += (f"np.real(np.linalg.eigvals({spread})).sum()",)
    return w.one_of(forms)


@kind(0.6)
def tall(w: Writer) -> str:
    """Of matrices that are not square."""
    name = w.pick(lambda v: v.ndim == 2 and min(v.shape) > 0 and v.dtype.kind == "f")
    rows, columns = w.values[name].shape
    tall = f"({name} + np.eye({rows}, {columns}) * 2.0)"
    forms = (f"np.linalg.pinv({tall})", f"np.linalg.svd({tall})[1]")
    forms += (f"np.linalg.svdvals({tall})", f"np.linalg.norm({tall}, 'fro')")
    forms += (f"np.linalg.lstsq({tall}, {w.literal((rows,))})[0]",)
    forms += (f"np.abs(np.linalg.qr({tall}, mode='r'))",)
    forms += (f"np.linalg.norm({tall}, {w.one_of((1, -1, 'np.inf', 2, -2))})",)
    return w.one_of(forms)


@kind(0.2)
def tensors(w: Writer) -> str:
    name = w.pick(lambda v: v.shape == (2, 2) and v.dtype.kind == "f")
    big = f"(np.kron({name}, {name}) + 3 * np.eye(4)).reshape(2, 2, 2, 2)"
    forms = (f"np.linalg.tensorsolve({big}, {w.literal((2, 2))})",)
    forms += (f"np.linalg.tensorinv({big})",)
    return NumpyOnly(w.one_of(forms))
