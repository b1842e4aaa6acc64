"""Run the design, write its pictures, and say what it cost."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

import gradsmith as gs

from . import __doc__ as about
from .design import SIZE, STEPS, Design, optimise
from .frameworks import BY
from .measure import costs, error
from .pictures import curve, png


def main() -> None:
    options = argparse.ArgumentParser("examples.fluid", description=about)
    options.add_argument("--rounds", type=int, default=30, help="of Adam")
    options.add_argument("--steps", type=int, default=STEPS, help="of the fluid")
    options.add_argument("--framework", choices=[*BY], help="compare with its arrays")
    options.add_argument("-o", "--output", type=Path, default=Path("fluid"))
    given = options.parse_args()
    if given.framework:
        compare(given.framework, min(given.steps, 20))
    else:
        design(given.steps, given.rounds, given.output)


def design(steps: int, rounds: int, folder: Path) -> None:
    problem, started, losses = Design(steps=steps), perf_counter(), []
    velocity, seconds = np.zeros((2, SIZE, SIZE)), 0.0
    print(f"{SIZE} x {SIZE} cells, {steps} steps, {2 * SIZE**2} unknowns", flush=True)
    for loss, velocity in optimise(problem, rounds):  # noqa: B007 (the last is used)
        losses.append(loss)
        seconds = perf_counter() - started
        line = f"round {len(losses)} of {rounds}: loss {loss:.5f}, {seconds:.0f} s"
        print(f"\r{line}", end="", flush=True)
    print(f"\nloss {losses[0]:.5f} -> {losses[-1]:.5f} in {seconds:.0f} s")
    write(problem, velocity, losses, folder)
    off = error(problem, velocity)
    print(f"gradient against differences: {off:.0e} (asked 1e-6)", flush=True)
    part = max(steps // 10, 1)
    print(f"a gradient through {part} steps:", flush=True)
    found = costs(velocity, part)
    (_, _, first), *_ = found.values()
    for name, (seconds, peak, dv) in found.items():
        off = np.max(np.abs(dv - first)) / np.max(np.abs(first))
        print(f"  {name:28} {seconds:7.2f} s {peak:8.1f} MB, differs by {off:.0e}")


def write(problem: Design, velocity, losses, folder: Path) -> None:
    """The dye on its way, the target, and the convergence."""
    folder.mkdir(parents=True, exist_ok=True)
    state, frames = problem.start(velocity), []
    for k in range(problem.steps + 1):
        if k % max(problem.steps // 4, 1) == 0:
            frames.append(np.asarray(state[2]))
        state = problem.fluid.step(state)
    png(folder / "dye.png", [*frames, problem.target])
    curve(folder / "convergence.svg", losses, "Distance of the dye from the triangle")
    print(f"wrote {folder / 'dye.png'} (five times, the target last) and "
          f"{folder / 'convergence.svg'}")  # fmt: skip


def compare(framework: str, steps: int) -> None:
    velocity = 0.05 * np.random.default_rng(0).normal(size=(2, SIZE, SIZE))
    loss, dv = BY[framework](Design, velocity, steps=steps)
    ours, expected = gs.value_and_grad(Design(steps=steps).loss)(velocity)
    off = np.max(np.abs(dv - expected)) / np.max(np.abs(expected))
    print(f"{framework}, compiled, {steps} steps: loss {loss:.6f} (engine {ours:.6f}), "
          f"gradients differ by {off:.0e}")  # fmt: skip


if __name__ == "__main__":
    main()
