"""The command line: what it finds, what it says, and what it survives."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import examples
import gradsmith
from gradsmith.command.audit_display import AuditBar
from gradsmith.command.audited import Step
from gradsmith.command.check_display import CheckBar
from gradsmith.command.command import gradsmith as command
from gradsmith.command.config import size_of
from gradsmith.command.guess import guess
from gradsmith.command.results import Status, TaskOutcome, exit_status
from gradsmith.command.run import Event, frameworks_for
from gradsmith.command.sources import sources_of
from gradsmith.tools.workers import default_memory

HEAD = """
import os, time
import numpy as np
import gradsmith as gs
"""
RIGHT = """
@gs.custom_gradient
def right(x):
    return x**2, lambda dy: 2 * x * dy
"""
WRONG = """
@gs.custom_gradient
def wrong(x):
    return x**2, lambda dy: 3 * x * dy
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *parts: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join((HEAD, *parts)), encoding="utf-8")


def run(*arguments: str):
    """Exit status, results by name, and all that was said."""
    words = ["check", *arguments, "--quick", "--json", "all.json"]
    found = CliRunner().invoke(command, words)
    assert found.exception is None or isinstance(found.exception, SystemExit)
    results = {}
    if Path("all.json").exists():
        document = json.loads(Path("all.json").read_text(encoding="utf-8"))
        assert document["exit_status"] == found.exit_code
        results = {row["name"] or row["file"]: row for row in document["results"]}
    return found.exit_code, results, found


def told(found) -> list[str]:
    """The lines on standard error, without those of a run that takes long."""
    progress = ("checked ", "reading ")
    return [x for x in found.stderr.splitlines() if not x.startswith(progress)]


def statuses(results) -> dict[str, str]:
    return {name: row["status"] for name, row in results.items()}


# --- right and wrong


def test_right(folder):
    write("ops.py", RIGHT)
    status, results, found = run("ops.py")
    assert status == 0
    assert statuses(results) == {"right": "right"}
    assert "✓ right  ops.py:right  NumPy" in found.stdout
    assert "inputs were guessed: x (3, 4)" in found.stdout
    assert found.stdout.splitlines()[-1].startswith("1 right in ")
    assert found.output.count("right  ops.py:right") == 1
    assert told(found) == []


def test_wrong_is_reported_in_full_and_the_status_is_1(folder):
    write("ops.py", RIGHT, WRONG)
    status, results, found = run("ops.py", "--jobs", "1")
    assert status == 1
    assert statuses(results) == {"right": "right", "wrong": "wrong"}
    assert results["wrong"]["report"]["findings"][0]["argument"] == "x"
    assert "── ops.py:wrong" in found.stdout
    assert results["wrong"]["text"] in found.stdout
    assert "1 right; 1 wrong in " in found.stdout


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_terminal_shows_at_once_what_is_not_right(on_terminal):
    console = Console(file=StringIO(), force_terminal=on_terminal, width=80)
    with CheckBar(console) as bar:
        for name, status in (("fine", Status.RIGHT), ("bad", Status.WRONG)):
            bar.show(Event(TaskOutcome("a.py", name, "NumPy", status), found=1))
    said = console.file.getvalue()
    assert ("a.py:bad" in said) == on_terminal
    assert "a.py:fine" not in said


@pytest.mark.parametrize("on_terminal", [True, False])
def test_without_a_terminal_a_line_says_now_and_then_how_far_it_is(
    on_terminal, monkeypatch
):
    times = iter(np.arange(100.0, 160.0, 0.05))
    clock = SimpleNamespace(monotonic=lambda: next(times))
    monkeypatch.setattr("gradsmith.command.display.time", clock)
    console = Console(file=StringIO(), force_terminal=on_terminal, width=80)
    bar = CheckBar(console)
    bar.show(Event(found=3))
    for _ in range(1190):
        bar.show(Event(doing=("a.py:f", "b.py:g")))
    lines = console.file.getvalue().splitlines()
    if on_terminal:
        assert lines == []  # the bar says it
    else:
        assert lines[0] == "checked 0 of 3; now a.py:f, b.py:g (2 s)"
        assert len(lines) == 6


def test_a_long_audit_says_so_too(monkeypatch):
    now = 100.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("gradsmith.command.display.time", clock)
    console = Console(file=StringIO(), width=80)
    bar = AuditBar(console)
    bar.show(Step("a.py:f"))
    now += 3
    bar.show(Step("a.py:f", 20_000, 1_000_000))
    words = "auditing a.py:f: 20,000 of 1,000,000 inputs (3 s)\n"
    assert console.file.getvalue() == words


