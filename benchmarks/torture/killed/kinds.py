"""What is killed: `gradsmith check`, a scan with files, a save of an optimizer."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gradsmith as gs

from .command import Run, checked, killed

KINDS: dict[str, Callable[[random.Random], None]] = {}
OPERATION = """
@gs.custom_gradient
def op{0}(x):
    return x * x * {0}.0, lambda dy: {1} * x * dy
"""
WRONG = 3  # the one with a wrong gradient


def kind(run: Callable[[random.Random], None]) -> Callable[[random.Random], None]:
    KINDS[run.__name__.replace("_", " ")] = run
    return run


def _operations(folder: Path) -> Path:
    path = folder / "operations.py"
    slopes = [(i, 2.0 * i + (i == WRONG)) for i in range(1, 6)]
    text = "".join(OPERATION.format(i, slope) for i, slope in slopes)
    path.write_text(f"import gradsmith as gs\n{text}")
    return path


@cache
def _whole() -> tuple[Run, bytes]:
    """A run that nobody disturbs, and its journal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journal = folder / "journal.jsonl"
        return checked(_operations(folder), journal), journal.read_bytes()


def _resumed(rng: random.Random, sign: signal.Signals) -> None:
    whole, _ = _whole()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, journal = _operations(folder), folder / "journal.jsonl"
        left = killed(path, journal, sign, rng.uniform(0.1, 1.1) * whole.seconds)
        assert not left, f"processes are left: {left}"
        again = checked(path, journal)
        assert again.results == whole.results, f"{again.results}, not {whole.results}"
        assert again.status == whole.status, f"status {again.status}"


@kind
def check_killed(rng: random.Random) -> None:
    _resumed(rng, signal.SIGKILL)


@kind
def check_terminated(rng: random.Random) -> None:
    _resumed(rng, signal.SIGTERM)


@kind
def check_interrupted(rng: random.Random) -> None:
    _resumed(rng, signal.SIGINT)


@kind
def journal_damaged(rng: random.Random) -> None:
    whole, journal = _whole()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, damaged = _operations(folder), folder / "journal.jsonl"
        here = journal.replace(_written_in(journal), str(folder).encode())
        damaged.write_bytes(_damage(here, rng))
        again = checked(path, damaged)
        assert "Traceback" not in again.errors, again.errors[-300:]
        assert again.results == whole.results, f"{again.results}, not {whole.results}"
        assert again.status == whole.status, f"status {again.status}"


def _written_in(journal: bytes) -> bytes:
    """The folder that a journal names, so that the entries stay valid elsewhere."""
    end = journal.index(b"/operations.py")
    return journal[journal.rindex(b'"', 0, end) + 1 : end]


def _damage(journal: bytes, rng: random.Random) -> bytes:
    at, data = rng.randrange(len(journal)), bytearray(journal)
    how = rng.choice(("flip", "cut", "insert", "double", "zeros"))
    if how == "flip":
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif how == "cut":
        del data[at:]
    elif how == "insert":
        data[at:at] = rng.randbytes(rng.randint(1, 200))
    elif how == "double":
        data += data[at:]
    else:
        data[at : at + 50] = bytes(50)
    return bytes(data)


SAVE = """
import sys, numpy as np, gradsmith as gs
v = gs.Variable(np.zeros(50_000)); adam = gs.optimizers.Adam(0.1)
print("ready", flush=True)
while True:
    adam.apply_gradients([(np.ones(50_000), v)]); adam.save(sys.argv[1])
"""


@kind
def optimizer_killed_while_it_saves(rng: random.Random) -> None:
    import subprocess
    import time

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "adam.npz"
        command = [sys.executable, "-c", SAVE, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            while not path.exists():
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.2))
            process.kill()
        v = gs.Variable(np.zeros(50_000))
        adam = gs.optimizers.Adam(0.1)
        adam.apply_gradients([(np.ones(50_000), v)])
        adam.load(path)
        adam.apply_gradients([(np.ones(50_000), v)])
        assert np.isfinite(v.numpy()).all(), "the loaded state is not finite"


@kind
def optimizer_file_damaged(rng: random.Random) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "adam.npz"
        v, adam = gs.Variable(np.zeros(40)), gs.optimizers.Adam(0.1)
        adam.apply_gradients([(np.ones(40), v)])
        adam.save(path)
        before = {key: np.array(x) for key, x in adam.state().items()}
        whole = path.read_bytes()
        path.write_bytes(_damage(whole, rng))
        other = gs.optimizers.Adam(0.1)
        other.apply_gradients([(np.ones(40), gs.Variable(np.zeros(40)))])
        try:
            other.load(path)
        except Exception as error:
            _require_told(error)
            return
        _require_same(before, other.state(), "a damaged file was loaded")


def _require_told(error: Exception) -> None:
    broken = isinstance(error, AttributeError | RecursionError | IndexError)
    told = str(error) and not broken
    assert told, f"{type(error).__name__}: {error}"


def _require_same(before: dict[str, Any], now: Any, what: str) -> None:
    for key, x in before.items():
        same = np.array_equal(x, now.get(key))
        assert same, f"{what}: {key} differs"


@kind
def snapshot_on_disk_damaged(rng: random.Random) -> None:
    """A state that changed on the disk must not become a gradient."""
    x = np.linspace(0.5, 1.5, 50)
    with tempfile.TemporaryDirectory() as name:
        touched = []

        def step(x: Any, i: Any) -> Any:
            for path in Path(name).rglob("*"):
                if path.is_file() and path.stat().st_size and rng.random() < 0.3:
                    path.write_bytes(_damage(path.read_bytes(), rng))
                    touched.append(path)
            return x + 0.1 * np.sin(x)

        options = {"snapshots": 1, "disk": 3, "folder": name}
        run = gs.grad(lambda x: np.sum(gs.checkpoint_scan(step, x, 12, **options)))
        exact = gs.grad(lambda x: np.sum(_steps(x, 12)))(x)
        try:
            found = run(x)
        except Exception as error:
            _require_told(error)
            return
        assert np.allclose(found, exact), f"wrong after {len(touched)} damages"


def _steps(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = x + 0.1 * np.sin(x)
    return x
