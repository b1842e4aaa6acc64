"""The audit of a unary operation: results against the oracle, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .._errors import GradsmithError
from .._subject.subject import name_of
from .._transforms import vjp
from . import sampling
from .certify import certify
from .formats import Format, format_of, literal
from .model import Accuracy, Audit
from .truth import KINK, OUTSIDE, UNDECIDED, Truth
from .ulp import errors

CHUNK = 4096  # points at a time: what they need stays in the cache
WORST = 5  # inputs that are shown


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
    task = _Task(op, reference or op, form.name)
    parts = [*(map if executor is None else executor.map)(task, chunks)]
    value, gradient = (_gathered([part[i] for part in parts], form) for i in (0, 1))
    return Audit(
        name_of(op), "NumPy", np.__version__, form.name, domain, ("x",), exhaustive,
        len(x), value, gradient, {"x": gradient}, (), seed, perf_counter() - started,
    )  # fmt: skip


@dataclass
class _Errors:
    """The errors of a chunk, and what it takes to name the worst inputs."""

    inputs: Any
    ulp: Any
    slack: Any
    bits: Any
    status: Any


@dataclass(frozen=True)
class _Task:
    op: Callable[..., Any]
    reference: Callable[..., Any]
    format: str

    def __call__(self, x: Any) -> tuple[_Errors, _Errors]:
        form = format_of(self.format)
        y, dx = computed(self.op, x)
        value, (gradient,) = certify(self.reference, [x.astype(np.float64)], form)
        return _judged(x, y, value, form), _judged(x, dx, gradient, form)


def computed(op: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The operation's own value and gradient, in the format of x.

    NumPy computes nothing in bfloat16: that is done in float32 and rounded.
    """
    own, x = x.dtype, x if x.dtype.kind == "f" else x.astype(np.float32)
    with np.errstate(all="ignore"):
        y, pull = vjp(op, x)
        y = np.asarray(y)
        if y.shape != x.shape:
            raise GradsmithError(
                f"an audit of points wants an elementwise function: of an input of "
                f"shape {x.shape} it made {y.shape}"
            )
        (dx,) = pull(np.ones(y.shape, y.dtype))
        return y.astype(own), np.asarray(dx).astype(own)


def _judged(x: Any, results: Any, truth: Truth, form: Format) -> _Errors:
    found = errors(results, truth, form)
    return _Errors(x, found.ulp, found.slack, found.bits, truth.status)


def _gathered(parts: Sequence[_Errors], form: Format) -> Accuracy:
    x, ulp, slack, bits, status = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("inputs", "ulp", "slack", "bits", "status")
    )
    judged = ~np.isnan(ulp)
    if not judged.any():
        none = float("nan")
        open_, kinks, outside = (
            int(np.sum(status == s)) for s in (UNDECIDED, KINK, OUTSIDE)
        )
        return Accuracy(none, none, none, none, none, (), 0, open_, kinks, outside)
    order = np.argsort(np.where(judged, -ulp, np.inf), kind="stable")[:WORST]
    return Accuracy(
        max_ulp=float(ulp[judged].max()),
        slack=float(slack[order[0]]),
        mean_ulp=float(ulp[judged].mean()),
        mean_bits=float(bits[judged].mean()),
        beyond=float((ulp[judged] > 4).mean()),
        worst_inputs=tuple(literal(x[i], form) for i in order if judged[i]),
        judged=int(judged.sum()),
        undecided=int(np.sum(status == UNDECIDED)),
        kinks=int(np.sum(status == KINK)),
        outside=int(np.sum(status == OUTSIDE)),
    )