# --- what is found


def test_folders_modules_and_single_operations(folder):
    write("package/__init__.py")
    write("package/ops.py", RIGHT, "from package.more import wrong\n")
    write("package/more.py", WRONG)
    write("package/.hidden/ops.py", "1 / 0")
    Path("package/script.py").write_text("raise SystemExit('not to be imported')")
    _, results, _ = run("package/")
    # Imported ones are not its own
    assert statuses(results) == {"right": "right", "wrong": "wrong"}
    assert results["wrong"]["file"] == os.path.join("package", "more.py")
    assert sources_of("package") == sources_of("package/")
    chosen = run("package.ops:right", "package/more.py:wrong")[1]
    assert list(chosen) == ["right", "wrong"]
    assert list(run("package", "-k", "wro")[1]) == ["wrong"]


def test_operations_in_classes_methods_and_of_others_functions(folder):
    write(
        "ops.py",
        """
class Made:
    @gs.custom_gradient
    def scale(self, x):
        return 2 * x, lambda dy: 2 * dy

    class_level = gs.with_gradient(np.sin, lambda dy, y, x: dy * np.cos(x))

def plain(x):
    os.chdir("/")
    return x * np.cos(x)

again = Made.scale
""",
    )
    expected = {"Made.scale": "right", "Made.class_level": "right"}
    assert statuses(run("ops.py")[1]) == expected
    assert statuses(run("ops.py:plain")[1]) == {"plain": "right"}


def test_examples_are_used_and_make_the_rule_run(folder):
    write(
        "ops.py",
        """
@gs.operation
def pick(x, names):
    return x[..., [len(name) for name in names]]

@pick.vjp
def _(dy, y, x, names):
    return dy @ np.eye(4, dtype=x.dtype)[[len(name) for name in names]]

@pick.example
def _():
    return gs.spec("n 4"), ("a", "bcd")

@gs.operation
def hard(x, names):
    return x * names["scale"]

@hard.vjp
def _(dy, y, x, names):
    return dy * names["scale"]
""",
    )
    status, results, _ = run("ops.py")
    assert status == 3
    assert statuses(results) == {"pick": "right", "hard": "could not run"}
    assert "guessed" not in results["pick"]["text"]
    assert "give it an example with @hard.example" in results["hard"]["message"]
    assert 'x * names["scale"]' in results["hard"]["details"]


def test_guesses_fit_the_signature(folder):
    write(
        "ops.py",
        """
@gs.custom_gradient
def log(x):
    return np.log(x), lambda dy: dy / x

@gs.custom_gradient
def matmul(a, b):
    return a @ b, lambda dy: (dy @ b.T, a.T @ dy)

@gs.custom_gradient
def power(x, n: int, scale: float = 1.0):
    return scale * x**n, lambda dy: scale * n * x**(n - 1) * dy

@gs.custom_gradient
def choose(x, i):
    if i.dtype.kind != "i":
        raise TypeError("i wants integers")
    def grad(dy):
        return dy[:, None] * np.eye(x.shape[1], dtype=x.dtype)[i], None
    return x[np.arange(len(i)), i], grad
""",
    )
    status, results, _ = run("ops.py")
    assert set(statuses(results).values()) == {"right"}, statuses(results)
    assert status == 0
    notes = {name: row["report"]["notes"][-1] for name, row in results.items()}
    assert notes["matmul"].endswith("a (3, 4), b (4, 5)")
    assert notes["choose"].endswith("x (3, 4), i (3,) of integers")
    assert notes["power"].endswith("x (3, 4), n 2, scale 0.75")


def by_name(x, gradient_min: float, gradient_max: float):
    return x


def by_array(lower, upper, x):
    return x


@pytest.mark.parametrize("op", [by_name, by_array])
@pytest.mark.parametrize("seed", range(3))
def test_guessed_bounds_are_in_order(op, seed):
    names = inspect.signature(op).parameters
    found = dict(zip(names, guess(op, "numpy", seed).args, strict=True))
    x = found.pop("x")
    low, high = found.values()
    assert np.all(low < high)
    assert isinstance(x, np.ndarray)


