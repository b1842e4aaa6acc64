"""How much a finding weighs: a mistake, a limit, or something done on purpose.

A gradient is wrong if it is refuted at the given inputs, or at others of the same kind.
What holds elsewhere, or for something that nobody asked for, is a limit.
"""

from __future__ import annotations

import numpy as np

from ...operations.info import OperationInfo, of_operation
from .flat import EPS
from .model import Finding

# Diagnoses of rules that nobody writes by accident
CLIPPED, RECTIFIED = "clipped upstream", "rectified upstream"
NORMALIZED = "normalized upstream"
NONLINEAR = (CLIPPED, RECTIFIED, NORMALIZED, "masked upstream")
SURROGATES = (
    "piecewise constant", "jumps", "identity", "clamp", "passed on", *NONLINEAR,
    "right on average", "sample", "stated", "for the rule", "steps",
)  # fmt: skip
ROUNDINGS = 8.0
SOLVED = 1e-5
ROUGH, MOST = 32.0, 1e-3  # times what differences resolve (BDF to 1e-6: 11), at most


def is_surrogate(finding: Finding) -> bool:
    """Whether the rule is not the derivative by its looks on purpose."""
    return finding.diagnosis in SURROGATES


def declaration(info: OperationInfo, *, linear: bool) -> str:
    """How to say that a rule is not the derivative, or not linear, on purpose."""
    if of_operation(info.call) is not None:
        words = 'surrogate="why"' if linear else "linear=False"
        return f"@gs.custom_gradient({words}), or @gs.operation({words})"
    return (
        f'gs.check.options(surrogate="why")({info.name}, ...); for pytest --gradsmith '
        f'`gradsmith_ignore = ["{info.name}"]` in the configuration of pytest; for the '
        f"command line --surrogate {info.name}"
    )


def is_minor(error: float, dtypes: tuple[str, ...], solved: float = 0.0) -> bool:
    """Whether a relative error is nothing in the precision of the given inputs.

    What solves something by iteration stops at some accuracy: `solved`.
    """
    return error < max(solved, ROUNDINGS * max(EPS.get(name, 0.0) for name in dtypes))


def solved_to(resolution: float, eps: float) -> float:
    """The accuracy of a solver, by what differences of its value resolve.

    A value that goes up and down by its tolerance, from one number of steps to another,
    has a gradient that is no better. In lower precisions that is rounding.
    """
    rough = min(ROUGH * resolution, MOST) if eps <= EPS["float64"] else 0.0
    return max(SOLVED, rough)


def digits(error: float) -> str:
    """A relative error as the number of digits that agree.

    >>> digits(3e-9)
    '8 digits'
    """
    return f"{int(-np.log10(error))} digits"
