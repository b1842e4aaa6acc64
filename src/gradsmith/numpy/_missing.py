"""Names that NumPy has and this namespace hasn't, and what to use instead."""

from __future__ import annotations

import numpy as np

_INSTEAD = {
    "array": "gnp.asarray",
    "vstack": "gnp.concatenate or gnp.stack",
    "hstack": "gnp.concatenate",
    "column_stack": "gnp.stack(..., axis=1)",
    "dstack": "gnp.stack",
    "append": "gnp.concatenate",
    "fliplr": "gnp.flip(x, 1)",
    "flipud": "gnp.flip(x, 0)",
    "rot90": "gnp.flip and gnp.swapaxes",
    "empty": "gnp.zeros",
    "identity": "gnp.eye",
    "cumulative_sum": "gnp.cumsum",
    "cumulative_prod": "gnp.cumprod",
    "allclose": "gnp.all(gnp.isclose(x, y))",
    "array_equal": "gnp.all(x == y)",
    "select": "nested gnp.where",
    "piecewise": "nested gnp.where",
    "vdot": "gnp.sum(gnp.conj(x) * y)",
    "fix": "gnp.trunc",
    "float_power": "gnp.power",
    "nonzero": "gnp.where with three arguments: its result has a fixed shape",
    "compress": "gnp.where: its result has a fixed shape",
    "unique": "the framework's own: its result has no fixed shape",
}


def missing(name: str) -> AttributeError:
    """The error for a name that is not here."""
    if name in _INSTEAD:
        words = f"gradsmith.numpy has no {name}: use {_INSTEAD[name]}"
    elif not name.startswith("_") and hasattr(np, name):
        words = (
            f"gradsmith.numpy has no {name}, which NumPy has: write it with the names "
            "that are here (dir(gnp)), call the framework's own function, or give a "
            "NumPy function its gradient with gs.python_op"
        )
    else:
        words = f"module 'gradsmith.numpy' has no attribute {name!r}"
    return AttributeError(words)
