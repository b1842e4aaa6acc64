"""The rules as data, one file per family.

The families that nearly every program meets are read at once, the others when a
function without a rule is first met: half of the import time. Those of `np.fft` and of
SciPy wait for their libraries; some of SciPy's functions are made to see tensors.
"""

from __future__ import annotations

import sys
from importlib import import_module

from ..core.rule import LOADERS
from . import (  # noqa: F401  (they register)
    arithmetic,
    elementwise,
    indexing,
    scipy_hook,
    shaping,
    trigonometry,
)

_BY_LIBRARY = {
    "numpy": [
        "batching", "calculus", "choosing", "counting", "creation", "decompositions",
        "einsum", "interpolation", "joining", "linalg", "mapping", "nondifferentiable",
        "norms", "ordering", "padding", "pointwise", "polynomials", "products",
        "quantiles", "reductions", "sets", "spectral", "statistics", "tensor_products",
    ],
    "numpy.fft": ["fft"],
    "scipy.special": ["special"],
}  # fmt: skip
_loaded: set[str] = set()


def load_present() -> bool:
    """Read the families of all libraries that are there; say if any was new."""
    new = [
        family
        for library, families in _BY_LIBRARY.items()
        if library in sys.modules
        for family in families
        if family not in _loaded
    ]
    for family in new:
        load(family)
    return bool(new)


def load(family: str) -> None:
    """Read the rules of a family."""
    import_module(f"{__name__}.{family}")
    _loaded.add(family)  # not before: another thread would miss what is being read


LOADERS.append(load_present)
scipy_hook.install()
