"""Sweeps that are interrupted, resumed, and spread over a cluster."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from gradsmith.tools.audit import exhaustive
from gradsmith.tools.audit.exhaustive import key_of, spans_of, sweep
from gradsmith.tools.audit.formats import FORMATS
from gradsmith.tools.audit.runner import Runner
from gradsmith.tools.audit.task import AuditTask
from gradsmith.tools.workers import map_unordered

ENDS = (0x3C00 - 6000, 0x3C00 + 6000)
TASK = AuditTask(Runner(np.tanh, "numpy", "tanh"), np.tanh, "float16", ENDS)


def same(a, b):
    assert [t.accuracy(FORMATS["float16"].numbers) for t in a] == [
        t.accuracy(FORMATS["float16"].numbers) for t in b
    ]


def test_an_interrupted_sweep_goes_on(tmp_path, monkeypatch):
    file, spans = tmp_path / "sweep.jsonl", spans_of(*ENDS, TASK.form)
    whole_one = sweep(TASK, jobs=1)

    def stop(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(TASK, jobs=1, resume=file, progress=stop)
    kept = len(file.read_text().splitlines())
    assert 0 < kept < len(spans)
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
    assert len(asked) == len(spans) - kept
    same(sweep(TASK, jobs=1, resume=file), whole_one)
    assert len(asked) == len(spans) - kept


def test_another_operation_is_not_taken_for_done(tmp_path):
    file = tmp_path / "sweep.jsonl"
    sweep(TASK, jobs=1, resume=file)
    for other in (
        replace(TASK, runner=Runner(np.sin, "numpy", "sin")),
        replace(TASK, reference=np.sin),
        replace(TASK, reference=lambda x: x),
        replace(TASK, ends=(0, 5)),
    ):
        assert key_of(other) not in file.read_text()
    assert key_of(TASK) in file.read_text()


def slow(item):
    """Takes its time, so that somebody may be killed meanwhile."""
    time.sleep(0.2)
    return exhaustive.Sweep(TASK)(item)


@pytest.mark.filterwarnings("default")  # Dask's own, of a worker that is gone
def test_a_cluster_that_loses_a_worker():
    distributed = pytest.importorskip("distributed")
    spans = spans_of(*ENDS, TASK.form)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        workers = [*client.run(os.getpid).values()]
        found = {}
        for span, tallies in map_unordered(slow, spans, executor=client.get_executor()):
            if len(found) == 2:
                os.kill(workers[0], signal.SIGKILL)
            found[span] = tallies
    assert len(workers) == 2
    assert sorted(found) == spans
    plain = {span: exhaustive.Sweep(TASK)(span) for span in spans}
    for span in spans:
        assert [t.judged for t in found[span]] == [t.judged for t in plain[span]]
        assert [t.worst for t in found[span]] == [t.worst for t in plain[span]]
