"""What runs aside, in a thread that is left behind if it does not return."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.check import first_order
from gradsmith.tools.check.budget import Budget, OutOfTimeError

LIMITED = "right, with limits"


def test_a_thread_is_used_again():
    seen = set()
    for _ in range(20):
        Budget(10.0).run_aside(lambda: seen.add(threading.current_thread()))
    assert len(seen) == 1


def test_exceptions_pass_and_the_thread_goes_on():
    def wrong():
        raise KeyError("mine")

    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            Budget(10.0).run_aside(wrong)
    count = threading.active_count()
    Budget(10.0).run_aside(lambda: None)
    assert threading.active_count() == count


def test_what_does_not_return_is_left_behind():
    end, seen = threading.Event(), []
    with pytest.raises(OutOfTimeError):
        Budget(0.0).run_aside(lambda: end.wait(20))
    Budget(10.0).run_aside(lambda: seen.append(threading.current_thread()))
    assert len(seen) == 1
    end.set()


def test_aside_of_what_runs_aside():
    seen = []
    inner = lambda: Budget(10.0).run_aside(lambda: seen.append("inner"))
    Budget(10.0).run_aside(inner)
    assert seen == ["inner"]


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_in_a_forked_process():
    script = """
import os, time
from gradsmith.tools.check.budget import Budget

Budget(10.0).run_aside(lambda: None)
child = os.fork()
if child == 0:
    start = time.perf_counter()
    Budget(5.0).run_aside(lambda: None)
    os._exit(int(time.perf_counter() - start > 4))
raise SystemExit(os.waitpid(child, 0)[1])
"""
    # In a process of its own: JAX, which other tests import, warns of each fork
    subprocess.run([sys.executable, "-c", script], check=True)


X = np.linspace(0.5, 2.0, 6)


def waited() -> float:
    """The seconds for which our threads have waited for a core that others had."""
    threads = Path("/proc/self/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[1]) for path in threads) / 1e9


@pytest.mark.parametrize(
    ("each", "wrong"), [(0.25, False), (2.25, False), (12.0, False), (0.75, True)]
)
def test_no_check_takes_a_fifth_more_than_its_budget(each, wrong):
    """Whether one evaluation takes less than the budget or more of it than is left."""
    calls = []

    def rule(dy, y, x):
        time.sleep(each)
        return (1.1 if wrong else 1.0) * dy * np.cos(x)

    def body(x):
        calls.append(None)
        time.sleep(each if len(calls) > 1 else min(each, 1.0))
        return np.sin(x)

    op = gs.operation(body)
    op.vjp(rule)
    for _ in range(3):  # a machine may be busy once
        calls.clear()
        start = time.perf_counter() - waited()
        report = gs.check.options(seconds=5.0)(op, X)
        if (seconds := time.perf_counter() - waited() - start) < 5.0 * 1.2:
            break
    else:
        pytest.fail(f"it took {seconds:.2f} s")
    assert report.verdict != "right" or not wrong
    assert report.ok == (report.verdict in ("right", "right, with limits"))
    assert any("5 s" in note for note in report.notes) or report.findings


EXIT = """
import time
import numpy as np
import gradsmith as gs

def op(x):
    time.sleep(0.3 if np.all(x > 0) else 60.0)
    return np.sin(x)

print(gs.check.options(seconds=6)(op, np.linspace(0.5, 2, 6)).verdict)
print(time.time())
"""


def test_the_interpreter_does_not_wait_for_what_was_left_behind():
    command = [sys.executable, "-c", EXIT]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    verdict, end = found.stdout.splitlines()
    assert verdict.startswith("right")
    assert time.time() - float(end) < 3


@pytest.mark.parametrize("when", ["explain", "reproducer"])
def test_a_refuted_gradient_is_wrong_even_without_time_for_the_words(when, monkeypatch):
    def late(*args, **kwargs):
        raise OutOfTimeError

    monkeypatch.setattr(first_order, when, late)
    op = gs.custom_gradient(lambda x: (np.sin(x), lambda dy: 1.1 * dy * np.cos(x)))
    report = gs.check(op, X)
    assert report.verdict == "wrong"
    assert not report.ok
    unexplained = "not explained: no time was left" in report.findings[0].message
    assert unexplained == (when == "explain")
    assert ("seconds=" in report.findings[0].repair) == (when == "explain")


def test_what_takes_for_ever_to_explain_is_wrong(monkeypatch):
    """Also if the whole check runs aside, and ends before it hears of that."""

    def slow(*args):
        time.sleep(3.0)

    monkeypatch.setattr(first_order, "explain", slow)
    monkeypatch.setattr(Budget, "is_long", lambda self, seconds: True)  # all of it
    op = gs.custom_gradient(lambda x: (np.sin(x), lambda dy: 1.1 * dy * np.cos(x)))
    assert gs.check.options(seconds=1.0)(op, X).verdict == "wrong"


def through(x):
    return np.round(x), lambda dy: dy


def simplex_loss(x):
    """The loss of log-probabilities, by what they are made of: right, with limits."""
    return -x[..., 0], lambda dy: dy[..., None] * (np.exp(x) - np.eye(3)[0])


@pytest.mark.parametrize(
    ("op", "x", "when"),
    [
        (through, X, "explain"),
        (simplex_loss, np.log([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]), "_right_within"),
    ],
    ids=["surrogate", "limit"],
)
def test_what_may_be_no_mistake_is_not_called_wrong_in_no_time(
    op, x, when, monkeypatch
):
    def late(*args, **kwargs):
        raise OutOfTimeError

    assert gs.check(gs.custom_gradient(op), x).verdict in ("surrogate", LIMITED)
    monkeypatch.setattr(first_order, when, late)
    report = gs.check(gs.custom_gradient(op), x)
    assert report.verdict == "could not tell"
    said, _ = report.notes  # and what was not reached
    assert "disagrees with differences" in said
    assert "not explained: no time was left" in said


def test_a_finding_without_time_for_its_script(monkeypatch):
    def late(*args, **kwargs):
        raise OutOfTimeError

    monkeypatch.setattr("gradsmith.tools.check.reproducer", late)
    op = gs.custom_gradient(lambda x: (np.sin(x), lambda dy: dy[:3] * np.cos(x[:3])))
    assert gs.check(op, X).verdict == "wrong"


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_a_first_evaluation_that_does_not_end_in_time(framework):
    """Compiling one function may take a minute, and can't be interrupted."""

    def slow(x):
        time.sleep(3.0)
        return 2 * x

    x = np.ones(3, np.float32)
    gs.check.options(framework=framework)(lambda x: 2 * x, x)  # which imports it
    start = time.perf_counter()
    report = gs.check.options(seconds=1.0, framework=framework)(slow, x)
    assert time.perf_counter() - start < 2.0
    assert report.verdict == "could not tell", report
