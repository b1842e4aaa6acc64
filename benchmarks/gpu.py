"""A GPU: forward and gradient beside the time of a copy that moves as many bytes.

Ours in eager mode and under `torch.compile`, PyTorch's own both ways, at 8192 x 32768,
and for the cross entropy at 8192 x 131072 too and, without a target, of vocabularies
whose size is no power of two; then in JAX (gpu_jax.py). The bytes are those that any
code must move: a value or gradient that is read or written once. `--peers jax` leaves
out PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import gpu_jax
from benchmarks._measure import Progress
from benchmarks._report import Options, Report, Row

ROWS = 8192
TARGETS = {"float32": 1.10, "bfloat16": 1.15}


@dataclass(frozen=True)
class Case:
    """An operation; `arrays` is how many whole arrays are read or written at least.

    One that is no loss reads x, writes y, then reads x and dy, and writes dx.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arrays: int = 5
    beside: str = ""  # "labels", or another array
    columns: tuple[int, ...] = (32768,)
    uneven: tuple[int, ...] = ()  # these have no target


def run(options: Options) -> Report:
    report, progress = Report("gpu", options), Progress("gpu")
    rows = 64 if options.quick else ROWS
    parts = {"torch": _in_pytorch, "jax": _in_jax}
    for name in report.available(*parts):
        parts[name](report, rows, progress)
    return report


def _in_jax(report: Report, rows: int, progress: Progress) -> None:
    gpu_jax.measure(report, rows, 32768, progress)


def _in_pytorch(report: Report, rows: int, progress: Progress) -> None:
    import torch

    if not torch.cuda.is_available():
        report.refused.append("there is no GPU that PyTorch can use")
        return
    report.notes.append(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for dtype, target in TARGETS.items():
        for case in _cases():
            for columns in (*case.columns, *case.uneven):
                shape = (rows, columns)
                progress(f"{case.name}, {dtype}, {columns} columns")
                asked = target if columns in case.columns else None
                _measure(report, case, shape, dtype, asked)
                torch.cuda.empty_cache()


def _cases() -> list[Case]:
    import torch
    from torch.nn import functional as F  # noqa: N812

    import gradsmith as gs
    import gradsmith.numpy as gnp
    from gradsmith import ops

    @gs.custom_gradient(fused=True)
    def mish(x: Any) -> Any:
        t = gnp.tanh(gnp.log1p(gnp.exp(-gnp.abs(x))) + gnp.maximum(x, 0))
        s = 1 / (1 + gnp.exp(-x))
        return x * t, lambda dy: dy * (t + x * s * (1 - t * t))

    @gs.custom_gradient(fused=True)
    def rmsnorm(x: Any) -> Any:
        r = 1 / gnp.sqrt(gnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
        y = x * r

        def grad(dy: Any) -> Any:
            return r * (dy - y * gnp.mean(dy * y, axis=-1, keepdims=True))

        return y, grad

    def their_rmsnorm(x: Any) -> Any:
        return F.rms_norm(x, x.shape[-1:], eps=1e-6)

    return [
        Case("cross_entropy", ops.cross_entropy, F.cross_entropy, 2, "labels",
             (32768, 131072), (32000, 50257)),
        Case("gelu", ops.gelu, F.gelu),
        Case("silu", ops.silu, F.silu),
        Case("softplus", ops.softplus, F.softplus),
        Case("huber", ops.huber, F.huber_loss, 3, "array"),
        Case("softmax", ops.softmax, lambda x: torch.softmax(x, -1)),
        Case("log_softmax", ops.log_softmax, lambda x: torch.log_softmax(x, -1)),
        Case("mish, a user's", mish, F.mish),
        Case("rmsnorm, a user's", rmsnorm, their_rmsnorm),
    ]  # fmt: skip


def _measure(
    report: Report, case: Case, shape: tuple[int, int], dtype: str, target: float | None
) -> None:
    import torch

    torch.manual_seed(0)
    torch.compiler.reset()  # else the last of many operations are not compiled
    kind = getattr(torch, dtype)
    x = torch.randn(shape, dtype=kind, device="cuda").requires_grad_()
    more = []
    if case.beside == "labels":
        more = [torch.randint(0, shape[1], shape[:1], device="cuda")]
    elif case.beside:
        more = [torch.randn(shape, dtype=kind, device="cuda")]
    y = case.theirs(x, *more)
    dy = torch.ones_like(y) if y.ndim == 0 else torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, x, dy)
    del y
    other = torch.empty_like(expected)

    def floor() -> float:
        return _seconds(lambda: other.copy_(expected)) * case.arrays / 2

    name = f"{case.name}, {dtype}, {shape[0]} x {shape[1]}"
    fns = {
        "ours": case.ours,
        "ours, compiled": torch.compile(case.ours),
        "PyTorch": case.theirs,
        "torch.compile": torch.compile(case.theirs),
    }
    taken = {}
    for who, fn in fns.items():

        def call(fn: Any = fn) -> Any:
            return torch.autograd.grad(fn(x, *more), x, dy)[0]

        try:
            dx = call()
            tolerance = 1e-5 if dtype == "float32" else 2e-2
            scale = float(expected.abs().max())
            torch.testing.assert_close(
                dx, expected, rtol=tolerance, atol=tolerance * scale
            )
            del dx
            before, own = floor(), _seconds(call)
            taken[who] = own, (before + floor()) / 2
        except Exception as error:  # one that fails is named, the others measured
            report.refused.append(f"{name}, {who}: {str(error)[:200]}")
    for who, (own, copies) in taken.items():
        row = Row(
            case=f"{name}, {who}", ours=own * 1e3, peer=copies * 1e3,
            peer_name="copies", target=target if who.startswith("ours") else None,
            unit="ms",
        )  # fmt: skip
        report.rows.append(row)


def _seconds(call: Callable[[], Any], times: int = 10) -> float:
    """The median, by the GPU's own clock.

    All calls are queued before the first starts: what Python takes for them, some
    hundred microseconds, is not in it.
    """
    import torch

    for _ in range(3):
        call()
    pairs = [
        [torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(times)
    ]
    torch.cuda._sleep(20_000_000)  # some 10 ms, until all calls are queued
    for start, stop in pairs:
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize()
    taken = sorted(start.elapsed_time(stop) / 1e3 for start, stop in pairs)
    return taken[times // 2]
