"""JAX on a GPU: forward and gradient under `jax.jit`, beside the time of a copy.

Operations that reduce rows, which are Triton kernels there, and JAX's own. A call is
one program that returns value and gradient. It takes as long as ten calls that are
queued, divided by ten: the GPU's time, unless it is shorter than what a call takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from benchmarks._measure import Progress
from benchmarks._report import Report, Row

# For float32; bfloat16 is there to be read.
TARGETS = {"cross_entropy": 1.3, "softmax": 1.2}


@dataclass(frozen=True)
class Case:
    """An operation; `arrays` is how many whole arrays are read or written at least."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arrays: int = 5
    has_labels: bool = False


def measure(report: Report, rows: int, columns: int, progress: Progress) -> None:
    """Add the rows of JAX, or why there are none."""
    # PyTorch has memory on the same GPU
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    if jax.default_backend() != "gpu":
        report.refused.append("there is no GPU that JAX can use")
        return
    report.notes.append(f"{jax.local_devices()[0].device_kind}, JAX {jax.__version__}")
    for dtype in ("float32", "bfloat16"):
        for case in _cases():
            progress(f"{case.name} in JAX, {dtype}")
            try:
                _measure(report, case, (rows, columns), dtype)
            except Exception as error:  # it is named, the others are measured
                name = f"{case.name}, {dtype}, JAX"
                report.refused.append(f"{name}: {str(error)[:300]}")


def _cases() -> list[Case]:
    import jax
    import jax.numpy as jnp

    from gradsmith import ops

    def cross_entropy(x: Any, labels: Any) -> Any:
        taken = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)
        return -jnp.mean(taken)

    return [
        Case("cross_entropy", ops.cross_entropy, cross_entropy, 2, has_labels=True),
        Case("softmax", ops.softmax, jax.nn.softmax),
        Case("log_softmax", ops.log_softmax, jax.nn.log_softmax),
        Case(
            "logsumexp",
            lambda x: ops.logsumexp(x, axis=-1),
            lambda x: jax.nn.logsumexp(x, axis=-1),
            3,
        ),
    ]


def _measure(report: Report, case: Case, shape: tuple[int, int], dtype: str) -> None:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], shape, dtype)
    more = [jax.random.randint(keys[1], shape[:1], 0, shape[1])]
    more = more if case.has_labels else []
    y = jax.eval_shape(case.theirs, x, *more)
    is_loss = y.ndim == 0
    dy = jax.random.normal(keys[2], y.shape, y.dtype)
    dy = jnp.ones_like(y) if is_loss else dy

    def both(fn: Any) -> Any:
        def call(x: Any, dy: Any, *more: Any) -> Any:
            y, pull = jax.vjp(lambda x: fn(x, *more), x)
            return y, pull(dy)[0]

        return jax.jit(call)

    args = (x, dy, *more)
    fns = {"ours": both(case.ours), "JAX's": both(case.theirs)}
    expected = fns["JAX's"](*args)
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    for a, b in zip(fns["ours"](*args), expected, strict=True):
        a, b = a.astype("float32"), b.astype("float32")
        error = float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b)))
        if not error <= tolerance:
            raise ArithmeticError(f"is off by {error:.1e} of the greatest number")
    del expected, a, b
    lowered = fns["ours"].lower(*args).as_text()
    kernels = lowered.count("@triton_kernel_call")
    floor = _seconds(jax.jit(jnp.copy), x) * case.arrays / 2
    for who, fn in fns.items():
        is_ours = who == "ours"
        target = TARGETS.get(case.name) if is_ours and dtype == "float32" else None
        what = f"{who}, {kernels} kernels" if is_ours else who
        row = Row(
            case=f"{case.name}, {dtype}, {shape[0]} x {shape[1]}, jit, {what}",
            ours=_seconds(fn, *args) * 1e3, peer=floor * 1e3, peer_name="copies",
            target=target, unit="ms",
        )  # fmt: skip
        report.rows.append(row)


def _seconds(call: Callable[..., Any], *args: Any, times: int = 10) -> float:
    """The median of some runs of several calls each."""
    import jax

    taken = []
    for _ in range(7):
        start = perf_counter()
        for _ in range(times):
            out = call(*args)
        jax.block_until_ready(out)
        taken.append((perf_counter() - start) / times)
        del out
    return sorted(taken[1:])[3]
