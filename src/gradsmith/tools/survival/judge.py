"""From the results of a transformation to a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .result import Fate


@dataclass(frozen=True)
class Reference:
    """What a kind of result should be: by the rule, and by differences of the body.

    Either is None where it isn't known.
    """

    rule: np.ndarray | None
    body: np.ndarray | None = None


@dataclass(frozen=True)
class Judge:
    """Compares results, with a tolerance that comes from the dtype."""

    tolerance: float

    def by_silencing(
        self,
        given: Any,
        silenced: Any,
        reference: Reference,
        *,
        own_forward: bool,
    ) -> tuple[Fate, str]:
        """The verdict from a result, and from the one with the rule times zero."""
        if given is None and silenced is None:
            return self._absent("None", reference)
        shape = np.shape(silenced if given is None else given)
        given, silenced = _array(given, shape), _array(silenced, shape)
        if not np.all(np.isfinite(given)):
            return Fate.WRONG, f"the result is {_words(given)}"
        size = _size(given, reference.rule)
        uses_rule = self._close(silenced, 0.0, size)
        if uses_rule and self._close(given, 0.0, size):
            return self._absent("zero", reference)
        if uses_rule:
            return self._by_rule(given, reference, size, own_forward)
        if self._close(given, silenced, size):
            return Fate.DROPPED, "the result is the same without the rule"
        return Fate.WRONG, "a part of the result does not come from the rule"

    def by_values(self, given: Any, reference: Reference) -> tuple[Fate, str]:
        """The verdict where the rule can't be silenced: only values can tell."""
        rule, body = reference.rule, reference.body
        if given is None:
            return self._absent("None", reference)
        given, size = np.asarray(given), _size(given, rule, body)
        if rule is None:
            return Fate.UNCLEAR, "there is nothing to compare it with"
        as_rule = self._close(given, rule, size)
        as_body = body is not None and self._close(given, body, size)
        if as_rule and body is not None and not as_body:
            return Fate.HONOURED, ""
        if as_rule:
            return (
                Fate.UNCLEAR,
                "as in eager mode, and as without any rule",
            )
        if as_body:
            return Fate.DROPPED, "the result is the derivative of the body"
        return Fate.WRONG, _unlike(given, rule)

    def _absent(self, what: str, reference: Reference) -> tuple[Fate, str]:
        rule = reference.rule
        if rule is None or self._close(rule, 0.0, 1.0):
            return Fate.UNCLEAR, f"the result is {what}, which shows nothing"
        return (
            Fate.DROPPED,
            f"the result is {what}; the rule gives {_words(rule)}",
        )

    def _by_rule(
        self, given: Any, reference: Reference, size: float, own_forward: bool
    ) -> tuple[Fate, str]:
        if reference.rule is None or self._close(given, reference.rule, size):
            return Fate.HONOURED, ""
        if own_forward:
            return (
                Fate.HONOURED,
                "the forward rule is no transpose of the reverse",
            )
        return Fate.WRONG, _unlike(given, reference.rule)

    def _close(self, a: Any, b: Any, size: float) -> bool:
        # A NaN is close to nothing.
        return bool(np.all(np.abs(np.asarray(a) - b) <= self.tolerance * size))


def _array(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape) if x is None else np.asarray(x, float)


def _size(*arrays: Any) -> float:
    return max(
        (float(np.max(np.abs(x), initial=0.0)) for x in arrays if x is not None),
        default=0.0,
    )


def _unlike(given: np.ndarray, rule: np.ndarray) -> str:
    return f"the result is {_words(given)}; the rule gives {_words(rule)}"


def _words(x: np.ndarray) -> str:
    return " ".join(f"{value:.4g}" for value in np.ravel(x)[:4])
