"""Large arrays: logsumexp and a chain of elementwise operations, forward and gradient.

The floor is what a person would write by hand in NumPy, value and gradient, with the
same formulas, working in place where that comes naturally. For logsumexp a version that
allocates nothing but its result stands beside it, to be read.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._measure import Progress, interleaved, no_gc
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, Row

BY_HAND = "NumPy by hand"
IN_PLACE = "the same in place"
COMPILED = "gs.compile"


def run(options: Options) -> Report:
    report, progress = Report("lse", options), Progress("lse")
    peers = report.available("autograd")
    for n in (10**3, 10**4) if options.quick else (10**6, 10**7):
        _logsumexp(report, progress, n, peers)
    _chain(report, progress, 10**3 if options.quick else 4 * 10**6)
    return report


# logsumexp: y = m + log(sum(exp(x - m))), whose gradient is exp(x - m) / sum(...)


def logsumexp(x: Any, np: Any = np) -> Any:
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def logsumexp_by_hand(x: Any) -> tuple[Any, Any]:
    m = np.max(x)
    e = np.exp(x - m)
    total = np.sum(e)
    e /= total
    return m + np.log(total), e


def logsumexp_in_place(x: Any) -> tuple[Any, Any]:
    m = np.max(x)
    e = x - m
    np.exp(e, out=e)
    total = np.sum(e)
    e /= total
    return m + np.log(total), e


def _logsumexp(report: Report, progress: Progress, n: int, peers: list[str]) -> None:
    import gradsmith as gs

    x = np.random.default_rng(0).standard_normal(n)
    ours = gs.grad(logsumexp)
    compiled = gs.compile(ours)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(x),
        COMPILED: lambda: compiled(x),
        BY_HAND: lambda: logsumexp_by_hand(x)[1],
        IN_PLACE: lambda: logsumexp_in_place(x)[1],
    }
    if "autograd" in peers:
        anp, grad = load("autograd.numpy"), load("autograd").grad
        theirs = grad(lambda x: logsumexp(x, anp))
        calls["autograd"] = lambda: theirs(x)
    for call in calls.values():
        np.testing.assert_allclose(call(), logsumexp_by_hand(x)[1], rtol=1e-9)
    seconds = interleaved(calls, progress, rounds=_rounds(report, 10))
    for name, target in ((BY_HAND, 1.3), (IN_PLACE, None), ("autograd", 0.25)):
        if name in calls:
            title = PEERS[name].title if name in PEERS else name
            report.rows.append(
                Row(
                    case=f"gradient of logsumexp, n = {n:.0e}",
                    ours=seconds["ours"] * 1e3,
                    peer=seconds[name] * 1e3,
                    peer_name=title,
                    target=target,
                    unit="ms",
                )
            )
    report.rows.append(
        Row(
            case=f"gradient of logsumexp by gs.compile, n = {n:.0e}",
            ours=seconds[COMPILED] * 1e3,
            peer=seconds[IN_PLACE] * 1e3,
            peer_name=IN_PLACE,
            target=1.0,
            unit="ms",
        )
    )


# A chain: blocks of sin, exp, a product with a number, and tanh

BLOCKS = 8


def chain(x: Any) -> Any:
    for _ in range(BLOCKS):
        x = np.tanh(np.exp(np.sin(x)) * 0.5)
    return np.sum(x)


def chain_by_hand(x: Any) -> tuple[Any, Any]:
    saved = []
    for _ in range(BLOCKS):
        e = np.exp(np.sin(x))
        t = e * 0.5
        saved.append((x, e, t))
        x = np.tanh(t)
    y = np.sum(x)
    dx = np.ones_like(x)
    while saved:
        x, e, t = saved.pop()
        sech = 1 / np.cosh(t)
        dx *= sech * sech
        dx *= 0.5
        dx *= e
        dx *= np.cos(x)
    return y, dx


def _chain(report: Report, progress: Progress, n: int) -> None:
    import gradsmith as gs

    x = np.random.default_rng(0).standard_normal(n)
    gradient = gs.grad(chain)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: gradient(x),
        BY_HAND: lambda: chain_by_hand(x)[1],
    }
    np.testing.assert_allclose(calls["ours"](), calls[BY_HAND](), rtol=1e-9)
    seconds = interleaved(calls, progress, rounds=_rounds(report, 8))
    report.rows.append(
        Row(
            case=f"chain of {4 * BLOCKS} operations, n = {n:.0e}",
            ours=seconds["ours"] * 1e3,
            peer=seconds[BY_HAND] * 1e3,
            peer_name=BY_HAND,
            target=1.15,
            unit="ms",
        )
    )
    progress("peak memory")
    # The derivatives of sin and tanh need their input and that of exp its output: three
    # arrays per block, of which the very first is the caller's own x.
    arrays = 3 * BLOCKS - 1
    report.rows.append(
        Row(
            case=f"peak memory of that chain, beside the {arrays} arrays it must save",
            ours=_peak_in_new_process(n) / 1e6,
            peer=arrays * x.nbytes / 1e6,
            peer_name="saved values",
            target=1.1,
            unit="MB",
        )
    )


def _peak_in_new_process(n: int) -> int:
    """The peak of a first call, which finds no memory kept for reuse."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.lse", str(n)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def _peak(n: int) -> int:
    """The most bytes that the gradient of the chain holds; NumPy reports its arrays."""
    import gradsmith as gs

    gradient = gs.grad(chain)
    gradient(np.ones(1))  # imports and caches are no part of it
    x = np.random.default_rng(0).standard_normal(n)
    with no_gc():
        tracemalloc.start()
        gradient(x)
        return tracemalloc.get_traced_memory()[1]


def _rounds(report: Report, rounds: int) -> int:
    return 1 if report.options.quick else rounds


if __name__ == "__main__":
    print(_peak(int(sys.argv[1])))
