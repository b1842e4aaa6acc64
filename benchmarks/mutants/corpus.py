"""The corpus: every wrong gradient that there is, and the right ones as controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .differing import differs
from .inputs import cast
from .kind import FRAMEWORKS, scaled
from .kinds import KINDS
from .natives import inputs, native
from .operations import HELD_OUT, OPERATIONS

FEW = 12  # operations
HALVES = ("tuned", "held-out", "both")


@dataclass(frozen=True)
class Subject:
    """An operation in a framework, with a gradient of a kind, or with the right one.

    `build()` makes the framework's own custom operation; `inputs(dtype, seed)` are
    what a user would give to a checker, as the framework's arrays.
    """

    operation: str
    framework: str
    kind: str | None = None

    @property
    def name(self) -> str:
        return f"{self.operation}/{self.kind or 'right'}/{self.framework}"

    @property
    def held_out(self) -> bool:
        return self.operation in HELD_OUT

    @property
    def dtypes(self) -> tuple[str, ...]:
        return ("float64", "float32") if self.kind is None else KINDS[self.kind].dtypes

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """The words for it, one of which a right diagnosis holds."""
        return () if self.kind is None else KINDS[self.kind].diagnosis

    def build(self, framework: str | None = None) -> Any:
        """The custom operation, fresh; in another framework if one is named."""
        forward, rule = self.definition()
        arity = len(OPERATIONS[self.operation].args)
        return native(framework or self.framework, forward, rule, arity=arity)

    def definition(self) -> tuple[Any, Any]:
        """The forward function and the rule, in `gradsmith.numpy`."""
        op = OPERATIONS[self.operation]
        if self.kind is None:
            return op.forward, op.rule
        kind = KINDS[self.kind]
        return scaled(op.forward, kind.scale), kind.make(op)

    def inputs(self, dtype: str = "float64", seed: int = 0) -> tuple[Any, ...]:
        return inputs(self.framework, self.arrays(dtype, seed))

    def arrays(self, dtype: str = "float64", seed: int = 0) -> tuple[Any, ...]:
        """The inputs as NumPy arrays."""
        op = OPERATIONS[self.operation]
        xs = op.sample(seed) if self.kind is None else KINDS[self.kind].inputs(op, seed)
        return cast(xs, dtype)


def corpus(
    *,
    half: str = "both",
    framework: str | None = None,
    kind: str | None = None,
    operation: str | None = None,
    every: bool = False,
) -> Iterator[Subject]:
    """The mutants: each pair of operation and kind in one framework of the four.

    The frameworks take turns, so that all have their share of every kind and of every
    operation; a kind of few operations is in all of them. With `every` each pair is
    there in each framework that has the kind.
    """
    for turn, how in enumerate(KINDS):
        names = [name for name in OPERATIONS if differs(name, how)]
        for i, name in enumerate(names):
            wheres = KINDS[how].frameworks
            if not every and len(names) > FEW:
                wheres = (wheres[(i + turn) % len(wheres)],)
            for where in wheres:
                subject = Subject(name, where, how)
                if _asked(subject, half, framework, kind, operation):
                    yield subject


def controls(
    *,
    half: str = "both",
    framework: str | None = None,
    operation: str | None = None,
) -> Iterator[Subject]:
    """The right gradients, each in every framework."""
    for name in OPERATIONS:
        for where in FRAMEWORKS:
            subject = Subject(name, where)
            if _asked(subject, half, framework, None, operation):
                yield subject


def _asked(
    subject: Subject,
    half: str,
    framework: str | None,
    kind: str | None,
    operation: str | None,
) -> bool:
    if half not in HALVES:
        raise ValueError(f"half is one of {', '.join(HALVES)}, not {half!r}")
    return (
        (half == "both" or (half == "held-out") == subject.held_out)
        and framework in (None, subject.framework)
        and kind in (None, subject.kind)
        and operation in (None, subject.operation)
    )
