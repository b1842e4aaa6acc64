"""Judges a program: its values beside NumPy's, its derivatives beside differences."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.core.errors import first_line

from ..outcome import Outcome
from .differences import slope
from .program import Program, numpy_namespace, program

PART = "programs"
SECOND = 0.2  # share of programs whose second derivative is judged as well
WIDE, NARROW = 1e-6, 3e-3  # relative errors that rounding may explain


@dataclass(frozen=True)
class Finding:
    """What a program came to, before it is named."""

    verdict: str
    cause: str = ""
    checks: tuple[str, ...] = ()


class FoundError(Exception):
    """Ends a judgement early."""

    def __init__(self, verdict: str, cause: str) -> None:
        super().__init__(cause)
        self.finding = Finding(verdict, cause)


def judge(seed: int, number: int, *, jax: bool = False) -> Outcome:
    """The outcome of one program; what is bad comes with a shorter one."""
    subject = program(seed, number)
    name = f"--seed {seed} --program {number}"
    found = examine(subject, jax=jax)
    if found.verdict not in ("wrong", "crash"):
        return Outcome(PART, name, found.verdict, found.cause, "", found.checks)
    short, line = shorten(subject, found.verdict)
    cause = f"{found.cause} [{line}]"
    return Outcome(PART, name, found.verdict, cause, short.source(), found.checks)


def examine(subject: Program, *, jax: bool = False) -> Finding:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return _examine(subject, jax)
        except FoundError as error:
            return error.finding


def _examine(subject: Program, jax: bool) -> Finding:
    rng = random.Random(f"direction {subject.seed}:{subject.number}")
    xs = list(subject.inputs.values())
    plain = subject.function(numpy_namespace())
    try:
        value, variables = plain(*xs)
    except Exception:  # written in double precision, and a shortened one
        return Finding("not judged", "NumPy itself raises")
    loss = lambda *xs: plain(*xs)[0]
    every = tuple(range(len(xs)))
    (ours, found), dxs = _ours(
        "reverse", lambda: gs.value_and_grad(plain, every, True)(*xs)
    )
    _compare_values(value, variables, ours, found, subject)
    _compare_kinds(xs, dxs)
    compiled = _compiled(loss, xs, ours, dxs, subject)
    directions = [_direction(rng, x) for x in xs]
    pulled = _dot(dxs, directions)
    tangents = tuple(d.astype(x.dtype) for d, x in zip(directions, xs, strict=True))
    _, pushed = _ours("forward", lambda: gs.jvp(loss, tuple(xs), tangents))
    scale = _scale(dxs, directions)
    allowed = (NARROW if subject.is_narrow else WIDE) * max(scale, 1e-2)
    try:
        smooth = _slope(subject.wide, directions)
    except Exception:  # a float32 scalar has an index, a Python number has none
        return Finding("not judged", "NumPy itself raises in double precision")
    checks = []
    if smooth.judges(scale) and _is_stable(subject, value):
        checks.append("differences")
        _require("reverse mode", pulled, smooth.value, allowed + 10 * smooth.error)
        _require(
            "forward mode", float(pushed), smooth.value, allowed + 10 * smooth.error
        )
    if not smooth.kink:
        _require("forward mode, beside reverse mode", float(pushed), pulled, allowed)
    if "differences" in checks and not subject.is_narrow and rng.random() < SECOND:
        checks += _second(loss, xs, directions, rng, scale)
    if jax and subject.in_jax:
        from .jax import compare

        checks += compare(subject, value, dxs)
    if not checks:
        why = "a kink" if smooth.kink else "differences do not converge"
        return Finding("not judged", why)
    return Finding("right", checks=(*checks, *compiled))


def _ours(mode: str, run: Callable[[], Any]) -> Any:
    """Run the engine: it may refuse, with an error of its own, and may do no worse."""
    try:
        return run()
    except gs.GradsmithError as error:
        raise FoundError("refused", _reason(error)) from error
    except Exception as error:
        told = _told(error)
        if told:
            raise FoundError("refused", _reason(told)) from error
        raise FoundError("crash", f"{mode}: {_reason(error)}") from error


def _told(error: BaseException | None) -> gs.GradsmithError | None:
    """Our error behind one of NumPy's: `array[0] = x` raises a ValueError from it."""
    while error is not None and not isinstance(error, gs.GradsmithError):
        error = error.__cause__ or error.__context__
    return error


def _reason(error: Exception) -> str:
    """The first line without what differs from program to program."""
    text = re.sub(
        r"<program \S+>|line \d+|\b[vxc]\d+\b|[-\d.]+e?-?\d*", "#", first_line(error)
    )
    return text[:110]


def _compare_values(value, variables, ours, found, subject: Program) -> None:
    """Each value on the way is NumPy's, with its shape and dtype."""
    loose = 2e-3 if subject.is_narrow else 1e-9
    for name, expected in {**variables, "loss": value}.items():
        got = np.asarray(ours if name == "loss" else found[name])
        expected = np.asarray(expected)
        if got.shape != expected.shape:
            raise FoundError("wrong", f"shape {got.shape}, NumPy's {expected.shape}")
        if got.dtype != expected.dtype:
            raise FoundError("wrong", f"dtype {got.dtype}, NumPy's {expected.dtype}")
        size = np.abs(expected).max() if expected.size else 0.0
        if not np.allclose(got, expected, rtol=loose, atol=loose * size + 1e-12):
            raise FoundError("wrong", "a value is not NumPy's")


