"""Other inputs like the ones given: where wrong gradients hide.

Each scenario has the structure of the given inputs, other values or other sizes. One on
which the operation itself fails, or is not finite, is left out: it is outside of its
domain. If the arguments have bounds, values stay inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .pools import LARGE, is_local, pooled
from .problem import Problem
from .session import GIVEN
from .sizes import resized


@dataclass(frozen=True)
class Scenario:
    """A problem, and in words what is special about its inputs."""

    name: str
    problem: Problem
    even: bool = False  # equal elements are moved alike too, so that ties stay ties
    is_given: bool = False

    @property
    def is_inside(self) -> bool:
        """Whether no index is out of bounds, which some frameworks don't say."""
        return self.is_given or self.problem.is_inside()


def scenarios(
    given: Problem,
    problem: Problem,
    constants: Sequence[float],
    random: np.random.Generator,
) -> Iterator[Scenario]:
    """The given inputs first, then what is derived from them or some of them."""
    yield Scenario(GIVEN, given, is_given=True)
    xs = problem.xs
    pool = pooled(problem, constants, random) if is_local(problem, xs) else None
    if pool is not None:
        yield Scenario("a range of values", pool)
    for name, way in VALUES.items() if pool is None else ():
        new = [way(x, constants, random) for x in xs]
        yield Scenario(name, problem.at_moved(new), even=name in EVEN)
    for name, other in resized(problem, random):
        yield Scenario(name, other)


# --- values --------------------------------------------------------------------------

Way = Callable[[np.ndarray, Sequence[float], np.random.Generator], np.ndarray]


def _opposite(x: np.ndarray, constants: Sequence[float], random: object) -> np.ndarray:
    return -x


def _signs(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    return x * random.choice([-1.0, 1.0], x.shape)


def _magnitudes(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """With the signs given."""
    sign = np.where(x < 0, -1.0, 1.0)
    return sign * 10.0 ** random.uniform(-6, 1, x.shape)


def _small(x: np.ndarray, constants: Sequence[float], random: object) -> np.ndarray:
    return x * 1e-4


def _moderate(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    sign = np.where(x < 0, -1.0, 1.0)
    return sign * random.uniform(0.5, 8.0, x.shape)


def _zeros(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """Some of the elements are zero."""
    zero = random.random(x.shape) < 0.5
    zero.reshape(-1)[: x.size // 3] = True
    return np.where(zero, 0.0 * x, x)


def _nothing(x: np.ndarray, constants: Sequence[float], random: object) -> np.ndarray:
    return np.zeros_like(x)


def _ties(
    x: np.ndarray, constants: Sequence[float] = (), random: object = None
) -> np.ndarray:
    return np.full_like(x, x.reshape(-1)[0] if x.size else 0.0)


def _pairs(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """Each value twice, along every axis."""
    for axis, n in enumerate(x.shape):
        x = np.take(x, np.arange(n) // 2 * 2, axis)
    return x


def _large(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    sign = np.where(x < 0, -1.0, 1.0)
    return sign * random.choice(LARGE, x.shape)


def _thresholds(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """On both sides of each number in the code."""
    if not constants:
        return x
    near = np.array(constants)[random.integers(0, len(constants), x.shape)]
    side = 1 + random.choice([-1, 1], x.shape) * random.uniform(0.01, 0.3, x.shape)
    return random.choice([-1.0, 1.0], x.shape) * near * side


VALUES: dict[str, Way] = {
    "the opposite signs": _opposite,
    "mixed signs": _signs,
    "mixed magnitudes": _magnitudes,
    "small values": _small,
    "moderate values": _moderate,
    "some zeros": _zeros,
    "all zeros": _nothing,
    "equal values": _ties,
    "pairs of equal values": _pairs,
    "large values": _large,
    "values near the numbers in the code": _thresholds,
}
EVEN = ("equal values", "pairs of equal values", "all zeros", "large values")
