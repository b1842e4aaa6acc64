"""Which operation is to blame: of the definition, or of the rule of the gradient.

A definition or a rule runs on arrays in working precision that are shadowed by their
true values. Operation by operation that tells how far off it is: where the error
arises, and in which line.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from ...core import trees
from ...core.places import user_frame
from ...operations.info import is_floating
from ...operations.operation import Operation
from .certified.arb import ObjectArray, balls_of, each, precision
from .certified.balls import Balls, call, noting
from .formats import Format

BITS = 512  # of the true values


@dataclass(frozen=True)
class Step:
    """One operation: what went in and came out, and relative errors of both."""

    name: str
    ins: tuple[Any, ...]
    out: Any
    true: Any
    before: float
    after: float
    source: str
    line: int


class Shadowed(ObjectArray):
    """An array as it is computed, and the balls that it ought to be: its shadow."""

    __slots__ = ("steps", "true", "value")
    __array_priority__ = 3000

    def __init__(self, value: Any, true: Balls, steps: list[Step]) -> None:
        self.value, self.true, self.steps = value, true, steps

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    def call(self, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        run = getattr(*fn) if isinstance(fn, tuple) else fn
        value = run(*trees.map(_value, args), **trees.map(_value, kwargs))
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind != "f":
            return value  # a choice is made by what is computed
        true = call(fn, trees.map(_true, args), trees.map(_true, kwargs))
        y = Shadowed(np.asarray(value), true, self.steps)
        ins = [x for x in trees.leaves(args) if isinstance(x, Shadowed)]
        source, line = running()
        name = getattr(run, "__name__", "") or str(run)
        before = max((_error(x) for x in ins), default=0.0)
        numbers = tuple(np.asarray(_value(x)) for x in trees.leaves(args))
        self.steps.append(
            Step(name, numbers, y.value, true, before, _error(y), source, line)
        )
        return y

    def __getattr__(self, name: str) -> Any:
        """Methods are those of arrays."""
        fn = getattr(np, name, None)
        if name.startswith("_") or not callable(fn):
            raise AttributeError(name)
        return lambda *args, **kwargs: fn(self, *args, **kwargs)

    def astype(self, dtype: Any, **_: Any) -> Any:
        return Shadowed(self.value.astype(dtype), self.true, self.steps)

    def __getitem__(self, index: Any) -> Any:
        true: Any = self.true
        return Shadowed(np.asarray(self.value[index]), true[index], self.steps)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Shadowed) else x


def _true(x: Any) -> Any:
    return x.true if isinstance(x, Shadowed) else x


_off = each(lambda got, true: _relative(got, true), 2)


def _relative(got: float, true: Any) -> float:
    if got != got or got in (float("inf"), float("-inf")):
        return float("inf")
    off = abs(true.mid() - got)
    size = abs(true.mid())
    if size == 0:
        return 0.0 if off == 0 else float("inf")
    return float(off / size)


def _error(x: Shadowed) -> float:
    """The largest relative error."""
    got = x.value.astype(np.float64).astype(object)
    value = np.broadcast_to(x.true.value, got.shape)
    return float(np.max(np.asarray(_off(got, value), np.float64), initial=0.0))


def running() -> tuple[str, int]:
    """The text of the user's operation that is running, and its line."""
    frame = user_frame(within=_STARTS)
    return ("", 0) if frame is None else _text(frame)


def _text(frame: Any) -> tuple[str, int]:
    places: Sequence[Any] = list(frame.f_code.co_positions())
    line, last, start, end = places[frame.f_lasti // 2]
    text = linecache.getline(frame.f_code.co_filename, line or frame.f_lineno)
    if None in (line, last, start, end) or line != last:
        return text.strip(), frame.f_lineno
    return text.encode()[start:end].decode(errors="replace"), line


def value_steps(fn: Any, xs: Sequence[Any], form: Format) -> list[Step]:
    """The steps of a definition at some inputs, in working precision."""
    steps: list[Step] = []
    with precision(BITS), noting(), np.errstate(all="ignore"):
        body = operation_of(fn)
        (body.fn if body is not None else fn)(*_shadowed(xs, form, steps))
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
        given = _shadowed(xs, form, steps)
        pull, y = rule_at(operation, given)
        forward = len(steps)
        dy = np.ones(y.shape) if dy is None else np.asarray(dy, np.float64)
        pull(Shadowed(dy.astype(y.dtype), Balls(balls_of(dy), y.dtype), steps))
    # Where the error arises may be in the body, whose results the rule has kept
    return [*steps[forward:], *steps[:forward]]


# What runs a definition: frames beyond are no part of it
_STARTS = {value_steps.__code__, gradient_steps.__code__}


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


def _shadowed(xs: Sequence[Any], form: Format, steps: list[Step]) -> list[Any]:
    """Floating arrays, shadowed by their true values; others as they are."""
    dtype = np.dtype(np.float32 if form.name == "bfloat16" else form.name)
    return [
        Shadowed(x.astype(dtype), Balls(balls_of(x), dtype), steps)
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
