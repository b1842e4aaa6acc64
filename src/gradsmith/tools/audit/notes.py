"""What is to be said beside the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.arrays import title_of
from .formats import Format
from .judged import Judged
from .phrases import percent
from .runs import Run
from .targets import Target
from .truth import OUTSIDE


def notes_of(
    run: Run, target: Target, form: Format, errors: Sequence[Judged]
) -> list[str]:
    """What was not judged, and what was done otherwise than asked."""
    found = []
    if target.surrogate:
        found.append(
            f"the gradient is declared a surrogate ({target.surrogate}): it is not "
            "compared with the derivative"
        )
    if run.framework == "numpy" and form.name == "bfloat16":
        found.append("NumPy computes bfloat16 in float32, and the results are rounded")
    least = 2.0 ** (form.least + form.digits - 1)
    small, large = (
        max(np.mean((e.status == OUTSIDE) & there(np.abs(e.true))) for e in errors)
        for there in (
            lambda size: (size < least) & (size > 0),
            lambda size: size >= form.overflow,
        )
    )
    if run.flushes and small:
        found.append(
            f"{title_of(run.framework)} makes 0 of subnormal numbers: inputs and "
            "results "
            f"below {least:.3g} are not judged"
        )
    if run.framework == "numpy" and large and not target.surrogate:
        found.append(
            f"the engine's gradient is 0 where the true one is larger than any "
            f"{form.name}, {percent(float(large))} of the inputs: not judged"
        )
    return found
