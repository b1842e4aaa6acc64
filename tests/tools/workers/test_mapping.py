"""Pure work on many items: in processes, in executors, or right here."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context, parent_process

import pytest

import gradsmith as gs
from gradsmith.tools.workers import map_unordered, mapping


def square(item):
    return item * item


def fragile(folder, item):
    """Ends its process the first time that it is asked for 3."""
    mark = os.path.join(folder, "died")
    if item == 3 and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def hopeless(item):
    if parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def wrong(item):
    raise ValueError(f"no {item}")


LAMBDAS = """
import os
from gradsmith.tools.workers import map_unordered
found = dict(map_unordered(lambda item: (item, os.getpid()), range(8), jobs=2))
assert [found[i][0] for i in range(8)] == [*range(8)]
assert os.getpid() not in {pid for _, pid in found.values()}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_processes_do_lambdas_too():
    """In a script without `if __name__ == "__main__"`, before frameworks are loaded."""
    subprocess.run([sys.executable, "-c", LAMBDAS], check=True)


def test_what_cannot_be_pickled_stays_here(monkeypatch):
    monkeypatch.setattr(mapping, "_has_threads", lambda: True)
    notes = []
    found = dict(map_unordered(lambda i: os.getpid(), range(3), jobs=2, notes=notes))
    assert set(found.values()) == {os.getpid()}
    assert "can't be pickled" in notes[0]


UNGUARDED = """
import numpy as np
import gradsmith as gs
from gradsmith.tools.workers import mapping
mapping._has_threads = lambda: True  # as if a framework were there
print(*gs.audit(np.tanh, (0.9999, 1.0001), exhaustive=True, jobs=2).notes)
"""


def test_a_script_without_a_guard_stays_alone(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "would run this script again" in ran.stdout
    assert ran.stderr == ""
    script.write_text(UNGUARDED.replace("print", "if __name__ == '__main__': print"))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.stderr == ""
    assert "alone" not in ran.stdout


def test_one_job_stays_here():
    found = dict(map_unordered(lambda i: os.getpid(), range(3), jobs=1))
    assert set(found.values()) == {os.getpid()}


def test_a_lost_worker_loses_nothing(tmp_path):
    work, notes = partial(fragile, str(tmp_path)), []
    found = dict(map_unordered(work, range(8), jobs=2, notes=notes))
    assert found == {i: i * i for i in range(8)}
    assert (tmp_path / "died").exists()
    assert notes == []


def test_workers_that_always_die_leave_it_to_this_process():
    notes = []
    found = dict(map_unordered(hopeless, range(3), jobs=2, notes=notes))
    assert found == {0: 0, 1: 1, 2: 2}
    assert "__main__" in notes[0]


def test_an_executor_that_is_broken_is_told():
    with (
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
        pytest.raises(gs.GradsmithError, match="lost 4 times"),
    ):
        dict(map_unordered(hopeless, range(3), executor=pool))


def test_a_mistake_in_the_work_is_raised():
    with pytest.raises(ValueError, match="no 0"):
        dict(map_unordered(wrong, [0], executor=ThreadPoolExecutor(1)))
    with pytest.raises(ValueError, match="no"):
        dict(map_unordered(wrong, [0, 1], jobs=2))
