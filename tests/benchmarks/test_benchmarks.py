"""The benchmarks run and report what they promise. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import _measure, _report
from benchmarks._report import Options, Report, Row

ROOT = Path(__file__).parents[2]
KEYS = {"case", "ours", "peer", "peer_name", "ratio", "target", "ok", "unit"}


def row(ratio=1.0, target=1.5):
    return Row(
        "a case", ours=ratio, peer=1.0, peer_name="a peer", target=target, unit="s"
    )


@pytest.fixture
def fake(monkeypatch):
    """Stands in for the benchmarks; a test sets what it returns."""
    module = SimpleNamespace(
        rows=[row()], run=lambda options: Report("fake", options, list(module.rows))
    )
    monkeypatch.setitem(sys.modules, "benchmarks.fake", module)
    names = dict.fromkeys(("overhead", "lse", "import"), ("fake", "a fake"))
    monkeypatch.setattr(command, "BENCHMARKS", names)
    return module


def run(*argv):
    """The command in a process of its own: peers set up threads and variables."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def assert_lists_the_benchmarks(shown):
    for name in ("overhead", "lse", "import", "all", "--json", "--check"):
        assert name in shown


def test_without_a_name_the_benchmarks_are_listed(capsys):
    assert command.main([]) == 0
    assert_lists_the_benchmarks(capsys.readouterr().out)


