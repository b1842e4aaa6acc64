"""Complex values in between."""

from __future__ import annotations

from ..writer import Writer
from ._table import kind


def _complex(w: Writer) -> str:
    return w.pick(lambda v: v.dtype.kind == "c")


@kind(0.8)
def into(w: Writer) -> str:
    name = w.real()
    other = w.partner(name, "f")
    forms = (f"{name} + 1j * {other}", f"np.exp(1j * {name})", f"{name} * (0.5 - 1j)")
    forms += (f"{name} * np.complex128(1 + 2j)", f"1j * {name}")
    return w.one_of(forms)


@kind(2)
def of(w: Writer) -> str:
    name = _complex(w)
    functions = ("sin", "cos", "exp", "tanh", "square", "conj", "conjugate", "sinh")
    forms = (f"np.{w.one_of(functions)}({name})", f"{name}.conj()", f"{name}**2")
    forms += (
        f"np.sqrt({name} + 4.0)",
        f"np.log({name} + 4.0)",
        f"{name} * {name}.conj()",
    )
    forms += (f"1.0 / ({name} + 5.0)", f"np.prod({name})", f"np.mean({name}, axis=0)")
    forms += (f"{name} @ {name}.T", f"np.cumsum({name})", f"np.sum({name}, axis=-1)")
    return w.one_of(forms)


@kind(2)
def back(w: Writer) -> str:
    name = _complex(w)
    forms = (f"np.real({name})", f"{name}.real", f"np.imag({name})", f"{name}.imag")
    forms += (
        f"np.abs({name})",
        f"abs({name})",
        f"np.angle({name})",
        f"np.abs({name})**2",
    )
    forms += (f"np.var({name})", f"np.linalg.norm({name})", f"np.std({name})")
    return w.one_of(forms)
