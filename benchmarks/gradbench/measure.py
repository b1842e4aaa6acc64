"""Run in a process of its own, whose libraries have one thread each.

It prints a line of JSON for each problem.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks._measure import Progress, interleaved
from benchmarks.gradbench import SEED
from benchmarks.gradbench.libraries import OURS, PEERS
from gradsmith.core import trees
from gradsmith.core.errors import first_line


def measure(problem: str, quick: bool, peers: list[str]) -> dict[str, Any]:
    """Seconds of each contender at each size, and who was refused."""
    module, progress = (
        import_module(f"benchmarks.gradbench.{problem}"),
        Progress(problem),
    )
    rows, refused = [], []
    for size in module.SIZES[:1] if quick else module.SIZES:
        progress(str(size))
        inputs = module.inputs(np.random.default_rng(SEED), **size)
        calls: dict[str, Any] = {}
        expected = None
        for name, make in {**OURS, **{p: PEERS[p] for p in peers}}.items():
            try:
                call = make(module, size, inputs)
                found = arrays(call())
                expected = found if expected is None else expected
                require_agreement(found, expected)
                calls[name] = call
            except Exception as error:
                refused.append(
                    f"{problem} {describe(size)}, {name}: {first_line(error)}"
                )
        rounds, turn = (1, 0.0) if quick else (6, 0.03)
        seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
        rows.append({"size": describe(size), "seconds": seconds})
    return {"problem": problem, "rows": rows, "refused": refused}


def describe(size: dict[str, int]) -> str:
    return ", ".join(f"{name} = {n}" for name, n in size.items())


def arrays(result: Any) -> list[Any]:
    return [np.asarray(x) for x in trees.leaves(result)]


def require_agreement(found: list[Any], expected: list[Any]) -> None:
    """A wrong gradient is easily fast."""
    assert len(found) == len(expected), f"{len(found)} arrays, not {len(expected)}"
    for x, y in zip(found, expected, strict=True):
        scale = np.max(np.abs(y), initial=0)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11 * scale)


if __name__ == "__main__":
    for problem in sys.argv[1].split(","):
        found = measure(problem, sys.argv[2] == "quick", sys.argv[3:])
        print(json.dumps(found), flush=True)
