"""Regions with what is behind them: a wrong formula, or an operation to blame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .model import Region
from .phrases import percent
from .regions import Found
from .targets import Target
from .task import Task


def explained(found: list[Found], what: str, target: Target, task: Task) -> Any:
    """The regions, with their causes."""
    return tuple(_explained(each, what, target, task) for each in found)


def _explained(found: Found, what: str, target: Target, task: Task) -> Region:
    region = found.region
    if what == "gradient" and region.kind in ("lost", "underflow"):
        wrong = _wrong(found, target, task)
        if wrong is not None:
            return wrong
    cause = None if target.native else _cause(found, what, target, task)
    if cause is None:
        return region
    return replace(region, cause=cause, text=f"{region.text} ({cause})")


def _wrong(found: Found, target: Target, task: Task) -> Region | None:
    from .wrong import off_by_formula

    form, region = task.form, found.region
    x = form.numbers(found.codes)
    share = off_by_formula(task.run, target.op, task.reference, x, form)
    if np.mean(share > 0) < 0.5:
        return None
    return wrong_words(region, "gradient", share)


def wrong_words(region: Region, what: str, share: Any) -> Region:
    """A region whose formula is off by these shares."""
    off = float(np.nanmedian(share))
    clear = region.where in ("everywhere", "here and there")
    at = region.where if clear else f"for {region.where}"
    text = f"{what} is wrong {at}: the formula itself is off by {_percent(off)}"
    return replace(region, kind="wrong", text=f"{text}, however exactly it is computed")


def _percent(share: float) -> str:
    if share == float("inf"):
        return "more than the derivative, which is 0"
    return percent(share) if share < 10 else f"a factor of {share:.2g}"


def _cause(found: Found, what: str, target: Target, task: Task) -> str | None:
    from .causes import cause_of, gradient_steps, value_steps

    if target.framework != "numpy":
        return _born(found, target, task)
    steps = value_steps if what == "value" else gradient_steps
    x = task.form.numbers(found.codes[:1])
    try:
        seen = steps(target.op, [x.astype(np.float64)], task.form)
    except Exception:  # a cause is a help: without it the region stands
        return None
    return cause_of(found.region.kind, seen, task.form, found.region.bits)


def _born(found: Found, target: Target, task: Task) -> str | None:
    """Where a NaN or inf was born, in a function of another framework."""
    from ..check.kits import kit_for
    from ..nan import find_nan

    if found.region.kind not in ("nan", "overflow", "infinite"):
        return None
    kit, form = kit_for(target.framework), task.form
    try:
        with kit.precision(form.name):
            x = kit.array(form.numbers(found.codes[:1]).astype(np.float64), form.name)
            seen = find_nan(target.op, x, framework=target.framework)
    except Exception:
        return None
    if seen.where is None:
        return None
    kind = {"nan": "NaN", "inf": "overflow"}[seen.kind or "nan"]
    return f"{kind} in `{seen.operation}`, line {seen.where.line}"
