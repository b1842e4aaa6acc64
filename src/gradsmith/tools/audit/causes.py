"""Which operation is to blame: of the definition, or of the rule of the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import Any

import numpy as np

from ...operations.info import is_floating
from ...operations.operation import Operation
from .arb import balls_of, precision
from .balls import Balls
from .beside import ENDS, Beside, Step
from .formats import Format
from .state import noting

BITS = 512  # the true values beside a run have so many


def value_steps(fn: Any, xs: Sequence[Any], form: Format) -> list[Step]:
    """The steps of a definition at some inputs, in working precision."""
    steps: list[Step] = []
    with precision(BITS), noting(), np.errstate(all="ignore"):
        body = operation_of(fn)
        (body.fn if body is not None else fn)(*_both(xs, form, steps))
    return steps


def gradient_steps(
    fn: Any, xs: Sequence[Any], form: Format, *, dy: Any = None
) -> list[Step]:
    """The steps of a rule of ours at some inputs, for an upstream gradient or ones."""
    operation = operation_of(fn)
    if operation is None:
        return []
    steps: list[Step] = []
    with precision(BITS), noting(), np.errstate(all="ignore"):
        given = _both(xs, form, steps)
        pull, y = rule_at(operation, given)
        forward = len(steps)
        dy = np.ones(y.shape) if dy is None else np.asarray(dy, np.float64)
        pull(Beside(dy.astype(y.dtype), Balls(balls_of(dy), y.dtype), steps))
    # Where the error is born may be in the body, whose results the rule has kept
    return [*steps[forward:], *steps[:forward]]


ENDS.update({value_steps.__code__, gradient_steps.__code__})


def rule_at(operation: Operation, xs: Sequence[Any]) -> tuple[Any, Any]:
    """The gradient function of an operation at some inputs, and its value."""
    if operation.closure:
        *ys, pull = operation.fn(*xs)
        return pull, ys[0]
    y = operation.fn(*xs)
    rule = operation.vjp_rule
    assert rule is not None
    return lambda dy: rule(dy, y, *xs), y


def operation_of(fn: Any) -> Operation | None:
    fn = fn.__func__ if isinstance(fn, MethodType) else fn
    return fn if isinstance(fn, Operation) else None


def _both(xs: Sequence[Any], form: Format, steps: list[Step]) -> list[Any]:
    """Floating arrays with their true values beside them; others as they are."""
    dtype = np.dtype(np.float32 if form.name == "bfloat16" else form.name)
    return [
        Beside(x.astype(dtype), Balls(balls_of(x), dtype), steps)
        if is_floating(x) and hasattr(x, "astype")
        else x
        for x in xs
    ]


def cause_of(kind: str, steps: Sequence[Step], form: Format, bits: float) -> str | None:
    """The step to blame for the loss of so many bits, in words."""
    said = [step for step in steps if step.source]
    if kind in ("nan", "overflow", "infinite"):
        born = [s for s in said if not _finite(s.out) and all(map(_finite, s.ins))]
        return _blame(born[0], form) if born else None
    eps = 2.0**-form.digits
    enough = eps * 2.0 ** (min(bits, form.digits) - 3)
    said = [step for step in said if step.after >= enough]
    jumps = [(s.after / max(s.before, eps), i) for i, s in enumerate(said)]
    if not jumps or max(jumps)[0] < 8:
        return None
    most = max(jump for jump, _ in jumps)
    # The first of those that are as bad: the others may pass on what it made
    first = next(i for jump, i in jumps if jump >= min(most, 1 / eps) / 4)
    return _blame(said[first], form)


def _finite(x: Any) -> bool:
    return bool(np.all(np.isfinite(np.asarray(x, np.float64))))


def _blame(step: Step, form: Format) -> str:
    out = np.asarray(step.out, np.float64)
    what = "rounding"
    if np.isnan(out).any():
        what = "NaN"
    elif np.isinf(out).any():
        what = "overflow"
    elif step.name in ("add", "subtract", "sum"):
        what = "cancellation"
    elif (out == 0).any() and step.name in _SHRINK:
        what = "underflow"
    elif step.before > 0 and step.after > 4 * step.before:
        what = "rounding that grows"
    return f"{what} in `{step.source}`, line {step.line}"


_SHRINK = ("multiply", "divide", "exp", "power", "square", "true_divide", "exp2")
