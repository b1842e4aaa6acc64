"""The NumPy functions that have no rule yet, each with its reason.

With a tensor that is followed they raise; with others they just run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_VALUES = (
    "its result is real or complex depending on the values; call the function of that "
    "name in np on x + 0j"
)

NOT_YET: dict[Any, str] = {
    np.emath.arccos: _VALUES,
    np.emath.arcsin: _VALUES,
    np.emath.arctanh: _VALUES,
    np.emath.log: _VALUES,
    np.emath.log10: _VALUES,
    np.emath.log2: _VALUES,
    np.emath.logn: _VALUES,
    np.emath.power: _VALUES,
    np.emath.sqrt: _VALUES,
}
