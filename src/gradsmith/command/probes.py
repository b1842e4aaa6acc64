"""Whether something works here: tried in a process of its own, which may crash or hang.

`python -m gradsmith.command.probes NAME` tries one part and prints its version.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

SECONDS = 60.0  # for each, on a machine that has little else to do
WORKS, BROKEN, SILENT = "works", "broken", "no answer"
NO_GPU = "no GPU was found"


def tried(name: str, seconds: float = SECONDS) -> tuple[str, str]:
    """WORKS and a version, or what else happened and in which words."""
    command = [sys.executable, "-m", __name__, name]
    try:
        found = subprocess.run(
            command, capture_output=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return SILENT, f"none in {seconds:g} s"
    lines = [*filter(str.strip, found.stderr.decode(errors="replace").splitlines())]
    if found.returncode == 0:
        return WORKS, found.stdout.decode(errors="replace").strip().rpartition("\n")[2]
    if found.returncode == -signal.SIGKILL:  # by whoever frees memory
        return SILENT, "it was killed: is there enough memory?"
    if found.returncode < 0:
        return BROKEN, f"it crashes (signal {-found.returncode})"
    return BROKEN, lines[-1].strip() if lines else f"exit status {found.returncode}"


def engine() -> str:
    import gradsmith as gs

    _require(float(gs.grad(lambda x: np.sum(x * x))(np.array([3.0]))[0]), 6.0)
    return gs.__version__


def framework(name: str) -> str:
    """A gradient by the framework's own means, as operations use them."""
    import gradsmith  # noqa: F401  # which registers the frameworks
    from gradsmith.core.arrays import FRAMEWORKS

    this = FRAMEWORKS[name]
    import_module(this.module)
    arrays = this.arrays
    x, one = (arrays.array(np.array([v]), "float32") for v in (3.0, 1.0))
    _, pull = this.calculus.vjp(lambda xs: [xs[0] * xs[0]], [x])
    _require(float(arrays.numpy(pull([one])[0])[0]), 6.0)
    return arrays.version


def cpu_kernel() -> str:
    """A small kernel by LLVM, compiled and run."""
    import gradsmith as gs
    import gradsmith.numpy as gnp
    from gradsmith.program.kernels.machine import this_machine

    @gs.custom_gradient
    def doubled(x: Any) -> Any:
        y = gnp.exp(x) * 2
        return y, lambda dy: dy * y

    with gs.kernels(True):
        _require(float(gs.fuse(doubled)(np.zeros(8))[7]), 2.0)
    return this_machine().name


def gpu() -> str:
    """The GPU that Triton compiles for."""
    driver = import_module("triton.runtime").driver
    try:
        target = driver.active.get_current_target()
    except RuntimeError:  # Triton's, where there is no driver or no device
        sys.exit(NO_GPU)
    return f"{target.backend} {target.arch}"


def module(name: str) -> str:
    return str(getattr(import_module(name), "__version__", ""))


def _require(found: float, expected: float) -> None:
    if found != expected:
        raise ArithmeticError(f"a gradient is {found:g}, and should be {expected:g}")


PROBES: dict[str, Callable[[], str]] = {
    "engine": engine, "cpu-kernel": cpu_kernel, "gpu": gpu,
}  # fmt: skip

if __name__ == "__main__":
    kind, _, what = sys.argv[1].partition(":")
    several = {"framework": framework, "module": module}
    print(several[kind](what) if what else PROBES[kind]())  # noqa: T201
