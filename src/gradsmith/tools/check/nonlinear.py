"""What a rule does to the upstream gradient that it may not: found by trying.

Each answer is verified with fresh upstream gradients: the rule gives for u what it
gives for clip(u), say, and is bounded no further in than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .upstream import Probe

LARGE = 2.0**20
SMALL = 2.0**-20


@dataclass(frozen=True)
class Nonlinear:
    """The mistake by name, in words, and what to do."""

    name: str
    words: str
    repair: str


def recognised(probe: Probe) -> Nonlinear | None:
    """What the rule does to the upstream gradient, if it is one of the usual things."""
    looks = (_ignored, _absolute, _clipped, _clipped_by_norm)
    return next((found for look in looks if (found := look(probe))), None)


def _holds(probe: Probe, change: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether the rule gives for two u what it gives for change(u)."""
    us = [probe.upstream(), LARGE * probe.upstream()]
    return all(probe.same(probe.pull(u), probe.pull(change(u))) for u in us)


def _ignored(probe: Probe) -> Nonlinear | None:
    others = (lambda u: probe.upstream(), lambda u: -0.375 * u)
    if not (np.any(probe.g) and all(_holds(probe, other) for other in others)):
        return None
    return Nonlinear(
        "upstream ignored",
        "the gradient is the same whatever the upstream gradient is",
        "multiply by dy",
    )


def _absolute(probe: Probe) -> Nonlinear | None:
    if not _holds(probe, np.negative):
        return None
    return Nonlinear(
        "absolute upstream",
        "the sign of the upstream gradient doesn't count: abs(dy) gives the same",
        "use dy, with its sign",
    )


def _clipped(probe: Probe) -> Nonlinear | None:
    """Each element between two bounds, of which one may be none at all."""
    up = np.abs(probe.upstream())
    high, low = _bound(probe, up), _bound(probe, -up)
    if high is None and low is None:
        return None
    bottom = -np.inf if low is None else -low
    top = np.inf if high is None else high
    if not _holds(probe, lambda u: np.clip(u, bottom, top)):
        return None
    if max(-bottom, top) < SMALL:
        words = "only the signs of the upstream gradient count, not how large it is"
        return Nonlinear("upstream's sign only", words, "use dy as it is")
    if bottom == 0 or top == 0:
        words = "negative" if bottom == 0 else "positive"
        return Nonlinear(
            "rectified upstream",
            f"{words} elements of the upstream gradient count as zero",
            "use dy as it is: it may have either sign",
        )
    if low is None or high is None:
        words = f"cut {'above' if low is None else 'below'} at "
        words += _digits(top if low is None else bottom)
    else:
        words = f"clipped to {_digits(bottom)} ... {_digits(top)}"
    return Nonlinear("clipped upstream", f"the upstream gradient is {words}", _DECLARE)


_DECLARE = (
    "use dy as it is; to clip gradients on purpose, declare it: "
    "gs.custom_gradient(linear=False)"
)


def _bound(probe: Probe, u: np.ndarray) -> float | None:
    """From which size on the elements of u don't count any more."""
    v = LARGE * u
    g = probe.pull(v)
    return _least(probe, g, lambda c: np.clip(v, -c, c), _largest(v))


def _clipped_by_norm(probe: Probe) -> Nonlinear | None:
    v = LARGE * probe.upstream()
    norm = float(np.sqrt(np.sum(v * v)))
    bound = _least(probe, probe.pull(v), lambda c: v * (c / norm), norm)
    if not bound:
        return None
    return Nonlinear(
        "clipped upstream",
        f"the upstream gradient is scaled to a norm of at most {_digits(bound)}",
        _DECLARE,
    )


def _least(
    probe: Probe,
    g: np.ndarray,
    cut: Callable[[float], np.ndarray],
    top: float,
) -> float | None:
    """The least c for which cut(c) still gives g; None if it is the whole."""
    if not probe.same(probe.pull(cut(top / 2)), g):
        return None
    if probe.same(probe.pull(cut(0.0)), g):
        return 0.0
    low, high = SMALL * SMALL, top / 2
    while high > low * (1 + 1e-9):
        middle = float(np.sqrt(low * high))
        if probe.same(probe.pull(cut(middle)), g):
            high = middle
        else:
            low = middle
    return high


def _digits(x: float) -> str:
    return f"{x:.4g}"


def _largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))
