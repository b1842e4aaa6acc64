"""Workers that crash, hang and raise, and the journal of what is done."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gradsmith.tools.workers import Journal, Partial, Pool, channel, pool


def work(item, tell):
    tell("at work")
    sys.stdout.write(f"item {item}\n")
    if item == "crash":
        os.abort()
    if item == "hang":
        tell(Partial("half"))
        time.sleep(600)
    if item == "raise":
        raise KeyError(item)
    return lambda: item  # which can't be pickled


def double(item, tell):
    return 2 * item


def answers(fn, items, **options):
    with Pool(fn, **options) as workers:
        workers.add(items)
        return {answer.item: answer for answer in workers.answers() if answer}


def test_what_comes_of_items():
    found = answers(double, [1, 2, 3], jobs=2)
    assert {item: a.result for item, a in found.items()} == {1: 2, 2: 4, 3: 6}


def test_a_lost_worker_is_replaced_and_told():
    found = answers(work, ["crash", "hang", "raise", "lambda"], jobs=1, limit=3.0)
    assert "SIGABRT" in found["crash"].lost
    assert "in work" in found["crash"].trace
    assert found["crash"].output.startswith("item crash")
    assert found["hang"].lost == "took longer than 3 s"
    assert (found["hang"].phase, found["hang"].partial) == ("at work", "half")
    assert isinstance(found["raise"].error, KeyError)
    assert "in work" in found["raise"].error.__notes__[0]
    assert "pickle" in str(found["lambda"].error).lower()


def alone(item, tell):
    """What a process of its own may do."""
    if item == "large":
        return "x" * (channel.LARGEST + 1)
    if item == "late":
        tell(Partial({"found": 1}))
        time.sleep(600)
    if item == "changes":
        os.environ["CHANGED"] = item
    if item == "raises":
        raise KeyError(item)
    if item == "array":
        return np.ones(3)
    return [os.getpid(), os.environ.get("CHANGED")]


@pytest.mark.parametrize("forked", [True, False])
def test_isolated_items_have_processes_of_their_own(forked, monkeypatch):
    monkeypatch.setattr(pool, "IS_POSSIBLE", forked and pool.IS_POSSIBLE)
    items = ["changes", "raises", "array", "late", "last"]
    found = answers(alone, items, jobs=1, limit=4.0, isolated=True)
    assert found["changes"].result[1] == "changes"
    assert found["last"].result[1] is None
    assert found["last"].result[0] != found["changes"].result[0]
    assert "KeyError: 'raises'" in str(found["raises"].error)
    assert "not JSON serializable" in str(found["array"].error)
    assert found["late"].lost == "took longer than 4 s"
    assert found["late"].partial == {"found": 1}


def test_a_result_that_is_too_large_is_told():
    found = answers(alone, ["large", "last"], jobs=1, limit=600.0, isolated=True)
    assert "too many for a message" in str(found["large"].error)
    assert found["last"].result


KILLED = """
import os, signal, sys, time
from gradsmith.tools.workers import lifetime, map_unordered
if "watched" in sys.argv:
    lifetime.IS_LINUX = False  # as where the system does not see to it
def work(item):
    sys.stdout.write(f"{os.getpid()}\\n")  # at once: print writes twice
    sys.stdout.flush()
    time.sleep(600)
if __name__ == "__main__":
    next(map_unordered(work, range(2), jobs=2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are seen in /proc")
@pytest.mark.parametrize("how", ["signalled", "watched"])
def test_workers_end_with_a_parent_that_is_killed(how, tmp_path):
    (tmp_path / "script.py").write_text(KILLED)
    words = [sys.executable, str(tmp_path / "script.py"), how]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        workers = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.wait()
        end = time.monotonic() + 100
        while any(map(is_running, workers)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(map(is_running, workers))


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def test_a_journal_keeps_rows_by_their_keys(tmp_path):
    path = tmp_path / "done.jsonl"
    Journal(path).add({"key": "a", "ulp": float("inf")})
    with path.open("a") as file:
        file.write('{"key": "b')
    journal = Journal(path)
    assert journal.rows == {"a": {"key": "a", "ulp": float("inf")}}
    journal.add({"key": "c"})
    assert set(Journal(path).rows) == {"a", "c"}
    Journal(None).add({"key": "d"})
