"""Control flow on values, loops, unpacking, functions and methods of Python."""

from __future__ import annotations

from ..writer import Writer
from ._table import NumpyOnly, kind


@kind(1.2)
def branch(w: Writer) -> str:
    name = w.real()
    test = w.one_of((f"np.sum({name}) > 0.1", f"({name}.sum() < 0.7).item()"))
    test = w.one_of((test, f"np.all({name} < 2.0)", f"np.mean({name} > 0) > 0.3"))
    return f"OUT = np.sin({name}) if {test} else {name} * {w.number()}"


@kind(0.7)
def loop(w: Writer) -> str:
    name = w.real(1, filled=True)
    forms = (f"OUT = 0.0\nfor row in {name}:\n    OUT = OUT * 0.5 + np.tanh(row)",)
    forms += (f"OUT = {name}\nfor _ in range(3):\n    OUT = np.sin(OUT) + {name}",)
    forms += (f"OUT = np.stack([np.sin(row) * i for i, row in enumerate({name})])",)
    forms += (f"OUT = sum(row**2 for row in {name})",)
    pairs = f"zip({name}, {name}[::-1])"
    forms += (f"OUT = {name}[0]\nfor a, b in {pairs}:\n    OUT = OUT + a * b",)
    forms += (f"OUT = {name}\nwhile np.max(np.abs(OUT)) > 0.9:\n    OUT = OUT * 0.7",)
    return w.one_of(forms)


@kind(0.6)
def unpack(w: Writer) -> str:
    name = w.real(1, filled=True)
    first = f"a, *rest = {name}\nOUT = a * 2.0 + len(rest)"
    ends = f"OUT = {name}[0] * {name}[-1]"
    numbered = f"d = {{'a': {name}, 'b': {name} * 2.0}}\nOUT = d['a'] * d['b']"
    return w.one_of((first, ends, numbered))


@kind(0.5)
def builtin(w: Writer) -> str:
    name = w.real()
    forms = (f"abs({name})", f"-{name}", f"+{name}", f"pow({name}, 3)")
    scalar = f"np.sum({name})"
    forms += (f"max({scalar}, {w.number()})", f"min({scalar}, {w.number()})")
    forms += (f"sum([{name}, {name} * 2.0])", f"(lambda t: t * t)({name})")
    forms += (f"sorted([{scalar}, {scalar} + 1.0, {scalar} * 0.5])[1]",)
    return w.one_of(forms)


@kind(0.4)
def recursion(w: Writer) -> str:
    name = w.real()
    body = f"def f(t, n):\n    return t if n == 0 else np.tanh(f(t, n - 1) + {name})\n"
    return f"{body}OUT = f({name}, 3)"


@kind(0.4)
def closure(w: Writer) -> str:
    name, other = w.real(), w.real()
    return f"def g(t):\n    return t * np.cos({other})\nOUT = g(g(np.sum({name})))"


@kind(0.4)
def functions_of_python(w: Writer) -> str:
    name = w.real()
    reduce = f"functools.reduce(lambda a, b: a * b, [{name}, {name} + 1.0, 0.5])"
    forms = (reduce, f"operator.mul({name}, {name})", f"operator.neg({name})")
    forms += (f"np.stack(list(map(np.sin, [{name}, {name} * 2.0])))",)
    return NumpyOnly(w.one_of(forms))


@kind(0.3)
def filled(w: Writer) -> str:
    """Lists that are filled, as an array would be in place."""
    name = w.real(1, filled=True)
    n = w.values[name].shape[0]
    body = f"rows = [None] * {n}\nfor i in range({n}):\n    rows[i] = {name}[i] * i\n"
    return f"{body}OUT = np.stack(rows)"
