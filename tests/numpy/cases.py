"""What every function of the namespace is called with: one table for all frameworks.

A case is a function's name, its arguments, and its options. NumPy arrays among them are
given to a framework as its own. `slope` says that the function has a derivative there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    slope: bool = False
    # Signs of vectors are a framework's own, so that sizes are compared.
    sizes: bool = False

    def __str__(self) -> str:
        shown = [describe(x) for x in self.args]
        shown += [f"{k}={describe(x)}" for k, x in self.options.items()]
        return f"{self.name}({', '.join(shown)})"


def describe(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    return f"[{', '.join(map(describe, x))}]" if isinstance(x, list) else repr(x)


def case(name: str, *args: Any, **options: Any) -> Case:
    return Case(name, args, options)


def smooth(name: str, *args: Any, **options: Any) -> Case:
    return Case(name, args, options, slope=True)


def normal(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape)


def between(low: float, high: float, *shape: int) -> np.ndarray:
    return _rng.uniform(low, high, size=shape)


def ints(low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return _rng.integers(low, high, size=shape).astype(dtype)


ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 0.5])
WHOLE = np.array([0, 1, 2, 3, 7], np.int32)
SIGNED = np.array([-7, -2, -1, 0, 1, 2, 6], np.int32)

# Unary functions and a place where each has a derivative.
UNARY = {
    "absolute": (-2, -1), "abs": (-2, -1), "negative": (-2, 2), "positive": (-2, 2),
    "reciprocal": (0.5, 2), "square": (-2, 2), "sqrt": (0.5, 2), "cbrt": (-2, -1),
    "exp": (-2, 2), "exp2": (-2, 2), "expm1": (-2, 2), "log": (0.5, 2),
    "log2": (0.5, 2), "log10": (0.5, 2), "log1p": (0.5, 2), "sin": (-2, 2),
    "cos": (-2, 2), "tan": (-1, 1), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9),
    "arctan": (-2, 2), "sinh": (-2, 2), "cosh": (-2, 2), "tanh": (-2, 2),
    "arcsinh": (-2, 2), "arccosh": (1.5, 3), "arctanh": (-0.9, 0.9),
    "deg2rad": (-90, 90), "rad2deg": (-2, 2), "conjugate": (-2, 2), "sign": (0.5, 2),
    "floor": (0.1, 0.9), "ceil": (0.1, 0.9), "trunc": (0.1, 0.9), "rint": (0.6, 0.9),
}  # fmt: skip
_JUMPS = ("sign", "floor", "ceil", "trunc", "rint")
_COMPLEX = (
    "absolute", "negative", "square", "sqrt", "exp", "log", "sin", "cos", "tanh",
    "conjugate", "reciprocal", "sign", "positive",
)  # fmt: skip


def unary() -> Iterator[Case]:
    for name, (low, high) in UNARY.items():
        x = between(low, high, 2, 3)
        yield Case(name, (x,), slope=name not in _JUMPS)
        yield case(name, x.astype(np.float32))
        yield case(name, x.astype(np.float16))
        yield case(name, x[0, 0])
        yield case(name, ODD)
        if name != "reciprocal":
            yield case(name, WHOLE + 1 if name.startswith("log") else WHOLE)
        if name not in ("negative", "positive", "sign", "absolute", "abs", "floor"):
            yield case(name, np.array([1, 2, 3], np.int8))
        if name in _COMPLEX:
            yield case(name, x + 1j * between(low, high, 2, 3))
    for name in ("isnan", "isinf", "isfinite", "signbit", "logical_not"):
        yield case(name, ODD)
        yield case(name, SIGNED)
    yield case("isnan", ODD + 1j)
    yield case("isfinite", ODD.astype(np.complex64))
    for x in (SIGNED, np.array([True, False]), SIGNED.astype(np.int8)):
        yield case("invert", x)
    yield case("logical_not", np.array([True, False]))
    yield case("rint", np.array([0.5, 1.5, 2.5, -0.5, -1.5]))


# Binary functions and places of both arguments where they have derivatives.
BINARY = {
    "add": ((-2, 2), (-2, 2)), "subtract": ((-2, 2), (-2, 2)),
    "multiply": ((-2, 2), (-2, 2)), "divide": ((-2, 2), (1, 2)),
    "power": ((0.5, 2), (-2, 2)), "remainder": ((4.1, 4.9), (1.9, 2)),
    "fmod": ((4.1, 4.9), (1.9, 2)), "floor_divide": ((4.1, 4.9), (1.9, 2)),
    "arctan2": ((-2, 2), (1, 2)), "hypot": ((-2, -1), (1, 2)),
    "logaddexp": ((-2, 2), (-2, 2)), "logaddexp2": ((-2, 2), (-2, 2)),
    "maximum": ((-2, 2), (-2, 2)), "minimum": ((-2, 2), (-2, 2)),
    "fmax": ((-2, 2), (-2, 2)), "fmin": ((-2, 2), (-2, 2)),
    "copysign": ((-2, -1), (1, 2)), "heaviside": ((1, 2), (1, 2)),
}  # fmt: skip
COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_FLOAT_ONLY = (
    "arctan2", "hypot", "logaddexp", "logaddexp2", "copysign", "heaviside", "divide",
)  # fmt: skip


def binary() -> Iterator[Case]:
    odd = [each.ravel() for each in np.meshgrid(ODD, ODD)]
    for name, (first, second) in BINARY.items():
        x1, x2 = between(*first, 2, 3), between(*second, 3)
        yield Case(name, (x1, x2), slope=name not in ("floor_divide", "heaviside"))
        yield case(name, x1.astype(np.float32), 2.0)
        yield case(name, 2, x2.astype(np.float32))
        yield case(name, x1.astype(np.float16), x2.astype(np.float32))
        yield case(name, x1.astype(np.float32), WHOLE[1:4])
        yield case(name, x1[0, 0], np.float32(2.0))
        if name not in ("fmod", "remainder", "floor_divide", "power"):
            yield case(name, *odd)
        if name not in _FLOAT_ONLY:
            yield case(name, SIGNED, np.full(7, 3, np.int32))
            yield case(name, WHOLE, 2)
    for name in ("floor_divide", "remainder", "fmod"):
        x1, x2 = (each.ravel() for each in np.meshgrid(SIGNED, SIGNED[SIGNED != 0]))
        yield case(name, x1, x2)
        yield case(name, x1 * 0.75, x2 * 0.5)
    for name in COMPARED:
        yield case(name, *odd)
        yield case(name, WHOLE, 2.5)
        yield case(name, np.float32(0.1) * WHOLE, WHOLE)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield case(name, SIGNED, SIGNED[::-1].copy())
        yield case(name, ODD, True)
    flags = np.array([True, True, False]), np.array([True, False, False])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield case(name, SIGNED, 6)
        yield case(name, *flags)
    for name in ("left_shift", "right_shift"):
        yield case(name, SIGNED, np.array([0, 1, 2, 3, 4, 1, 1], np.int32))
    for name in ("add", "multiply", "maximum", "minimum", "power"):
        yield case(name, *flags)
    yield case("power", normal(3) + 1j * normal(3), 2.0)
    yield case("multiply", normal(3).astype(np.float32), 2j)


def other_elementwise() -> Iterator[Case]:
    x = normal(2, 3)
    yield smooth("where", x > 0, x, x[0])
    yield case("where", x > 0, 1.0, 0.0)
    yield case("where", WHOLE, x[0, 0].astype(np.float32), 0)
    yield case("where", WHOLE > 1, WHOLE, 0.5)
    yield smooth("clip", x, -0.5, 0.5)
    yield case("clip", x.astype(np.float32), 0, None)
    yield case("clip", x, max=0.5)
    yield case("clip", x, np.array(0.5), np.array([-0.5, 0.0, 0.5]))
    yield case("clip", SIGNED, -1, 1)
    yield case("round", ODD)
    yield case("round", 10 * x, 1)
    yield case("round", 100 * x, decimals=-1)
    yield case("round", SIGNED)
    yield case("round", x + 2.3j)
    z = x + 1j * normal(2, 3)
    for name in ("real", "imag", "angle"):
        yield case(name, z)
        yield case(name, x)
    yield case("angle", z.astype(np.complex64), deg=True)
    yield case("nan_to_num", ODD)
    yield case("nan_to_num", ODD.astype(np.float32), nan=1.0, posinf=2.0, neginf=-3.0)
    yield case("nan_to_num", WHOLE)
    yield smooth("sinc", x)
    yield case("sinc", np.array([0.0, 1e-6, 1e-3, 0.5, 1.0]))
    yield case("sinc", WHOLE)
    yield case("isclose", ODD, ODD + 1e-9)
    yield case("isclose", x, 0.5, rtol=2.0)


ELEMENTWISE = [*unary(), *binary(), *other_elementwise()]
