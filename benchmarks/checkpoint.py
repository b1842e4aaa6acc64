"""A long loop and its gradient with few states stored: `gs.checkpoint_scan`.

The loop is a nonlinear wave equation (sine-Gordon) on a grid: 1,000 steps, 20 stored
states. The floor is the bare solver: as many plain NumPy steps as are recomputed, and a
plain gradient of each step. Peers are what people do in frameworks with as many stored
states: equal segments, each recomputed as a whole. Memory is measured in new processes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from math import comb
from typing import Any

import numpy as np

from benchmarks._measure import Progress, no_gc
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, Row

SOLVER = "the bare solver"
State = dict[str, Any]


def run(options: Options) -> Report:
    report, progress = Report("checkpoint", options), Progress("checkpoint")
    size = (16, 40, 4) if options.quick else (256, 1000, 20)
    side, steps, snapshots = size
    case = f"{steps:,} steps, {snapshots} snapshots"
    add = report.rows.append

    progress("time")
    found = _in_new_process("timed", *size, 1 if options.quick else 3)
    least = revolve(steps, snapshots)
    add(Row(f"{case}: steps", found["steps"], least, "Revolve", 1.0, ""))
    ours = found["ours"]
    add(Row(f"{case}: time", ours, found["floor"], SOLVER, 1.05, "s"))
    add(Row(f"{case}: time", ours, found["by hand"], "adjoint by hand", None, "s"))

    progress("memory")
    states = snapshots * 2 * side * side * 8 / 1e6
    ours = _in_new_process("traced", *size, "ours")["peak"] / 1e6
    bare = _in_new_process("traced", *size, "bare")["peak"] / 1e6
    name = f"{snapshots} states"
    add(Row(f"{case}: memory above the solver's", ours - bare, states, name, 1.1, "MB"))
    add(Row(f"{case}: memory in all", ours, states, name, None, "MB"))
    _beside_peers(report, progress, case, size)
    return report


def revolve(steps: int, snapshots: int) -> int:
    """Griewank and Walther's number of forward steps."""
    s = min(snapshots, steps - 1)
    r = next(r for r in range(steps) if comb(s + r, s) >= steps)
    return steps + r * steps - comb(s + r, s + 1)


def _beside_peers(
    report: Report, progress: Progress, case: str, size: tuple[int, int, int]
) -> None:
    peers = report.available("torch", "jax")
    if not peers:
        return
    progress("our process")
    ours = _whole(size, "ours")
    for name in peers:
        progress(f"{PEERS[name].title}, in segments")
        theirs = _whole(size, name)
        np.testing.assert_allclose(theirs["norm"], ours["norm"], rtol=1e-9)
        title = f"{PEERS[name].title}, {size[2]} segments"
        for what, unit in (("time", "s"), ("memory", "MB")):
            row = Row(
                f"{case}: {what} of a process", ours[what], theirs[what], title, None,
                unit,
            )  # fmt: skip
            report.rows.append(row)


# The solver, with the functions of NumPy or of a framework


def step(s: State, xp: Any = np, roll: Any = np.roll) -> State:
    u, v = s["u"], s["v"]
    around = roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1)
    v = v + 0.01 * (around - 4.0 * u - xp.sin(u))
    return {"u": u + 0.01 * v, "v": v}


def adjoint(s: State, d: State) -> State:
    """The transposed derivative of a step, as one would write it."""
    dv = d["v"] + 0.01 * d["u"]
    w = 0.01 * dv
    around = np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1)
    return {"u": d["u"] + around - (4.0 + np.cos(s["u"])) * w, "v": dv}


def start(side: int) -> State:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal((side, side)) for name in "uv"}


def bare(side: int, steps: int) -> State:
    s = start(side)
    for _ in range(steps):
        s = step(s)
    return s


def gradient(s: State, steps: int, snapshots: int, counted: Any = step) -> State:
    import gradsmith as gs

    def loss(s: State) -> Any:
        last = gs.checkpoint_scan(counted, s, steps, snapshots=snapshots)
        return np.sum(last["u"] ** 2)

    return gs.grad(loss)(s)


