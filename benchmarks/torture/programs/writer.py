"""Writes one random NumPy program, line by line, and runs each line as it goes.

A line that plain NumPy refuses, whose value is not finite, too large or too near to a
singularity is dropped, so that what remains is a program that NumPy runs and that has a
derivative nearly everywhere. All choices come from one seed.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

LARGEST = 30.0  # of a value: differences lose as many digits as values have
SMALLEST = 1e-9  # what is less, but not 0, is rounding, and has no derivative
MOST = 120  # elements
SHAPES = ((), (1,), (2,), (3,), (4,), (2, 3), (3, 3), (1, 3), (3, 1), (2, 1, 3), (0,))
SHAPES += ((0, 2), (2, 2), (4, 2), (2, 2, 2), (3, 4))
WEIGHTS = (6, 2, 4, 8, 6, 8, 8, 4, 4, 3, 1, 1, 6, 5, 3, 4)


class Line(NamedTuple):
    """Statements, and the variable that they assign."""

    name: str
    text: str


class SkipLineError(Exception):
    """No value suits this kind of line."""


class Writer:
    """The values so far by name, and the choices that lines are made by."""

    def __init__(self, rng: random.Random, namespace: dict[str, Any]) -> None:
        self.rng = rng
        self.values = dict(namespace)  # what lines see
        self.names: list[str] = []  # of the values that lines take
        self.arrays: dict[str, np.ndarray] = {}  # literals, which stand above
        self.lines: list[Line] = []
        self.in_jax = True  # every line means the same in JAX

    # Choices

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def one_of(self, options: Sequence[Any]) -> Any:
        return self.rng.choice(options)

    def number(self, least: float = -2.0, most: float = 2.0) -> str:
        """A Python number; never an integer, where kinks lie."""
        return repr(round(self.rng.uniform(least, most), 3) + 0.0003)

    def shape(self) -> tuple[int, ...]:
        return self.rng.choices(SHAPES, WEIGHTS)[0]

    # Values

    def pick(self, suits: Callable[[Any], bool] = lambda v: True) -> str:
        """One of the values that suit, recent ones more often."""
        found = [name for name in self.names if suits(self.values[name])]
        if not found:
            raise SkipLineError
        at = int(len(found) * math.sqrt(self.rng.random()))
        return found[at]

    def real(self, least: int = 0, most: int = 9, *, filled: bool = False) -> str:
        return self.pick(
            lambda v: (
                v.dtype.kind == "f"
                and least <= v.ndim <= most
                and (v.size > 0 or not filled)
            )
        )

    def any(self, least: int = 0, most: int = 9, *, filled: bool = False) -> str:
        return self.pick(lambda v: least <= v.ndim <= most and (v.size or not filled))

    def within(self, low: float, high: float) -> str:
        """A real value inside an open interval, well away from its ends."""
        return self.pick(
            lambda v: (
                v.dtype.kind == "f"
                and v.size > 0
                and low + 0.05 < v.min()
                and v.max() < high - 0.05
            )
        )

    def partner(self, name: str, kinds: str = "fc") -> str:
        """What broadcasts with a value: another one, a literal or a number."""
        shape = self.values[name].shape
        found = [
            other
            for other in self.names
            if self.values[other].dtype.kind in kinds
            and _broadcasts(shape, self.values[other].shape)
        ]
        if found and self.chance(0.6):
            return self.one_of(found)
        if self.chance(0.4):
            return self.number()
        return self.literal(self.near_shape(shape))

    def near_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another one."""
        kept = [1 if self.chance(0.2) else n for n in shape]
        cut = self.rng.randint(0, len(kept)) if self.chance(0.3) else 0
        return tuple(kept[cut:])

    def literal(
        self, shape: tuple[int, ...], low: float = -1.5, high: float = 1.5
    ) -> str:
        draws = [self.rng.uniform(low, high) for _ in range(math.prod(shape))]
        return self.add_literal(np.array(draws).round(3).reshape(shape))

    def mask(self, shape: tuple[int, ...]) -> str:
        draws = [self.chance(0.7) for _ in range(math.prod(shape))]
        return self.add_literal(np.array(draws, bool).reshape(shape))

    def integers(self, shape: tuple[int, ...], below: int, *, signed: bool = True):
        low = -below if signed else 0
        draws = [self.rng.randrange(low, below) for _ in range(math.prod(shape))]
        return self.add_literal(np.array(draws, np.intp).reshape(shape))

    def add_literal(self, value: np.ndarray) -> str:
        name = f"c{len(self.arrays)}"
        value.setflags(write=False)
        self.arrays[name] = self.values[name] = value
        return name

    # Arguments

    def axis(self, name: str) -> int:
        ndim = self.values[name].ndim
        if not ndim:
            raise SkipLineError
        return self.rng.randrange(-ndim, ndim)

    def axes(self, name: str) -> str:
        """`axis=` of a reduction: none, one or several."""
        ndim = self.values[name].ndim
        if not ndim or self.chance(0.3):
            return self.one_of(
                ("None", "None", "()") if self.chance(0.2) else ("None",)
            )
        if self.chance(0.6):
            return str(self.axis(name))
        count = self.rng.randint(1, ndim)
        return repr(tuple(self.rng.sample(range(ndim), count)))

    # Lines

    def add(self, line: str, *, in_jax: bool = True) -> bool:
        """Run a line; keep it if its results are of use."""
        before = set(self.values)
        out = f"v{len(self.lines)}"
        source = line.replace("OUT", out) if "OUT" in line else f"{out} = {line}"
        values = self.values
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(source, values)
        except Exception:
            self._forget(before)
            return False
        found = values.get(out)
        if not is_of_use(found):
            self._forget(before)
            return False
        self._forget(before | {out})
        self.lines.append(Line(out, source))
        self.names.append(out)
        self.in_jax = self.in_jax and in_jax
        return True

    def _forget(self, kept: set[str]) -> None:
        for name in [name for name in self.values if name not in kept]:
            del self.values[name]


def is_of_use(value: Any) -> bool:
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
        return False
    if value.size > MOST or value.ndim > 4:
        return False
    size = np.abs(value)
    rounding = (size > 0) & (size < SMALLEST)
    return value.size == 0 or bool(size.max() < LARGEST and not rounding.any())


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)
