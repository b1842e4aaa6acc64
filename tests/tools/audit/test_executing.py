import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context, parent_process

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.audit import executing, exhaustive
from gradsmith.tools.audit.executing import carried_out
from gradsmith.tools.audit.exhaustive import sweep, units_of
from gradsmith.tools.audit.formats import FORMATS
from gradsmith.tools.audit.journal import Journal, key_of
from gradsmith.tools.audit.runner import Runner
from gradsmith.tools.audit.task import Task

ENDS = (0x3C00 - 6000, 0x3C00 + 6000)
TASK = Task(Runner(np.tanh, "numpy", "tanh"), np.tanh, "float16", ENDS)


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
from gradsmith.tools.audit.executing import carried_out
found = dict(carried_out(lambda item: (item, os.getpid()), range(8), jobs=2))
assert [found[i][0] for i in range(8)] == [*range(8)]
assert os.getpid() not in {pid for _, pid in found.values()}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_processes_do_lambdas_too():
    """In a script without `if __name__ == "__main__"`, before frameworks are loaded."""
    subprocess.run([sys.executable, "-c", LAMBDAS], check=True)


def test_what_cannot_be_pickled_stays_here(monkeypatch):
    monkeypatch.setattr(executing, "_THREADED", ("os",))
    notes = []
    found = dict(carried_out(lambda i: os.getpid(), range(3), jobs=2, notes=notes))
    assert set(found.values()) == {os.getpid()}
    assert "can't be pickled" in notes[0]


UNGUARDED = """
import numpy as np
import gradsmith as gs
from gradsmith.tools.audit import executing
executing._THREADED = ("os",)  # as if a framework were there
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
    found = dict(carried_out(lambda i: os.getpid(), range(3), jobs=1))
    assert set(found.values()) == {os.getpid()}


def test_a_lost_worker_loses_nothing(tmp_path):
    work, notes = partial(fragile, str(tmp_path)), []
    found = dict(carried_out(work, range(8), jobs=2, notes=notes))
    assert found == {i: i * i for i in range(8)}
    assert (tmp_path / "died").exists()
    assert notes == []


def test_workers_that_always_die_leave_it_to_this_process():
    notes = []
    found = dict(carried_out(hopeless, range(3), jobs=2, notes=notes))
    assert found == {0: 0, 1: 1, 2: 2}
    assert "__main__" in notes[0]


def test_an_executor_that_is_broken_is_told():
    with (
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
        pytest.raises(gs.GradsmithError, match="lost 4 times"),
    ):
        dict(carried_out(hopeless, range(3), executor=pool))


def test_a_mistake_in_the_work_is_raised():
    with pytest.raises(ValueError, match="no 0"):
        dict(carried_out(wrong, [0], executor=ThreadPoolExecutor(1)))
    with pytest.raises(ValueError, match="no"):
        dict(carried_out(wrong, [0, 1], jobs=2))


def same(a, b):
    assert [t.accuracy(FORMATS["float16"].numbers) for t in a] == [
        t.accuracy(FORMATS["float16"].numbers) for t in b
    ]


def test_an_interrupted_sweep_goes_on(tmp_path, monkeypatch):
    file, units = tmp_path / "sweep.jsonl", units_of(*ENDS, TASK.form)
    whole_one = sweep(TASK, jobs=1)

    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(TASK, jobs=1, resume=file, progress=stop)
    kept = len(file.read_text().splitlines())
    assert 0 < kept < len(units)
    with file.open("a") as lines:
        lines.write('{"key": "cut off')
    asked = []
    plain = exhaustive.swept
    monkeypatch.setattr(
        exhaustive,
        "swept",
        lambda task, *codes: asked.append(codes) or plain(task, *codes),
    )
    same(sweep(TASK, jobs=1, resume=file), whole_one)
    assert len(asked) == len(units) - kept
    same(sweep(TASK, jobs=1, resume=file), whole_one)
    assert len(asked) == len(units) - kept


def test_another_operation_is_not_taken_for_done(tmp_path):
    file = tmp_path / "sweep.jsonl"
    sweep(TASK, jobs=1, resume=file)
    for other in (
        replace(TASK, runner=Runner(np.sin, "numpy", "sin")),
        replace(TASK, reference=np.sin),
        replace(TASK, reference=lambda x: x),
        replace(TASK, ends=(0, 5)),
    ):
        assert not Journal(file, key_of(other, "all")).done
    assert Journal(file, key_of(TASK, "all")).done


def slow(item):
    """Takes its time, so that somebody may be killed meanwhile."""
    time.sleep(0.2)
    return exhaustive.Sweep(TASK)(item)


@pytest.mark.filterwarnings("default")  # Dask's own, of a worker that is gone
def test_a_cluster_that_loses_a_worker():
    distributed = pytest.importorskip("distributed")
    units = units_of(*ENDS, TASK.form)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        workers = [*client.run(os.getpid).values()]
        found = {}
        for unit, tallies in carried_out(slow, units, executor=client.get_executor()):
            if len(found) == 2:
                os.kill(workers[0], signal.SIGKILL)
            found[unit] = tallies
    assert len(workers) == 2
    assert sorted(found) == units
    plain = {unit: exhaustive.Sweep(TASK)(unit) for unit in units}
    for unit in units:
        assert [t.judged for t in found[unit]] == [t.judged for t in plain[unit]]
        assert [t.worst for t in found[unit]] == [t.worst for t in plain[unit]]
