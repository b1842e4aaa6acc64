"""One custom gradient of a public package: where it is, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

RIGHT, EDGE, WRONG, SURROGATE = "right", "edge", "wrong", "surrogate"
TRUTHS = {
    RIGHT: "the derivative, wherever it was looked at",
    EDGE: "the derivative, but for isolated points, second order, or an argument",
    WRONG: "a bug: not the derivative, and nothing says that this is meant",
    SURROGATE: "not the derivative, on purpose",
}

Make = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A gradient, inputs to look at it, and the truth with its reason.

    `make` returns the function and its inputs; another state of the random generator
    gives inputs of the same kind.
    """

    name: str
    framework: str
    package: str
    source: str  # file:line in the package
    truth: str
    why: str
    make: Make
    x64: bool = False  # whether JAX runs with float64
    accuracy: float = 0.0  # of the value, where an iteration ends early
    data: tuple[int, ...] = ()  # arguments that get no gradient, and say so

    @property
    def version(self) -> str:
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    def build(self, seed: int = 0) -> tuple[Any, ...]:
        return self.make(np.random.default_rng(seed))


class Table:
    """The cases of a framework, in the order of the file."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.cases: list[Case] = []

    def __call__(
        self, package: str, source: str, truth: str, why: str, **options: Any
    ) -> Callable[[Make], Make]:
        """Decorate the function that makes a case; its name is the operation's."""
        assert truth in TRUTHS

        def add(make: Make) -> Make:
            operation = make.__name__.strip("_")
            name = f"{self.framework}/{package}/{operation}"
            case = Case(
                name, self.framework, package, source, truth, why, make, **options
            )
            self.cases.append(case)
            return make

        return add