def test_help_lists_the_benchmarks(capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main(["--help"])
    assert_lists_the_benchmarks(capsys.readouterr().out)


def test_import_time():
    result = json.loads(run("import", "--quick", "--json"))
    assert result["name"] == "import"
    assert {"python", "versions", "processor"} <= set(result["machine"])
    (only,) = result["rows"]
    assert set(only) >= KEYS
    assert only["ours"] > 0 < only["peer"]
    assert only["ratio"] == only["ours"] / only["peer"]


def test_large_arrays_have_all_their_rows(capsys):
    assert command.main(["lse", "--quick", "--json", "--peers", "none"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    targets = [row["target"] for row in rows]
    assert targets == [1.3, None, 1.0, 1.3, None, 1.0, 1.15, 1.1]
    assert all(set(row) >= KEYS and row["ours"] > 0 for row in rows)


@pytest.mark.parametrize("peer", ["autograd", "torch", "jax"])
def test_overhead_beside_a_peer(peer):
    if find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed")
    rows = json.loads(run("overhead", "--quick", "--json", "--peers", peer))["rows"]
    cases = [row["case"].split(",")[0] for row in rows]
    assert cases == [
        "gs.GradientTape",
        "gs.grad",
        "gs.compile",
        *["Jacobian in forward mode"] * 3,
        "a Hessian times a vector",
    ]
    assert all(row["peer"] > 0 for row in rows)


def test_a_missing_peer_is_told_with_its_install_command(monkeypatch, capsys):
    monkeypatch.setattr(_report, "is_installed", lambda name: False)
    assert command.main(["overhead", "--quick"]) == 0
    shown = capsys.readouterr().out
    for name in ("torch", "autograd", "tensorflow-cpu", "jax"):
        assert f"is not installed (pip install {name})" in shown
    command.main(["lse", "--quick", "--json"])
    skipped = json.loads(capsys.readouterr().out)["skipped"]
    assert skipped == [{"peer": "autograd", "install": "pip install autograd"}]


def test_wrap_compares_times_and_graphs(monkeypatch):
    pytest.importorskip("jax")
    from benchmarks import survival, wrap

    monkeypatch.setattr(survival, "ours", survival.jax_custom_vjp)
    report = wrap.run(Options(quick=True, peers=("jax",)))
    assert report.refused == []
    assert [row.target for row in report.rows] == [None, 1.05, None]
    assert report.rows[2].ours == report.rows[2].peer > 0
    assert report.notes == ["JAX, jax.jit: the graph is the same"]


def test_wrap_tells_graphs_that_differ():
    from benchmarks import wrap

    report = Report("wrap", Options())
    wrap._compare_graphs(wrap.CASES[0], Counter("aab"), Counter("abc"), report)
    assert report.notes[0].endswith("differs by {'a': 1} more, {'c': 1} less")


def test_what_is_refused_is_told_and_is_not_ok(monkeypatch):
    pytest.importorskip("jax")
    from benchmarks import survival, wrap

    def refusing():
        raise NotImplementedError("not in this framework\nsecond line")

    monkeypatch.setattr(survival, "ours", refusing)
    report = wrap.run(Options(quick=True, peers=("jax",)))
    assert report.rows == []
    assert not report.ok
    line = "JAX, jax.jit: NotImplementedError: not in this framework"
    assert line in report.as_dict()["refused"]
    assert f"refused: {line}" in report.table()


def test_a_wrong_gradient_is_not_timed(monkeypatch):
    pytest.importorskip("jax")
    from benchmarks import survival, wrap

    monkeypatch.setattr(survival, "ours", lambda: lambda x: 3 * x)
    report = wrap.run(Options(quick=True, peers=("jax",)))
    assert report.rows == []
    assert "AssertionError" in report.refused[0]


def test_an_unknown_peer_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["overhead", "--peers", "theano"])
    assert "'theano' is none of torch, autograd" in capsys.readouterr().err


def test_check_exits_with_1_if_a_target_is_missed(fake, capsys):
    assert command.main(["lse", "--check"]) == 0
    fake.rows = [row(), row(ratio=2.0)]
    assert command.main(["lse"]) == 0
    assert command.main(["lse", "--check"]) == 1
    assert "NO" in capsys.readouterr().out


def test_a_row_without_a_target_is_ok():
    assert row(ratio=99.0, target=None).ok
    assert row(ratio=1.5).ok
    assert not row(ratio=1.6).ok


def test_all_gives_one_json_object(fake, capsys):
    assert command.main(["all", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["name"] == "all"
    assert len(result["rows"]) == 3
    assert set(result["rows"][0]) >= KEYS | {"benchmark"}


def test_the_table_lines_up():
    rows = [row(), row(ratio=123.456, target=None)]
    lines = Report("name", Options(), rows).table().splitlines()
    widths = {len(line) for line in lines[1:-1]}
    assert len(widths) == 1


def test_contenders_take_turns():
    calls = []
    seconds = _measure.interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")},
        _measure.Progress("test"),
        rounds=3,
        turn=0.0,
    )
    turns = [name for name, _ in groupby(calls)]
    assert turns == list("ab" * 4)  # the warm-up, and three rounds
    assert set(seconds) == {"a", "b"}
    assert all(value > 0 for value in seconds.values())


def test_progress_is_silent_at_first_then_speaks(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(_measure.time, "monotonic", lambda: now[0])
    progress = _measure.Progress("name")
    progress("early")
    now[0] = 3.0
    progress("round 1")
    progress("too soon after")
    assert capsys.readouterr().err == "name: round 1\n"


def test_check_measures_time_and_memory():
    from benchmarks import check

    report = check.run(Options(quick=True, peers=()))
    assert report.refused == []
    assert [row.case.partition(", ")[2] for row in report.rows] == [
        "3 x 4 elementwise, first",
        "3 x 4 elementwise, again",
        "3 x 4 softmax, first",
        "3 x 4 softmax, again",
        "100,000 elements, right",
        "100,000 elements, one wrong located",
        "100,000 elements, memory in sizes of the input",
    ]
    assert all(row.ours > 0 for row in report.rows)


def test_a_wrong_verdict_is_not_timed():
    from benchmarks import _checks as check

    with pytest.raises(AssertionError, match="was not accepted"):
        check._right(check.elementwise(2), check.normal(3), "numpy")
    with pytest.raises(AssertionError, match="was not located"):
        check._located(check.elementwise(), check.normal(3), "numpy", 2)


def test_checkpoint_measures_steps_time_and_memory():
    report = json.loads(run("checkpoint", "--quick", "--json", "--peers", "none"))
    rows = report["rows"]
    assert [row["target"] for row in rows] == [1.0, 1.05, None, 1.1, None]
    assert rows[0]["ours"] == rows[0]["peer"] == 144
    assert all(row["ours"] > 0 for row in rows)


def test_the_adjoint_by_hand_is_the_gradient_of_a_step():
    import numpy as np

    import gradsmith as gs
    from benchmarks import checkpoint

    s, d = checkpoint.start(4), checkpoint.start(4)
    _, pull = gs.vjp(checkpoint.step, s)
    expected, found = pull(d)[0], checkpoint.adjoint(s, d)
    for name in "uv":
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def test_operations_are_measured_and_their_edges_told():
    from benchmarks.ops.benchmark import run

    chosen = {"framework": "numpy", "operation": "safe_where"}
    report = run(Options(quick=True, peers=(), selection=chosen))
    assert [row.case for row in report.rows] == ["safe_where, the engine"]
    assert report.refused == []
    chosen = {"framework": "numpy", "operation": "focal"}
    report = run(Options(quick=True, peers=(), selection=chosen))
    assert any("NaN, focal in numpy" in note for note in report.notes)


def test_an_operation_that_gives_nan_where_others_dont_is_refused(monkeypatch):
    from benchmarks.ops import edges
    from benchmarks.ops.cases import Case
    from benchmarks.ops.native import FRAMEWORKS

    case = Case("root", np.log, np.abs)
    monkeypatch.setattr(edges, "STABLE", [case])
    monkeypatch.setattr(edges, "LOSSES", [])
    report = Report("ops", Options())
    edges.add_edges(FRAMEWORKS[0], report, None)
    assert "root in numpy gives NaN" in report.refused[0]


def test_an_unknown_operation_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["ops", "--operation", "softmin"])
    assert "'softmin' is none of sigmoid" in capsys.readouterr().err