def test_a_clip_of_the_gradient_with_guessed_bounds(folder):
    write(
        "ops.py",
        """
import jax
import jax.numpy as jnp

@jax.custom_gradient
def clip_gradient(x, gradient_min: float, gradient_max: float):
    def grad(dy):
        return jnp.clip(dy, gradient_min, gradient_max), 0.0, 0.0
    return x, grad
""",
    )
    status, results, _ = run("ops.py")
    assert (status, statuses(results)) == (0, {"clip_gradient": "surrogate"})


def test_frameworks_own_operations(folder):
    write(
        "native.py",
        """
import torch

class Base(torch.autograd.Function):
    pass

class Double(Base):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, dy):
        return 3 * dy

double = Double.apply

@torch.library.custom_op("command_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

def setup(ctx, inputs, output):
    ctx.by = inputs[1]

scaled.register_autograd(lambda ctx, dy: (dy * ctx.by, None), setup_context=setup)
""",
        RIGHT,
    )
    _, results, _ = run("native.py", "--jobs", "1")
    found = {name: (row["status"], row["framework"]) for name, row in results.items()}
    assert found == {
        "Double": ("wrong", "PyTorch"),
        "scaled": (found["scaled"][0], "PyTorch"),  # PyTorch gives it no forward mode
        "right": ("right", "NumPy"),
    }


def test_where_operations_are_run():
    assert frameworks_for("", ()) == [""]  # as its arrays are
    assert frameworks_for("", ("jax", "numpy")) == ["jax", "numpy"]
    assert frameworks_for("torch", ("jax",)) == []
    for chosen in (("all",), ("jax", "torch"), ()):
        assert frameworks_for("torch", chosen) == ["torch"]
    assert frameworks_for("", ("all",))[0] == "numpy"


def test_the_examples_of_this_project_are_right():
    folder = str(Path(examples.__file__).parent)
    found = CliRunner().invoke(command, ["check", folder, "--quick"])
    assert found.exit_code == 0, found.stdout
    assert "9 right; 1 as declared in" in found.stdout
    assert "a surrogate on purpose: ReLU with a leak" in found.stdout


# --- what goes wrong is reported, and the rest goes on


def test_crashes_hangs_and_memory(folder):
    write(
        "ops.py",
        """
@gs.custom_gradient
def leaves(x):
    print("about to leave")
    os._exit(3)

@gs.custom_gradient
def faults(x):
    import ctypes
    ctypes.string_at(0)

@gs.custom_gradient
def hangs(x):
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    open("child", "w").write(str(child.pid))
    while True:
        time.sleep(1)

@gs.custom_gradient
def eats(x):
    kept = []
    while True:
        kept.append(np.ones(4 * 10**6))
        time.sleep(0.01)
""",
        RIGHT,
    )
    status, results, found = run(
        "ops.py", "--time-limit", "12", "--memory-limit", "700MB"
    )
    assert status == 3
    messages = {name: row["message"] for name, row in results.items()}
    assert messages == {
        "leaves": "ended the process with status 3",
        "faults": "crashed (SIGSEGV)",
        "hangs": "took longer than 12 s",
        "eats": "used more than 0.7 GB of memory",
        "right": "",
    }
    assert results["right"]["status"] == "right"
    assert "about to leave" in results["leaves"]["output"]
    assert "ctypes.string_at(0)" in results["faults"]["details"]
    assert "time.sleep(1)" in results["hangs"]["details"]
    assert "  | about to leave" in found.stdout
    child = Path("/proc", Path("child").read_text(), "cmdline")
    assert not (child.exists() and child.read_text())  # gone, or a zombie


def test_what_cannot_be_checked_is_said_to_be_that(folder):
    write(
        "ops.py",
        """
@gs.custom_gradient
def raises(x):
    return helper(x), None

def helper(x):
    print("helping")
    raise LookupError("out of luck")

@gs.custom_gradient
def rule_raises(x):
    def grad(dy):
        raise LookupError("no rule")
    return x, grad

@gs.custom_gradient
def exits(x):
    raise SystemExit(0)

@gs.custom_gradient
def of_integers(n: int):
    return n, lambda dy: gs.zero
""",
    )
    status, results, found = run("ops.py", "--jobs", "1")
    assert status == 3
    assert set(statuses(results).values()) == {"could not run"}
    details = results["raises"]["details"]
    assert 'raise LookupError("out of luck")' in details
    assert "inputs.py" not in details  # only the user's frames
    assert details.count("File ") == 2
    assert "helping" in results["raises"]["output"]
    assert results["rule_raises"]["message"] == "raised LookupError: no rule"
    assert results["exits"]["message"] == "raised SystemExit: 0"
    assert "takes no floating-point numbers" in results["of_integers"]["message"]
    assert "wrong" not in found.stdout


