"""Cases of the elementwise rules: made from each rule's declared domain."""

from __future__ import annotations

import numpy as np

from gradsmith._rule import RULES, Elementwise
from tests.rules.harness import Case

_rng = np.random.default_rng(7)
CASES: list[Case] = []


def _inside(domain, shape):
    """Points well inside the domain, away from whole numbers and from 0."""
    low, high = max(domain[0], -2.5), min(domain[1], 2.5)
    width = high - low
    x = _rng.uniform(low + 0.1 * width, high - 0.1 * width, shape)
    return x + 0.07 * width * (np.abs(x - np.round(x)) < 0.05)
