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

    The operation is one of Gradsmith's, a function written with NumPy or scipy.special,
    or a framework's own, whose true function is found by its name or passed as
    `reference`. Value and gradient are computed in `dtype` and compared with certified
    ones.

    Parameters
    ----------
    op
        The operation to audit.
    domain
        `(low, high)`, or a dict of such pairs by the names of the arguments. All
        numbers of the dtype by default.
    dtype
        float16, bfloat16, float32 or float64.
    reference
        The true function, written with NumPy or scipy.special.
    framework
        The framework to run a Gradsmith operation in, such as "torch"; by default
        NumPy.
    inputs
        Examples of the arguments, for functions of vectors: `gs.spec((10,))`, an array
        or a constant; a tuple for several arguments.
    points
        The number of inputs to sample.
    exhaustive
        Whether to take all inputs, which proves the largest errors. The default for
        dtypes of 16 bits; float32 takes a minute or two.
    seed
        Seed of the sampling.
    executor
        An executor of `concurrent.futures`. If it pickles, the operation must be
        picklable.
    jobs
        The number of processes for all numbers of float32, without an executor; by
        default one per core.
    resume
        A file that saves the progress of an audit of all float32 numbers.
    progress
        A function that is called with the number of points done and the total.

    Raises
    ------
    GradsmithError
        If the domain is empty, the dtype is not one of the four, the operation
        can't be computed with certified numbers and no reference is given,
        python-flint is not installed, or the framework is not known or not installed.
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
