"""The rules as data, one file per family.

The families that nearly every program meets are read at once, the others when a
function without a rule is first met: half of the import time. Those of `np.fft` and of
SciPy wait for their libraries.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.rule import RULES, Rule, name_of
from . import (  # noqa: F401  (they register)
    arithmetic,
    elementwise,
    indexing,
    shaping,
    trigonometry,
)

_LATE = {
    "numpy": [
        "calculus", "choosing", "counting", "creation", "decompositions", "einsum",
        "interpolation", "joining", "linalg", "mapping", "nondifferentiable", "norms",
        "ordering", "padding", "pointwise", "polynomials", "products", "quantiles",
        "reductions", "spectral", "statistics", "tensor_products",
    ],
    "numpy.fft": ["fft"],
    "scipy.special": ["special"],
}  # fmt: skip
_loaded: set[str] = set()


def find_rule(fn: Any) -> Rule | None:
    """Return the rule of a function, or None."""
    rule = RULES.get(fn)
    if rule is None and load_present():
        rule = RULES.get(fn)
    return rule


def load_present() -> bool:
    """Read the families of all libraries that are there; say if any was new."""
    new = [
        family
        for library, families in _LATE.items()
        if library in sys.modules
        for family in families
        if family not in _loaded
    ]
    for family in new:
        load(family)
    return bool(new)


def load(family: str) -> None:
    """Read the rules of a late family."""
    _loaded.add(family)
    import_module(f"{__name__}.{family}")


def reduction_of(ufunc: np.ufunc, method: str) -> Any:
    """The function that `ufunc.reduce` or `ufunc.accumulate` stands for."""
    from . import ordering, reductions

    methods = {**reductions.METHODS, **ordering.METHODS}
    if (ufunc, method) not in methods:
        raise UnsupportedOperationError(
            f"{name_of(ufunc)}.{method} has no gradient rule; those that have: "
            + ", ".join(f"{name_of(u)}.{m}" for u, m in methods)
        )
    return methods[ufunc, method]