def _compare_kinds(xs: list[np.ndarray], dxs: Any) -> None:
    for x, dx in zip(xs, dxs, strict=True):
        if np.shape(dx) != x.shape or np.asarray(dx).dtype != x.dtype:
            raise FoundError("wrong", "a gradient of another shape or dtype")


def _compiled(loss, xs, value, dxs, subject: Program) -> list[str]:
    """The same by `gs.compile`, which may refuse what depends on elements."""
    every = tuple(range(len(xs)))
    try:
        found = gs.compile(gs.value_and_grad(loss, every))(*xs)
    except gs.UnsupportedOperationError:
        return []
    except Exception as error:
        raise FoundError("crash", f"compiled: {_reason(error)}") from error
    loose = NARROW if subject.is_narrow else 1e-9
    for expected, got in zip((value, *dxs), (found[0], *found[1]), strict=True):
        expected, got = np.asarray(expected), np.asarray(got)
        if (got.shape, got.dtype) != (expected.shape, expected.dtype):
            raise FoundError("wrong", "compiled: another shape or dtype")
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        near = partial(np.allclose, rtol=loose, atol=loose * size, equal_nan=True)
        if not near(got, expected):
            raise FoundError("wrong", "compiled: not what the tape gives")
    return ["compiled"]


def _direction(rng: random.Random, x: np.ndarray) -> np.ndarray:
    draws = [rng.uniform(0.3, 1.0) * rng.choice((-1, 1)) for _ in range(x.size)]
    return np.array(draws).reshape(x.shape)


def _dot(dxs: Any, directions: list[np.ndarray]) -> float:
    return float(sum(np.sum(dx * d) for dx, d in zip(dxs, directions, strict=True)))


def _scale(dxs: Any, directions: list[np.ndarray]) -> float:
    return float(
        sum(np.sum(np.abs(dx * d)) for dx, d in zip(dxs, directions, strict=True))
    )


def _slope(subject: Program, directions: list[np.ndarray]):
    function = subject.function(numpy_namespace())
    xs = list(subject.inputs.values())

    def along(h: float) -> float:
        moved = [x + h * d for x, d in zip(xs, directions, strict=True)]
        return float(function(*moved)[0])

    return slope(along)


def _is_stable(subject: Program, value: Any) -> bool:
    """Whether the value in single precision is that in double."""
    if not subject.is_narrow:
        return True
    wide = subject.wide
    exact = wide.function(numpy_namespace())(*wide.inputs.values())[0]
    return abs(float(value) - float(exact)) <= 1e-4 * max(abs(float(exact)), 1.0)


def _require(what: str, got: float, expected: float, allowed: float) -> None:
    if not abs(got - expected) <= allowed:
        raise FoundError("wrong", f"{what} is not the derivative")


def _second(loss, xs, directions, rng, scale: float) -> list[str]:
    """The derivative of the gradient, in both nestings, beside differences of it."""
    every = tuple(range(len(xs)))
    weights = [_direction(rng, x) for x in xs]
    gradient = lambda *xs: gs.grad(loss, every)(*xs)
    smooth = slope(
        lambda h: _dot(
            gradient(*(x + h * d for x, d in zip(xs, directions, strict=True))), weights
        )
    )
    if not smooth.judges(max(scale, 1.0)):
        return []
    product = _ours("hvp", lambda: gs.hvp(loss, tuple(xs), tuple(directions)))
    product = product if len(xs) > 1 else (product,)
    allowed = 1e-5 * max(_scale(product, weights), scale, 1e-2) + 10 * smooth.error
    _require("forward over reverse", _dot(product, weights), smooth.value, allowed)

    def projected(*xs: Any) -> Any:
        return sum(np.sum(g * w) for g, w in zip(gradient(*xs), weights, strict=True))

    twice = _ours("grad of grad", lambda: gs.grad(projected, every)(*xs))
    _require("reverse over reverse", _dot(twice, directions), smooth.value, allowed)
    return ["second order"]


def shorten(subject: Program, verdict: str) -> tuple[Program, str]:
    """The program up to the first line that suffices, without lines it needs not."""
    for at, line in enumerate(subject.lines):
        whole = f"np.sum(np.real(np.multiply({line.name}, 1.0)))"
        loss = f"loss = np.sum(x0) + {whole}"
        short = replace(subject, lines=_needed(subject.lines[: at + 1]), loss=loss)
        if examine(short).verdict == verdict:
            return short, _anonymous(line.text)
    return subject, "the sum"


def _needed(lines):
    """The last line and those that it depends on."""
    wanted, kept = {lines[-1].name}, []
    for line in reversed(lines):
        if line.name in wanted:
            wanted |= set(re.findall(r"\bv\d+\b", line.text))
            kept.append(line)
    return tuple(reversed(kept))


def _anonymous(text: str) -> str:
    text = re.sub(r"\b[xv]\d+\b", "x", text)
    return re.sub(r"\bc\d+\b", "c", text).replace("\n", "; ")