# What is run in processes of their own


def timed(side: int, steps: int, snapshots: int, rounds: int) -> dict[str, float]:
    """Ours and the floors in turn: the least seconds of each."""
    import gradsmith as gs

    s, calls = start(side), [0]

    def counted(s: State) -> State:
        calls[0] += 1
        return step(s)

    gradient(s, steps, snapshots, counted)
    again = calls[0] - steps

    def floor() -> None:
        x = s
        for _ in range(again):
            x = step(x)
        for _ in range(steps):
            y, pull = gs.vjp(step, s)
            pull(y)

    def by_hand() -> None:
        x = s
        for _ in range(calls[0]):
            x = step(x)
        for _ in range(steps):
            x = adjoint(s, x)

    contenders = {
        "ours": lambda: gradient(s, steps, snapshots),
        "floor": floor,
        "by hand": by_hand,
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            best[name] = min(best[name], _seconds(call))
    return {**best, "steps": float(again + steps)}


def _seconds(call: Callable[[], Any]) -> float:
    """Of this process: others on the machine don't count."""
    with no_gc():
        begin = time.process_time()
        call()
        return time.process_time() - begin


def traced(side: int, steps: int, snapshots: int, what: str) -> dict[str, float]:
    """The most bytes of arrays at a time, the start included."""
    gradient(start(4), 5, 2)  # imports and caches are no part of it
    tracemalloc.start()
    if what == "bare":
        bare(side, steps)
    else:
        gradient(start(side), steps, snapshots)
    return {"peak": tracemalloc.get_traced_memory()[1]}


def whole(side: int, steps: int, snapshots: int, who: str) -> dict[str, float]:
    """Seconds, growth of the process and a check, of us or a peer."""
    call = {"ours": gradient, "torch": by_torch, "jax": by_jax}[who]
    call(start(4), 2 * snapshots, snapshots)
    s, before = start(side), _most()
    seconds = time.perf_counter()
    d = call(s, steps, snapshots)
    seconds = time.perf_counter() - seconds
    return {
        "time": seconds,
        "memory": max(_most() - before, 4096) / 1e6,  # at least a page
        "norm": float(np.sum(np.square(np.asarray(d["u"])))),
    }


def _most() -> float:
    """The most memory that the process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def by_torch(s: State, steps: int, snapshots: int) -> State:
    torch = load("torch")
    from torch.utils.checkpoint import checkpoint

    def segment(u: Any, v: Any) -> Any:
        x = {"u": u, "v": v}
        for _ in range(steps // snapshots):
            x = step(x, torch, torch.roll)
        return x["u"], x["v"]

    u, v = first = [torch.tensor(s[name], requires_grad=True) for name in "uv"]
    for _ in range(snapshots):
        u, v = checkpoint(segment, u, v, use_reentrant=False)
    du, dv = torch.autograd.grad((u**2).sum(), first)
    return {"u": du, "v": dv}


def by_jax(s: State, steps: int, snapshots: int) -> State:
    jax = load("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    one = lambda x, _: (step(x, jnp, jnp.roll), None)

    @jax.checkpoint
    def segment(x: Any, _: Any) -> Any:
        return jax.lax.scan(one, x, None, steps // snapshots)[0], None

    def loss(x: Any) -> Any:
        return jnp.sum(jax.lax.scan(segment, x, None, snapshots)[0]["u"] ** 2)

    return jax.block_until_ready(jax.jit(jax.grad(loss))(s))


def _whole(size: tuple[int, int, int], who: str) -> dict[str, float]:
    """Time and memory from a process each.

    The memory that glibc keeps after it was freed would count as in use (ten times as
    much, with PyTorch): for the second it is told to give large arrays back at once.
    """
    quick = _in_new_process("whole", *size, who)
    frugal = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    small = _in_new_process("whole", *size, who, environment=frugal)
    return {**quick, "memory": small["memory"]}


def _in_new_process(
    what: str, *arguments: Any, environment: Mapping[str, str] | None = None
) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.checkpoint", what, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    found = globals()[name](*(int(x) if x.isdigit() else x for x in given))
    print(json.dumps(found))
