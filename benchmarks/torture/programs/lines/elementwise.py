"""Functions of each element, of one argument and of two."""

from __future__ import annotations

from math import inf, pi

from benchmarks._peers import is_installed

from ..writer import SkipLineError, Writer
from ._table import NumpyOnly, kind

EVERYWHERE = "sin cos tanh arctan arcsinh sinc square exp expm1 sinh cosh exp2 cbrt abs"
EVERYWHERE += " negative positive deg2rad rad2deg fabs absolute conjugate"
FLAT = "sign floor ceil trunc rint"
DOMAINS = {
    "log": (0.1, inf),
    "log2": (0.1, inf),
    "log10": (0.1, inf),
    "sqrt": (0.1, inf),
    "reciprocal": (0.2, inf),
    "log1p": (-0.9, inf),
    "arccosh": (1.1, inf),
    "arcsin": (-1.0, 1.0),
    "arccos": (-1.0, 1.0),
    "arctanh": (-1.0, 1.0),
    "tan": (-pi / 2, pi / 2),
    "i0": (-5.0, 5.0),
}
SPECIAL = "erf erfc expit ndtr log_ndtr i0 i1 i0e i1e j0 j1 dawsn erfcx log_expit entr"
SPECIAL_POSITIVE = "gamma gammaln psi k0 k1 exp1 y0 y1 log1p rgamma"
BINARY = "add subtract multiply maximum minimum hypot logaddexp logaddexp2 copysign"
BINARY += " fmax fmin arctan2 heaviside"
# With names that `gradsmith.numpy` has as well
PORTABLE = "sin cos tanh arctan arcsinh square exp expm1 sinh cosh cbrt abs negative"


def _positive(w: Writer) -> str:
    """A positive value, or one made positive."""
    name = w.real(filled=True)
    if w.values[name].min() > 0.15:
        return name
    return w.one_of((f"(np.abs({name}) + 0.2)", f"np.exp({name})", f"({name}**2 + 1)"))


@kind(6)
def everywhere(w: Writer) -> str:
    return f"np.{w.one_of(EVERYWHERE.split())}({w.real()})"


@kind(2)
def portable(w: Writer) -> str:
    return NumpyOnly(f"gnp.{w.one_of(PORTABLE.split())}({w.real()})")


@kind(3)
def on_domain(w: Writer) -> str:
    function = w.one_of(list(DOMAINS))
    low, high = DOMAINS[function]
    if high == inf and low >= 0:
        return f"np.{function}({_positive(w)} + {low})"
    return f"np.{function}({w.within(low, high)})"


@kind(0.4)
def flat(w: Writer) -> str:
    name = w.real()
    return f"np.{w.one_of(FLAT.split())}({name}) + {name}"


@kind(0.3)
def rounded(w: Writer) -> str:
    name = w.real()
    call = w.one_of((f"np.round({name}, 1)", f"{name}.round(1)", f"np.fix({name})"))
    return NumpyOnly(f"{call} * 0.5 + {name}")


@kind(1.2)
def special(w: Writer) -> str:
    if not is_installed("scipy"):
        raise SkipLineError
    if w.chance(0.6):
        return f"special.{w.one_of(SPECIAL.split())}({w.real()})"
    return NumpyOnly(
        f"special.{w.one_of(SPECIAL_POSITIVE.split())}({_positive(w)} + 0.3)"
    )


@kind(0.6)
def special_of_two(w: Writer) -> str:
    if not is_installed("scipy"):
        raise SkipLineError
    x = _positive(w)
    a = w.number(0.5, 2.5)
    calls = ("xlogy({1}, {0})", "gammainc({1}, {0})", "betaln({0}, {1})", "jv(2, {0})")
    calls += ("rel_entr({0}, {1})", "xlog1py({1}, {0})", "boxcox({0}, {1})")
    calls += ("pseudo_huber({1}, {0})", "iv(1, {0})", "polygamma(1, {0})")
    return NumpyOnly("special." + w.one_of(calls).format(x, a))


@kind(7)
def operator(w: Writer) -> str:
    name = w.any()
    other = w.partner(name)
    sign = w.one_of(("+", "-", "*", "+", "-", "*"))
    return f"{name} {sign} {other}" if w.chance(0.6) else f"{other} {sign} {name}"


