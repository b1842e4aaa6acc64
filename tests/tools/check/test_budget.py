"""What runs aside, in a thread that is left behind if it does not return."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from gradsmith.tools.check import budget
from gradsmith.tools.check.budget import Budget, OutOfTimeError


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


def test_what_does_not_return_is_left_behind(monkeypatch):
    monkeypatch.setattr(budget, "GRACE", 0.05)
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
