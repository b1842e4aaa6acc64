"""The audit of a unary operation: results against the oracle, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter
from typing import Any

import numpy as np

from .._errors import GradsmithError
from .._subject.subject import name_of
from . import sampling
from .formats import format_of
from .model import Audit
from .runs import Run
from .tally import merged
from .task import Task

CHUNK = 4096  # points at a time: what they need stays in the cache


def audit_unary(
    op: Callable[..., Any],
    domain: tuple[float, float] | None = None,
    *,
    dtype: Any = "float32",
    reference: Callable[..., Any] | None = None,
    points: int = 20_000,
    exhaustive: bool | None = None,
    seed: int = 0,
    executor: Executor | None = None,
) -> Audit:
    """Compare value and gradient of a unary elementwise operation with the truth.

    `reference` is the true function, if it is not the definition itself. 16-bit formats
    are audited exhaustively unless told otherwise. With an executor of processes `op`
    and `reference` are pickled.

    >>> audit_unary(np.tanh, (-1, 1), dtype="float32", points=100).value.undecided
    0
    """
    started, form = perf_counter(), format_of(dtype)
    exhaustive = form.bits == 16 if exhaustive is None else exhaustive
    if exhaustive and form.bits > 16:
        raise GradsmithError(
            f"all numbers of {form.name} are too many for now; leave exhaustive= away"
        )
    if exhaustive:
        x = sampling.all_of(domain, form)
    else:
        x = sampling.sampled(domain, form, points, seed=seed)
    chunks = [x[i : i + CHUNK] for i in range(0, len(x), CHUNK)]
    run = Run(op, "numpy", name_of(op))
    task = Task(run, reference or op, form.name, sampling.ends(domain, form))
    parts = [*(map if executor is None else executor.map)(task, chunks)]
    value, gradient = (
        merged([part[i] for part in parts]).accuracy(form.numbers) for i in (0, 1)
    )
    return Audit(
        name_of(op), "NumPy", np.__version__, form.name, domain, ("x",), exhaustive,
        len(x), value, gradient, {"x": gradient}, (), seed, perf_counter() - started,
    )  # fmt: skip
