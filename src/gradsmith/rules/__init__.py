"""The rules as data, one file per family.

A family whose functions NumPy loads late (`np.fft`) or that belong to SciPy is read when
one of its functions is first met.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from .._errors import UnsupportedOperationError
from .._rule import RULES, Rule, name_of
from . import (  # noqa: F401  (each registers its rules)
    arithmetic,
    calculus,
    choosing,
    counting,
    creation,
    decompositions,
    einsum,
    elementwise,
    indexing,
    interpolation,
    joining,
    linalg,
    mapping,
    nondifferentiable,
    norms,
    ordering,
    padding,
    pointwise,
    polynomials,
    products,
    quantiles,
    reductions,
    shaping,
    spectral,
    statistics,
)

_LATE = {"numpy.fft": "fft", "scipy.special": "special"}
_loaded: set[str] = set()


def find_rule(fn: Any) -> Rule | None:
    """Return the rule of a function, or None."""
    rule = RULES.get(fn)
    if rule is None:
        for module, family in _LATE.items():
            if module in sys.modules and family not in _loaded:
                load(family)
        rule = RULES.get(fn)
    return rule


def load(family: str) -> None:
    """Read the rules of a late family."""
    _loaded.add(family)
    import_module(f"{__name__}.{family}")


_REDUCTIONS = {**reductions.METHODS, **ordering.METHODS}


def reduction_of(ufunc: np.ufunc, method: str) -> Any:
    """The function that `ufunc.reduce` or `ufunc.accumulate` stands for."""
    fn = _REDUCTIONS.get((ufunc, method))
    if fn is None:
        raise UnsupportedOperationError(
            f"{name_of(ufunc)}.{method} has no gradient rule; those that have: "
            + ", ".join(f"{name_of(u)}.{m}" for u, m in _REDUCTIONS)
        )
    return fn
