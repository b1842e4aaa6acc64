"""What is killed: `gradsmith check` and `audit`, a save of an optimizer."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import gradsmith as gs

from .command import Command, Run

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


def _source(numbers: range) -> str:
    slopes = [(i, 2.0 * i + (i == WRONG)) for i in numbers]
    text = "".join(OPERATION.format(i, slope) for i, slope in slopes)
    return f"import gradsmith as gs\n{text}"


def _file(folder: Path) -> Path:
    path = folder / "operations.py"
    path.write_text(_source(range(1, 6)))
    return path


def _folder(folder: Path) -> Path:
    """Files with operations, and some that must not be run."""
    inner = folder / "package" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "operations.py").write_text(_source(range(1, 3)))
    (inner / "others.py").write_text(_source(range(3, 6)))
    (inner / "nothing.py").write_text("raise SystemExit('this file was run')\n")
    (inner / ".#others.py").symlink_to("nowhere")
    return inner.parent


def _one(folder: Path) -> Path:
    path = folder / "operations.py"
    path.write_text(_source(range(1, 2)))
    return path


SUBJECTS = {"file": _file, "folder": _folder, "one": _one}


def _command(name: str, subject: str, folder: Path) -> Command:
    return Command(name, SUBJECTS[subject](folder), folder / "journal.jsonl")


@cache
def _whole(name: str, subject: str) -> tuple[Run, bytes]:
    """A run that nobody disturbs, and its journal."""
    with tempfile.TemporaryDirectory() as folder:
        command = _command(name, subject, Path(folder))
        return command.run(), command.journal.read_bytes()


def _resumed(rng: random.Random, sign: signal.Signals, name: str, subject: str) -> None:
    whole, _ = _whole(name, subject)
    with tempfile.TemporaryDirectory() as folder:
        command = _command(name, subject, Path(folder))
        left = command.killed(sign, rng.uniform(0.1, 1.1) * whole.seconds)
        assert not left, f"processes are left: {left}"
        _require_whole(command.run(), whole)


def _require_whole(again: Run, whole: Run) -> None:
    assert "Traceback" not in again.errors, again.errors[-300:]
    assert again.results == whole.results, f"{again.results}, not {whole.results}"
    assert again.status == whole.status, f"status {again.status}"


SIGNALS = {
    "killed": signal.SIGKILL,
    "terminated": signal.SIGTERM,
    "interrupted": signal.SIGINT,
}
for _name, _subject in (("check", "file"), ("check", "folder"), ("audit", "one")):
    for _how, _sign in SIGNALS.items():
        KINDS[f"{_name} of {_subject} {_how}"] = partial(
            _resumed, sign=_sign, name=_name, subject=_subject
        )


def _after_damage(rng: random.Random, name: str, subject: str) -> None:
    whole, journal = _whole(name, subject)
    with tempfile.TemporaryDirectory() as folder:
        command = _command(name, subject, Path(folder))
        if name == "check":  # whose entries name the folder
            journal = journal.replace(_written_in(journal), folder.encode())
        command.journal.write_bytes(_damage(journal, rng))
        _require_whole(command.run(), whole)


KINDS["journal of check damaged"] = partial(_after_damage, name="check", subject="file")
KINDS["journal of audit damaged"] = partial(_after_damage, name="audit", subject="one")


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
