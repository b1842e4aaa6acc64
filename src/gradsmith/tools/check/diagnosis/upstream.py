"""The right gradient for another upstream gradient than the one that was given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .case import Case
from .evidence import Evidence
from .model import Diagnosis, format_factor, right_for, verified

LARGE = 2.0**20


def is_linear(found: Evidence, random: np.random.Generator) -> bool:
    """Whether the rule's gradient is linear in the upstream one."""
    u, w = found.upstream(random), found.upstream(random)
    parts = (found.rule(u), found.rule(w), found.rule(LARGE * (u - w)) / LARGE)
    size = max(float(np.max(np.abs(g), initial=0.0)) for g in parts)
    gaps = np.array([parts[0] - parts[1] - parts[2], parts[0] + found.rule(-u)])
    if size <= 1e-10 * np.max(np.abs(found.expected(u)), initial=0.0):
        return False  # rounding is all there is
    return float(np.max(np.abs(gaps))) <= 2.0**20 * found.point.flat.eps * size


def changed_upstream(case: Case) -> Diagnosis | None:
    """One of the usual changes of the upstream gradient."""
    for name, words, repair, change in _CHANGES:
        diagnosis = Diagnosis(name, words, repair, right_for(change))
        if all(verified(diagnosis, case, size=size) for size in (1.0, 0.25)):
            return diagnosis
    return _clipped(case)


_CHANGES: tuple[tuple[str, str, str, Callable[[np.ndarray], np.ndarray]], ...] = (
    (
        "upstream ignored",
        "the gradient doesn't depend on the upstream gradient: it is the one for an "
        "upstream gradient of ones",
        "multiply by the upstream gradient dy (for sums: before summing)",
        np.ones_like,
    ),
    (
        "rectified upstream",
        "negative elements of the upstream gradient are treated as zero",
        "use dy itself, not maximum(dy, 0): it has both signs",
        lambda u: np.maximum(u, 0),
    ),
    (
        "absolute upstream",
        "the sign of the upstream gradient is lost",
        "use dy itself, not abs(dy): it has both signs",
        np.abs,
    ),
    (
        "upstream's sign only",
        "only the sign of the upstream gradient is used",
        "use dy itself, not sign(dy)",
        np.sign,
    ),
)


def _clipped(case: Case) -> Diagnosis | None:
    """Each element, or the norm, of the upstream gradient is limited."""
    found = case.evidence
    w = np.sign(found.upstream(case.random))
    t, g = found.expected(w), found.rule(LARGE * w)
    size = float(t @ t)
    c = float(g @ t) / size if size > 0 else 0.0
    if not 0 < c < LARGE / 4:
        return None
    named = format_factor(c)
    norm = c * np.sqrt(w.size)
    for words, change in (
        (f"clipped to ±{named}", lambda u: np.clip(u, -c, c)),
        (
            f"scaled to a norm of at most {format_factor(norm)}",
            lambda u: u * min(1.0, norm / np.sqrt(u @ u)),
        ),
    ):
        diagnosis = Diagnosis(
            "clipped upstream",
            f"the upstream gradient is {words} before it is used",
            "use dy as it is; clip gradients where the optimizer uses them",
            right_for(change),
        )
        if all(verified(diagnosis, case, size=s * c) for s in (0.25, 1.0, 4.0)):
            return diagnosis
    return None
