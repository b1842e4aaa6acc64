"""The right gradient, computed with fewer digits than its dtype has.

The error is of the size of the lower precision, and digits are missing for sure: the
gradient's own values are numbers of that precision, or it doesn't change at all when
the upstream gradient or the argument changes by less than that precision.
"""

from __future__ import annotations

import numpy as np

from .case import Case
from .evidence import Evidence
from .model import Diagnosis

# Digits after the leading one, in bits.
LOWER = {"float32": 23, "float16": 10, "bfloat16": 7}
LOST, LARGEST = 64.0, 0.02  # units that a formula may lose, and relative to it all
MOST = 0.75  # of the elements have to show it


def lower_precision(case: Case) -> Diagnosis | None:
    for name, bits in LOWER.items():
        eps = 2.0**-bits
        if eps <= 4 * case.point.flat.eps:
            continue
        if all(_as_small(each, eps, case.random) for each in case.points):
            how = _shown(case, eps)
            if how:
                return Diagnosis(
                    "precision lost",
                    f"the gradient is right only to the digits of {name}: {how}",
                    f"compute the gradient in the dtype of the argument, not in {name}",
                )
    return None


def _as_small(found: Evidence, eps: float, random: np.random.Generator) -> bool:
    """Whether the error is what rounding to the lower precision explains."""
    u = found.upstream(random)
    g, t = found.rule(u), found.expected(u)
    size = np.sqrt((u * u) @ (found.truth * found.truth))
    size = np.maximum(size, np.max(size, initial=0.0) / 8)
    return bool(
        np.all(np.abs(g - t) <= min(LOST * eps, LARGEST) * size + found.tolerance(u))
    )


def _shown(case: Case, eps: float) -> str | None:
    """In which way digits are missing."""
    found = case.evidence
    u = found.upstream(case.random) * (1 + 0.3 * eps * _third(case, len(found.rows)))
    g = found.rule(u)
    some = g != 0
    if not np.any(some):
        return None
    if np.mean(_rounded(g[some], eps) == g[some]) >= MOST:
        return "its values have no other digits"
    if np.mean(found.rule(u * (1 + eps / 64))[some] == g[some]) >= MOST:
        return "it doesn't depend on the other digits of the upstream gradient"
    if _still(case, eps, some):
        return "it doesn't depend on the other digits of the arguments"
    return None


def _still(case: Case, eps: float, some: np.ndarray) -> bool:
    """Whether the rule ignores small changes of the arguments, though they matter."""
    found, other = case.evidence, case.fresh
    if other is None or other.truth.shape != found.truth.shape:
        return False
    if found.same(other.truth):
        return False
    x = _rounded(found.point.x, eps)
    full = np.zeros(found.point.y.size)
    full[found.rows] = found.upstream(case.random)
    points = [case.point_at(x * factor) for factor in (1, 1 + eps / 64, 1 - eps / 64)]
    pulled = [p.linearization.pull(full)[found.columns][some] for p in points if p]
    return any(np.mean(g == pulled[0]) >= MOST for g in pulled[1:])


def _third(case: Case, n: int) -> np.ndarray:
    return case.random.uniform(0.5, 1.0, n)


def _rounded(x: np.ndarray, eps: float) -> np.ndarray:
    """To the nearest number of the lower precision, whatever its size."""
    digits, power = np.frexp(x)
    return np.ldexp(np.round(digits * (2 / eps)) * (eps / 2), power)
