"""Names that NumPy has and this namespace hasn't, and what to use instead."""

from __future__ import annotations

import numpy as np

_INSTEAD = {
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


def missing(name: str, module: str = "gradsmith.numpy") -> AttributeError:
    """The error for a name that is not in a module of this namespace."""
    part = module.removeprefix("gradsmith.numpy").removeprefix(".")
    if name in _INSTEAD and not part:
        words = f"gradsmith.numpy has no {name}: use {_INSTEAD[name]}"
    elif not name.startswith("_") and _is_known(name, part):
        short = f"gnp.{part}" if part else "gnp"
        origin = "SciPy" if part == "special" else "NumPy"
        words = (
            f"{module} has no {name}, which {origin} has: write it with the names "
            f"that are here (dir({short})), call the framework's own function, or give "
            f"{origin}'s function its gradient with gs.python_op"
        )
    else:
        words = f"module {module!r} has no attribute {name!r}"
    return AttributeError(words)


def _is_known(name: str, part: str) -> bool:
    if part != "special":
        return hasattr(np.linalg if part else np, name)
    try:
        import scipy.special
    except ImportError:
        return False
    return hasattr(scipy.special, name)