@kind(3)
def binary(w: Writer) -> str:
    name = w.real()
    other = w.partner(name, "f")
    function = w.one_of(BINARY.split())
    pair = f"{name}, {other}" if w.chance(0.7) else f"{other}, {name}"
    return f"np.{function}({pair})"


@kind(2)
def quotient(w: Writer) -> str:
    above, below = w.any(), _positive(w)
    form = w.one_of(("{} / ({} + 0.3)", "np.divide({}, {} + 0.3)", "{} / -({} + 0.5)"))
    return form.format(above, below)


@kind(2)
def power(w: Writer) -> str:
    name = w.any()
    forms = (f"{name}**2", f"{name}**3", f"np.power({name}, 2)", f"{name}**0")
    forms += (f"pow({name}, 2)", f"{name}**1", f"{name}**2.0", f"1.3**np.tanh({name})")
    base = _positive(w)
    forms += (f"{base}**0.5", f"{base}**-1", f"{base}**{w.number()}")
    forms += (f"np.power({base}, np.tanh({w.real()}))", f"np.float_power({base}, 1.5)")
    return w.one_of(forms)


@kind(0.8)
def remainder(w: Writer) -> str:
    name = w.real(filled=True)
    c = w.number(0.4, 1.6)
    forms = (f"{name} % {c}", f"np.remainder({name}, {c})", f"np.fmod({name}, {c})")
    forms += (f"np.divmod({name}, {c})[1]", f"({name} // {c}) + {name}")
    forms += (f"np.modf({name})[0]", f"divmod({name}, {c})[1]")
    return w.one_of(forms)


@kind(0.7)
def in_place(w: Writer) -> str:
    """Augmented assignment: a new value for a tensor, the same array for NumPy."""
    name = w.real()
    other = w.partner(name, "f")
    sign = w.one_of(("+=", "-=", "*="))
    return f"OUT = {name} * 1.0\nOUT {sign} {other}"


@kind(0.5)
def at(w: Writer) -> str:
    """Methods of ufuncs."""
    name = w.real(1, filled=True)
    axis = w.axis(name)
    forms = (f"np.add.reduce({name}, axis={axis})",)
    forms += (f"np.multiply.accumulate({name}, axis={axis})",)
    forms += (f"np.maximum.reduce({name}, axis={axis})",)
    forms += (f"np.add.accumulate({name}, axis={axis})",)
    forms += (f"np.multiply.outer({name}, {w.literal((2,))})",)
    forms += (f"np.subtract.outer({w.literal((2,))}, {name})",)
    forms += (f"np.logaddexp.reduce({name}, axis={axis})",)
    return NumpyOnly(w.one_of(forms))


@kind(0.5)
def chosen(w: Writer) -> str:
    """`where=` and `dtype=` of ufuncs."""
    name = w.real()
    mask = w.mask(w.values[name].shape)
    forms = (f"np.exp({name}, where={mask}) * {mask}",)
    forms += (f"np.multiply({name}, {name}, dtype=np.float64)",)
    forms += (f"np.sin({name}, dtype=np.complex128)",)
    forms += (f"np.add({name}, {w.number()}, dtype=float)",)
    return NumpyOnly(w.one_of(forms[1:]))


@kind(0.7)
def clipped(w: Writer) -> str:
    name = w.real()
    low, high = w.number(-1.5, -0.2), w.number(0.2, 1.5)
    forms = (f"np.clip({name}, {low}, {high})", f"{name}.clip({low}, {high})")
    forms += (f"np.clip({name}, None, {high})", f"np.clip({name}, {low}, None)")
    shape = w.near_shape(w.values[name].shape)
    forms += (f"np.clip({name}, {w.literal(shape, -1, 0)}, {high})",)
    forms += (f"np.clip({w.number()}, {name}, {name} + 1.0)",)
    return w.one_of(forms)


@kind(0.4)
def cleaned(w: Writer) -> str:
    name = w.real()
    forms = (f"np.nan_to_num({name})", f"np.where(np.isnan({name}), 0.0, {name})")
    forms += (f"np.nan_to_num({name}, nan=1.0)", f"np.real_if_close({name})")
    return NumpyOnly(w.one_of(forms))
