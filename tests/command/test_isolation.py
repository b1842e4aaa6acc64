"""Workers of the command line: alone with their operation, and gone with their parent.

Run by the real command line; operations do what they should not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gradsmith
from tests.command.test_check import HEAD, RIGHT, folder, write  # noqa: F401
from tests.command.test_outputs import check

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are seen in /proc"),
]


def results() -> dict:
    document = json.loads(Path("all.json").read_text(encoding="utf-8"))
    return {row["name"] or row["file"]: row for row in document["results"]}


def processes(mark: str) -> set[int]:
    """Those whose environment has the mark."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment, state = path.read_bytes(), (path.parent / "stat").read_text()
        except OSError:
            continue
        if mark.encode() in environment and state.rpartition(")")[2].split()[0] != "Z":
            found.add(int(path.parent.name))
    return found


def gone(mark: str, seconds: float = 100) -> bool:
    end = time.monotonic() + seconds
    while processes(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not processes(mark)


@pytest.fixture
def mark(monkeypatch):
    """A word in the environment of all processes that a test starts."""
    word = f"gradsmith-test-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("GRADSMITH_TEST_MARK", word)
    # Not of this process, which has its own as it was started
    yield word
    for pid in processes(word):
        os.kill(pid, signal.SIGKILL)


# --- one operation's changes do not reach the next one

CHANGES = """
@gs.custom_gradient
def changes(x):
    import random, sys, warnings
    y = x**2
    np.exp = np.sin = np.asarray = np.ones_like = None
    np.seterr(all="raise")
    np.random.seed(0)
    warnings.simplefilter("error")
    os.environ["CHANGED"] = "1"
    sys.path.insert(0, "/changed")
    sys.modules["math"] = None
    os.chdir("/")
    gs.check = gs.custom_gradient = None
    open = print = None
    return y, lambda dy: 2 * x * dy

@gs.custom_gradient
def after(x):
    import math, sys, warnings
    assert "CHANGED" not in os.environ
    assert "/changed" not in sys.path
    assert os.getcwd() != "/"
    assert all(each[0] != "error" for each in warnings.filters)
    np.asarray(x)
    return np.exp(x), lambda dy: np.exp(x) * dy
"""


def test_changes_do_not_reach_the_next_operation():
    write("a.py", CHANGES)
    write("b.py", "np.cos = np.sin\n", RIGHT)
    write("c.py", "assert np.cos is not np.sin\n", RIGHT.replace("right", "last"))
    found = check("a.py", "b.py", "c.py", "--json", "all.json")
    rows = results()
    # np.array in its body: it has no second order
    assert rows["after"]["status"] == "right, with limits", found.stdout
    assert rows["last"]["status"] == "right", found.stdout
    assert rows["right"]["status"] == "right"


# --- what is written where it should not be

STRAY = """
def _stray(numbers, data):
    for number in numbers:
        try:
            os.write(number, data)
        except OSError:
            pass

@gs.custom_gradient
def few(x):
    _stray(range(3, 64), b"stray" * 10)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def all_of_them(x):
    _stray(range(3, 4096), b"\\x00\\x00\\x00\\x04" + b"{}" * 20)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def forged(x):
    import pickle, struct, zlib
    class Evil:
        def __reduce__(self):
            return os.system, ("touch hacked",)
    for data in (pickle.dumps(("done", Evil())), b'["done", 7]', b'["done"]', b'[1'):
        head = struct.pack("!4sII", b"gs\\r\\n", len(data), zlib.crc32(data))
        _stray(range(3, 4096), head + data)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def closes(x):
    os.closerange(3, 4096)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def prints(x):
    print("x" * 10**6)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def kills(x):
    os.kill(os.getppid(), 9)
    time.sleep(60)
"""


def test_stray_descriptors():
    write("ops.py", STRAY, RIGHT)
    found = check("ops.py", "--json", "all.json", "--time-limit", "20")
    assert found.returncode == 3
    rows = results()
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses == {
        "few": "right",
        "all_of_them": "could not run",
        "forged": "could not run",
        "closes": "could not run",
        "prints": "right",
        "kills": "could not run",
        "right": "right",
    }
    assert "could not tell" in rows["all_of_them"]["message"]
    assert "could not tell" in rows["forged"]["message"]
    assert "channel" in rows["closes"]["message"]
    assert len(rows["prints"]["output"]) < 10_000
    assert not Path("hacked").exists()


# --- processes that are left behind

FORKS = """
@gs.custom_gradient
def forks(x):
    os.fork()
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def leaves(x):
    if not os.path.exists("left"):
        open("left", "w").close()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        import subprocess
        subprocess.Popen(["sleep", "600"])
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def pools(x):
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(1) as pool:
        (y,) = pool.map(np.square, [x])
    return y, lambda dy: 2 * x * dy
"""


def test_operations_that_fork_leave_nothing(mark):
    write("ops.py", FORKS)
    found = check("ops.py", "--json", "all.json", "--seed", "1")
    statuses = {name: row["status"] for name, row in results().items()}
    assert statuses == {"forks": "right", "leaves": "right", "pools": "right"}
    assert found.returncode == 0
    assert gone(mark), processes(mark)


@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("where", ["importing", "checking"])
def test_workers_die_with_their_parent(mark, killed, where):
    loop = "open('there', 'w').close()\n{0}os.fork()\n{0}while True: pass\n"
    if where == "importing":
        write("ops.py", RIGHT, loop.format(""))
    else:
        write("ops.py", "@gs.custom_gradient\ndef hangs(x):\n    ", loop.format("    "))
    Path("temporary").mkdir()
    paths = {
        "PYTHONPATH": str(Path(gradsmith.__file__).parents[1]),
        "TMPDIR": os.path.abspath("temporary"),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "gradsmith", "check", "ops.py", "--quick"],
        env={**os.environ, **paths},
        stdout=subprocess.DEVNULL,
    )
    end = time.monotonic() + 400
    while not Path("there").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(processes(mark)) >= 3
    process.send_signal(killed)
    process.wait()
    assert gone(mark), processes(mark)
    assert [path.name for path in Path("temporary").iterdir()] == []


