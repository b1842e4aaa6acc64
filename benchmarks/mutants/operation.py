"""An operation of the corpus as plain data: forward, its right rule, wrong variants.

Everything is written once, with `gradsmith.numpy`; `natives` makes each framework's
own custom operation of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from .inputs import Arg

Rule = Callable[..., Any]
REGISTRY: dict[str, Operation] = {}


@dataclass
class Operation:
    """A correct operation; its decorators give the rule and the wrong variants."""

    name: str
    family: str
    args: tuple[Arg, ...]
    forward: Callable[..., Any]
    rule: Rule = field(init=False)
    unreduced: Rule | None = None  # the rule before sums over broadcast axes
    variants: dict[str, Rule] = field(default_factory=dict)

    def gradient(self, rule: Rule) -> Rule:
        """Give the rule: `rule(dy, y, *xs)`, one gradient or a tuple."""
        self.rule = tupled(rule)
        return rule

    def partials(self, rule: Rule) -> Rule:
        """Give the rule of an operation that broadcasts, without the sums."""
        self.unreduced = tupled(rule)
        self.rule = reduced(self.unreduced)
        return rule

    def variant(self, kind: str) -> Callable[[Rule], Rule]:
        """Give a wrong rule of the kind of this name."""

        def take(rule: Rule) -> Rule:
            wrong = tupled(rule)
            self.variants[kind] = reduced(wrong) if self.unreduced else wrong
            return rule

        return take

    def sample(self, seed: int, **sizes: Any) -> tuple[np.ndarray, ...]:
        """Inputs inside the domain, the same for the same seed: float64 and int64."""
        rng = np.random.default_rng([seed, *map(ord, self.name)])
        same = sizes.pop("same", False)
        shapes = [self.args[0].shape if same else arg.shape for arg in self.args]
        return tuple(
            arg.draw(rng, shape, **sizes)
            for arg, shape in zip(self.args, shapes, strict=True)
        )

    @property
    def floats(self) -> list[int]:
        """The places of the arguments that have a gradient."""
        return [i for i, arg in enumerate(self.args) if not arg.integer]


def define(family: str, *args: Arg) -> Callable[[Callable[..., Any]], Operation]:
    """Make an operation of the function below, and register it."""

    def make(forward: Callable[..., Any]) -> Operation:
        name = forward.__name__
        if name in REGISTRY:
            raise ValueError(f"the corpus has an operation {name!r} already: rename it")
        REGISTRY[name] = Operation(name, family, args, forward)
        return REGISTRY[name]

    return make


def tupled(rule: Rule) -> Rule:
    def with_tuple(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = rule(dy, y, *xs)
        return dxs if isinstance(dxs, tuple) else (dxs,)

    return with_tuple


def reduced(rule: Rule) -> Rule:
    """The rule followed by sums over the axes along which an argument was broadcast."""

    def summed(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = rule(dy, y, *xs)
        return tuple(
            gnp.unbroadcast(dx, gnp.shape(x)) for dx, x in zip(dxs, xs, strict=True)
        )

    return summed
