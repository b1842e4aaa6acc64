"""`gs.audit`: what it is called with, checked; and the result put together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from numbers import Integral, Real
from time import perf_counter
from typing import Any

from .._arrays import NAMES
from .._check.kits import kit_for
from .._errors import GradsmithError
from . import run
from .formats import Format, format_of
from .model import Accuracy, Audit, Domain
from .runs import Run, flushes
from .sampling import ends
from .targets import Target, target_of
from .task import Task

POINTS = 20_000


def audit(
    op: Callable[..., Any],
    domain: Domain | dict[str, Domain] | None = None,
    dtype: Any = "float32",
    *,
    reference: Callable[..., Any] | None = None,
    framework: str | None = None,
    points: int = POINTS,
    exhaustive: bool | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: run.Progress | None = None,
) -> Audit:
    """How accurate are the value and the gradient, over the whole domain?

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.audit(np.tanh, domain=(-1, 1), points=1000)
    >>> report.value.max_ulp < 4, report.undecided
    (True, 0)
    """
    started, form = perf_counter(), format_of(dtype)
    _require(points, seed)
    names = tuple(domain) if isinstance(domain, dict) else ()
    target = target_of(op, framework=framework, reference=reference, names=names)
    domains = _domains(domain, target.arguments, form)
    exhaustive = form.bits == 16 if exhaustive is None else exhaustive
    if exhaustive and form.bits > 16:
        raise GradsmithError(
            f"all numbers of {form.name} are too many for now; leave exhaustive= away"
        )
    flushed = flushes(target.framework, form.name)
    how = Run(target.call, target.framework, target.name, flushes=flushed)
    one = domains[target.arguments[0]]
    x = run.inputs_of(one, form, points=points, exhaustive=exhaustive, seed=seed)
    task = Task(how, target.reference, form.name, ends(one, form))
    errors = run.judged(task, x, executor=executor, progress=progress)
    value, gradient = run.unary(task, target, x, errors)
    return report(
        target, form, domain, exhaustive, len(x), value,
        {target.arguments[0]: gradient}, seed, started,
    )  # fmt: skip


def _require(points: Any, seed: Any) -> None:
    if not isinstance(points, Integral) or points < 1:
        raise GradsmithError(f"points={points!r}: how many, 1 or more")
    if not isinstance(seed, Integral) or seed < 0:
        raise GradsmithError(f"seed={seed!r}: it is a number, 0 or 1 or 2 ...")


def _domains(domain: Any, names: Any, form: Format) -> dict[str, Domain | None]:
    """The domain of each argument."""
    given = domain if isinstance(domain, dict) else dict.fromkeys(names, domain)
    for name, one in given.items():
        if one is not None:
            _require_pair(one, name, several=isinstance(domain, dict))
            ends(one, form)
    return given


def _require_pair(one: Any, name: str, *, several: bool) -> None:
    pair = isinstance(one, (tuple, list)) and len(one) == 2
    if not pair or not all(isinstance(end, Real) for end in one):
        shown = f"domain={{{name!r}: {one!r}}}" if several else f"domain={one!r}"
        raise GradsmithError(f"{shown}: give (low, high), such as (-10, 10)")


def report(
    target: Target, form: Format, domain: Any, exhaustive: bool, n: int,
    value: Accuracy, gradients: dict[str, Accuracy], seed: int, started: float,
) -> Audit:  # fmt: skip
    worst = max(gradients.values(), key=_badness)
    return Audit(
        target.name, NAMES[target.framework], kit_for(target.framework).version,
        form.name, domain, target.arguments, exhaustive, n, value, worst, gradients,
        target.notes, seed, perf_counter() - started,
    )  # fmt: skip


def _badness(one: Accuracy) -> tuple[bool, float]:
    return (one.wrong, one.max_ulp if one.judged else -1.0)