# --- a time-out keeps what was found

SLOW = """
calls = []

@gs.custom_gradient
def slow(x):
    calls.append(time.sleep(0.005))
    while len(calls) > 60:
        time.sleep(0.1)
    return x**2, lambda dy: 2 * x * dy

@gs.custom_gradient
def slow_and_wrong(x):
    while x.shape == (5,):
        time.sleep(0.1)
    return x**2, lambda dy: 3 * x * dy

@slow_and_wrong.example
def _():
    return gs.spec((2, 3))

@slow_and_wrong.example
def _():
    return gs.spec((5,))
"""


def test_a_time_out_keeps_what_was_found():
    write("ops.py", SLOW)
    found = check("ops.py", "--json", "all.json", "--time-limit", "10")
    rows = results()
    slow = rows["slow"]
    assert slow["status"] == "could not run"
    assert slow["message"].startswith("took longer than 10 s; until then: ")
    assert "first order" in slow["message"]
    assert slow["report"]["checks"]
    wrong = rows["slow_and_wrong"]
    assert wrong["status"] == "wrong"
    assert "took longer than 10 s" in wrong["message"]
    assert wrong["report"]["findings"]
    assert found.returncode == 1


def test_a_framework_that_crashes_is_told_of_the_file_that_imports_it():
    write("jax/__init__.py", "import ctypes\nctypes.string_at(0)\n")
    write("ops.py", "import jax\n", RIGHT)
    write("fine.py", RIGHT.replace("right", "fine"))
    check("ops.py", "fine.py", "--json", "all.json")
    rows = results()
    assert rows["fine"]["status"] == "right"
    assert "crashed (SIGSEGV), while the file was imported" in rows["ops.py"]["message"]
