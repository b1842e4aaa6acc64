"""`gs.audit`. What it needs is imported once it is called: see `pipeline`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from .model import Audit, Domain, Progress


def audit(
    op: Callable[..., Any],
    domain: Domain | dict[str, Domain] | None = None,
    dtype: Any = "float32",
    *,
    reference: Callable[..., Any] | None = None,
    framework: str | None = None,
    inputs: Any = None,
    points: int | None = None,
    exhaustive: bool | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    jobs: int | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Audit:
    """How accurate are the value and the gradient, over the whole domain?

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.audit(np.tanh, domain=(-1, 1), points=1000)
    >>> report.value.max_ulp < 4, report.undecided
    (True, 0)

    The operation is one of ours, a function of NumPy's calls, or of scipy.special; or a
    framework's own, whose true function is found by its name or given as `reference`.
    Value and gradient are computed in `dtype` and compared with certified ones.

    Parameters
    ----------
    op
        What is audited.
    domain
        `(low, high)`, for each argument by name if there are several; all numbers of
        the dtype if not given.
    dtype
        float16, bfloat16, float32 or float64.
    reference
        The true function, in calls of NumPy or scipy.special.
    framework
        Where an operation of ours is run, if not in NumPy: "torch".
    inputs
        Examples of the arguments, for functions of vectors: `gs.spec((10,))`, arrays,
        and constants; several are a tuple.
    points
        How many inputs are sampled.
    exhaustive
        Whether all inputs are taken; those of 16 bits are, unless told otherwise. Those
        of float32 take a minute or two, and the largest errors are then proven.
    seed
        Of the sampling.
    executor
        Any of `concurrent.futures`; what is pickled for processes is the operation.
    jobs
        How many processes take all numbers of float32, if there is no executor: one for
        each core unless said.
    resume
        A file that keeps what is done of all numbers of float32, and to go on from.
    progress
        Called with how many points are done, and of how many.
    """
    from .formats import format_of
    from .pipeline import Options, run_audit

    options = Options(
        format_of(dtype), domain, points, exhaustive, seed, executor, jobs, resume,
        progress,
    )  # fmt: skip
    return run_audit(
        op, options, reference=reference, framework=framework, inputs=inputs
    )