def test_what_cannot_be_decided_is_inconclusive(folder):
    write(
        "ops.py",
        """
@gs.custom_gradient
def argmax(x):
    return np.argmax(x), lambda dy: 0 * x

@gs.custom_gradient
def nowhere(x):
    return x * np.nan, lambda dy: dy

@gs.custom_gradient
def noisy(x):
    noise = np.random.default_rng().normal(size=np.shape(x))
    return x * noise, lambda dy: dy * noise
""",
    )
    status, results, found = run("ops.py", "--jobs", "1")
    assert status == 3
    assert set(statuses(results).values()) == {"could not tell"}
    assert "no gradient is needed" in found.stdout
    assert "no output is finite" in found.stdout
    assert "the operation is random" in found.stdout
    assert run("ops.py", "--jobs", "1", "--allow-inconclusive")[0] == 0


def test_files_that_cannot_be_imported(folder):
    write("a.py", RIGHT, "def start():\n    import no_such_thing\n\nstart()\n")
    write("b.py", RIGHT, "def f(:\n")
    write("c.py", RIGHT)
    status, results, found = run(".")
    assert status == 3
    assert results["right"]["status"] == "right"
    assert "ModuleNotFoundError: No module named 'no_such" in results["a.py"]["message"]
    assert "import no_such_thing" in results["a.py"]["details"]
    assert "importlib" not in results["a.py"]["details"]
    assert "SyntaxError" in results["b.py"]["message"]
    assert "def f(:" in found.stdout


def test_a_hanging_import(folder):
    write("ops.py", "time.sleep(1000)\n")
    _, results, _ = run("ops.py", "--time-limit", "3.5")
    message = results["ops.py"]["message"]
    assert message == "took longer than 3.5 s, while the file was imported"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nothing.py", "there is no file or folder 'nothing.py'"),
        ("no.such.module", "there is no file, folder or module 'no.such.module'"),
        ("math", "is not written in Python"),
    ],
)
def test_targets_that_are_not_there(folder, target, words):
    status, _, found = run(target)
    assert status == 2
    assert words in found.stderr


def test_what_is_no_python_file_is_told(folder):
    Path("a notebook.ipynb").write_text('{"cells": []}')
    Path("script").write_text("import gradsmith as gs\nf = gs.custom_gradient(abs)\n")
    for command_name in ("check", "audit", "report"):
        found = CliRunner().invoke(command, [command_name, "a notebook.ipynb"])
        assert found.exit_code == 2
        assert "'a notebook.ipynb' is a notebook" in found.output
        assert "what to do: call gs.check in the notebook" in found.output
    status, _, found = run("script")
    assert status == 2
    assert "'script' is no Python file" in found.output
    write("ops.py", RIGHT)  # a hook gets whatever has changed
    status, results, found = run("ops.py", "script", "--allow-empty")
    assert status == 0
    assert statuses(results) == {"right": "right"}
    assert "skipped script: it is no Python file" in found.stderr


def test_nothing_to_check(folder):
    write("ops.py", RIGHT)
    status, _, found = run("ops.py", "-k", "another")
    assert status == 3
    assert "no operation was found" in found.stdout
    status, results, _ = run("ops.py:another")
    assert status == 3
    assert "there is no 'another'; the operations here: right" in str(results)


def test_the_same_helper_name_in_two_folders(folder):
    for name, factor in (("a", 2), ("b", 3)):
        write(f"{name}/helper.py", f"FACTOR = {factor}\n")
        write(
            f"{name}/ops.py",
            f"from helper import FACTOR\nassert FACTOR == {factor}\n",
            RIGHT.replace("right", f"right_{name}"),
        )
    status, results, _ = run("a/ops.py", "b/ops.py", "--jobs", "1")
    assert statuses(results) == {"right_a": "right", "right_b": "right"}
    assert status == 0


# --- options


def test_json_to_standard_output(folder):
    write("ops.py", WRONG)
    found = CliRunner().invoke(command, ["check", "ops.py", "--quick", "--json"])
    document = json.loads(found.stdout)
    assert document["exit_status"] == found.exit_code == 1
    assert [row["status"] for row in document["results"]] == ["wrong"]


