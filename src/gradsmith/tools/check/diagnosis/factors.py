"""Factors that a term of a gradient may have, as arrays of the argument's shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..flat import Part
from .evidence import Evidence

Named = tuple[str, np.ndarray]


def candidate_factors(
    found: Evidence, coefficient: np.ndarray | None = None
) -> list[Named]:
    """By name: functions of x, y, the other arguments and the rule's own factor g."""
    with np.errstate(all="ignore"):
        first = [*_of_argument(found), *_of_outputs(found), *_of_others(found)]
        if coefficient is not None:
            g = coefficient  # g alone would be a factor, not a term
            first += [("g²", g**2), ("g (1 - g)", g * (1 - g)), ("1 - g²", 1 - g * g)]
        return [*first, *_products(found, first)]


def candidate_weights(found: Evidence) -> list[Named]:
    """The ones for a sum over the outputs' elements, in the shape of the outputs."""
    one = np.ones(len(found.rows))
    y = found.point.y[found.rows]
    named = [("dy", one), ("dy y", y), ("dy y²", y * y)]
    spread = [(p.name, _spread(p, found)) for p in found.point.flat.arguments.parts]
    others = [(name, z) for name, z in spread if z is not None]
    with np.errstate(all="ignore"):
        for name, z in others:
            named += [(f"dy {name}", z), (f"dy {name}²", z * z)]
            named += [(f"dy y {name}", y * z), (f"dy y / {name}", y / z)]
            named += [(f"dy (y - {name})", y - z)]
        for name, c in _centred(found):
            named += [
                (f"dy {name}", c),
                *((f"dy {name} {n}", c * z) for n, z in others),
            ]
    return [(name, a) for name, a in named if np.all(np.isfinite(a))]


def _centred(found: Evidence) -> Iterator[Named]:
    """The argument without its mean along an axis, if the output has its shape."""
    x, outputs = found.part, found.point.linearization.outputs.parts
    if len(outputs) != 1 or outputs[0].shape != x.shape or x.is_complex:
        return
    values = x.array(found.point.x)
    for axis in range(values.ndim):
        rest = values - np.mean(values, axis=axis, keepdims=True)
        yield f"({x.name} - mean({x.name}, axis={axis}))", rest.ravel()[found.rows]


def _of_argument(found: Evidence) -> Iterator[Named]:
    x = found.point.x[found.columns]
    name = found.part.name
    yield "1", np.ones_like(x)
    yield name, x
    yield f"{name}²", x * x
    yield f"1/{name}", 1 / x
    yield f"1/{name}²", 1 / x**2
    yield f"|{name}|", np.abs(x)
    yield f"sign({name})", np.sign(x)
    yield f"sqrt({name})", np.sqrt(np.abs(x))
    yield f"log({name})", np.log(np.abs(x))
    yield f"exp({name})", np.exp(x)
    yield f"exp(-{name})", np.exp(-x)
    yield f"exp(-{name}²)", np.exp(-x * x)
    yield f"exp(-{name}²/2)", np.exp(-x * x / 2)
    yield f"sin({name})", np.sin(x)
    yield f"cos({name})", np.cos(x)
    yield f"tanh({name})", np.tanh(x)
    yield f"tanh({name})²", np.tanh(x) ** 2
    s = 1 / (1 + np.exp(-x))
    yield f"sigmoid({name})", s
    yield f"sigmoid({name})²", s * s
    yield f"sigmoid({name}) (1 - sigmoid({name}))", s * (1 - s)
    yield f"1/(1 + {name}²)", 1 / (1 + x * x)
    yield f"x in where({name} > 0)", (x > 0).astype(float)


def _of_outputs(found: Evidence) -> Iterator[Named]:
    """The output that an element goes into, if it is one, or of the same shape."""
    y = _own_output(found)
    if y is not None:
        yield "y", y
        yield "y²", y * y
        yield "y (1 - y)", y * (1 - y)
        yield "1 - y²", 1 - y * y
        yield "1/y", 1 / y
        yield "1/y²", 1 / y**2


def _own_output(found: Evidence) -> np.ndarray | None:
    y = found.point.y[found.rows]
    if found.truth.shape[0] == found.truth.shape[1]:
        return y
    some = np.abs(found.truth) > 0
    if np.any(np.sum(some, axis=0) > 1):
        return None
    return y[np.argmax(some, axis=0)]


def _of_others(found: Evidence) -> Iterator[Named]:
    """The other arguments, broadcast to this one's shape; matrices times this one."""
    flat, shape = found.point.flat, found.part.shape
    if len(found.columns) != found.part.size or found.part.is_complex:
        return
    x = found.part.array(found.point.x)
    for part in flat.arguments.parts:
        if part == found.part or part.is_complex:
            continue
        z = part.array(found.point.x)
        try:
            wide = np.broadcast_to(z, shape).ravel()
        except ValueError:
            wide = None
        if wide is not None:
            yield from (
                (part.name, wide),
                (f"{part.name}²", wide**2),
                (f"1/{part.name}", 1 / wide),
                (f"log({part.name})", np.log(np.abs(wide))),
            )
        if z.ndim == 2 and x.ndim in (1, 2):
            yield from _matrix_products(part.name, found.part.name, z, x)


def _matrix_products(A: str, b: str, z: np.ndarray, x: np.ndarray) -> Iterator[Named]:
    for name, matrix in ((A, z), (f"{A}.T", z.T)):
        if matrix.shape[1] == x.shape[0] and (matrix @ x).shape == x.shape:
            yield f"{name} @ {b}", (matrix @ x).ravel()
        fits = x.ndim == 2 and x.shape[1] == matrix.shape[0]
        if fits and (x @ matrix).shape == x.shape:
            yield f"{b} @ {name}", (x @ matrix).ravel()


def _products(found: Evidence, single: list[Named]) -> Iterator[Named]:
    """Each with x, and with each of the other arguments."""
    x = found.point.x[found.columns]
    plain = {part.name for part in found.point.flat.arguments.parts}
    by = [(found.part.name, x)]
    wanted = {*plain, "y", f"sigmoid({found.part.name})"} - {found.part.name}
    by += [(n, a) for n, a in single if n in wanted]
    by += [(f"{found.part.name} {n}", x * a) for n, a in by if n.startswith("sigm")]
    for name, a in by:
        for other, b in single:
            if other != "1":
                yield f"{name} {other}", a * b


def _spread(part: Part, found: Evidence) -> np.ndarray | None:
    """An argument in the shape of the only output."""
    outputs = found.point.linearization.outputs.parts
    if len(outputs) != 1 or part.is_complex:
        return None
    try:
        z = np.broadcast_to(part.array(found.point.x), outputs[0].shape)
    except ValueError:
        return None
    return z.ravel()[found.rows]