def test_json_does_not_overwrite_a_target(folder):
    write("ops.py", RIGHT)
    before = Path("ops.py").read_text()
    found = CliRunner().invoke(command, ["check", "--json", "ops.py", "ops.py"])
    assert found.exit_code == 2
    assert "put the targets first" in found.stderr
    assert Path("ops.py").read_text() == before


def test_resume_skips_what_is_done_and_unchanged(folder):
    write("a.py", RIGHT, "open('ran', 'a').write('a')\n")
    write("b.py", WRONG, "open('ran', 'a').write('b')\n")
    first = run("a.py", "b.py", "--resume", "done.jsonl", "--jobs", "1")
    # Each operation imports its file, after it was found
    assert (first[0], Path("ran").read_text()) == (1, "abab")
    again = run("a.py", "b.py", "--resume", "done.jsonl", "--jobs", "1")
    assert again[:2] == first[:2]
    assert Path("ran").read_text() == "abab"  # not even imported
    write("b.py", RIGHT, "open('ran', 'a').write('c')\n")
    last = run("a.py", "b.py", "--resume", "done.jsonl", "--jobs", "1")
    assert (last[0], Path("ran").read_text()) == (0, "ababcc")
    run("a.py", "--resume", "done.jsonl", "--seed", "1")
    assert Path("ran").read_text() == "ababccaa"  # asked for something else


def test_resume_tries_again_what_could_not_run_and_bears_a_cut_line(folder):
    body = "    open('there').close()\n    return x"
    write("a.py", RIGHT.replace("    return x", body))
    assert run("a.py", "--resume", "done.jsonl")[0] == 3
    with Path("done.jsonl").open("a") as file:
        file.write('{"file": "a.p')
    Path("there").touch()
    assert run("a.py", "--resume", "done.jsonl")[0] == 0
    *_, cut, last = Path("done.jsonl").read_text().splitlines()
    assert cut == '{"file": "a.p'
    assert json.loads(last)["status"] == "right"


def test_interrupted(folder):
    write("a.py", RIGHT)
    write("b.py", "time.sleep(1000)\n")
    words = ["check", "a.py", "b.py", "--quick", "--jobs", "2", "--resume", "done"]
    words += ["--time-limit", "900"]
    # A shell's background jobs, and what they start, don't hear Ctrl-C.
    hear = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"import signal; {hear}; from gradsmith.command.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(gradsmith.__file__).parents[1])},
    )
    end = time.monotonic() + 300
    while time.monotonic() < end and not _has_result():
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to all of a group
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "1 right in" in out
    assert "stopped; continue with --resume done" in err
    assert "Traceback" not in err
    assert _has_result()


def _has_result() -> bool:
    return Path("done").exists() and '"status"' in Path("done").read_text()


@pytest.mark.parametrize(
    ("found", "allow", "expected"),
    [
        ([], False, 3),
        ([Status.RIGHT], False, 0),
        ([Status.RIGHT, Status.WRONG, Status.FAILED], False, 1),
        ([Status.RIGHT, Status.FAILED], True, 3),
        ([Status.RIGHT, Status.UNKNOWN], False, 3),
        ([Status.RIGHT, Status.UNKNOWN], True, 0),
    ],
)
def test_exit_status(found, allow, expected):
    results = [TaskOutcome("a.py", "f", "NumPy", status) for status in found]
    assert exit_status(results, allow_inconclusive=allow) == expected


def test_sizes():
    assert size_of("2 GB") == 2_000_000_000
    assert size_of("1.5g") == 1_500_000_000
    assert size_of("12") is None
    one, four = default_memory(1), default_memory(4)
    assert one is not None
    assert four is not None
    assert four <= one / 3


def test_a_bad_size_is_refused(folder):
    write("ops.py", RIGHT)
    status, _, found = run("ops.py", "--memory-limit", "much")
    assert status == 2
    assert "'much' is not a size such as 4GB" in found.stderr


# --- the doors


def test_without_click_the_extra_is_named():
    code = (
        "import sys; sys.modules['click'] = None;"
        "import gradsmith.command.main as c; c.main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 2
    assert 'pip install "gradsmith[cli]"' in found.stderr


def test_help():
    found = CliRunner().invoke(command, ["check", "--help"])
    assert "0    all gradients are right" in found.stdout


def test_finding_a_module_imports_nothing(folder):
    write("package/__init__.py", "raise SystemExit('imported')\n")
    write("package/ops.py", RIGHT)
    (source,) = sources_of("package.ops:right")
    assert (source.module, source.name) == ("package.ops", "right")
    assert source.label == os.path.join("package", "ops.py")
