"""The benchmark counts rightly, whatever checker it is given."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import gradsmith as gs
from benchmarks import __main__ as command
from benchmarks._report import Options
from benchmarks.mutants import benchmark, peers
from benchmarks.mutants.corpus import Subject
from benchmarks.mutants.running import SEEDS, Selection, tasks
from benchmarks.mutants.summary import Figure


def finding(diagnosis):
    return SimpleNamespace(diagnosis=diagnosis)


class Fake:
    """A checker that always says the same."""

    def __init__(self, verdict="wrong", *diagnoses, raises=None):
        self.verdict, self.raises = verdict, raises
        self.findings = [finding(d) for d in diagnoses]
        self.limits = []

    def options(self, **options):
        return self

    def __call__(self, op, *xs):
        if self.raises:
            raise self.raises
        return self

    def __str__(self):
        return "what the report says"


@pytest.fixture
def run(monkeypatch):
    """The benchmark on a small part of the corpus, with a checker of one's own."""

    def run(checker, **selection):
        monkeypatch.setattr(gs, "check", checker, raising=False)
        chosen = Selection(framework="numpy", operation="tanh", jobs=1, **selection)
        return benchmark.run(Options(peers=(), selection=chosen))

    return run


def rows(report):
    return {row["case"].partition(",")[0]: row for row in report.as_dict()["rows"]}


def test_a_checker_that_rejects_everything(run):
    found = rows(run(Fake("wrong", None, "sign")))
    assert found["kills float64"]["rate"] == 1
    assert found["false alarms"]["rate"] == 1
    assert not found["false alarms"]["ok"]


def test_a_checker_that_accepts_everything(run):
    report = run(Fake("right"))
    found = rows(report)
    assert found["kills float64"]["rate"] == 0
    assert found["false alarms"] == {**found["false alarms"], "rate": 0, "ok": True}
    assert "diagnosis" not in found  # of nothing
    missed = report.as_dict()["not_killed"]
    assert {m["text"] for m in missed} == {"what the report says"}
    assert "not killed: " in report.table()


def test_diagnosis(run):
    right = rows(run(Fake("wrong", "sign"), kind="sign", every=True))
    assert right["diagnosis"]["rate"] == 1
    wrong = run(Fake("wrong", "axis", "sign"), kind="sign", every=True)
    assert rows(wrong)["diagnosis"]["rate"] == 0  # the first counts
    assert "tanh/sign/numpy/float64: axis" in wrong.table()
    assert rows(run(Fake("wrong"), kind="sign", every=True))["diagnosis"]["rate"] == 0


def test_what_the_checker_raises_is_no_kill_and_a_false_alarm(run):
    report = run(Fake(raises=RuntimeError("oops")))
    found = rows(report)
    assert found["kills float64"]["rate"] == 0
    assert found["false alarms"]["rate"] == 1
    assert "raised RuntimeError('oops')" in report.table()


def test_no_verdict_is_neither(run):
    found = rows(run(Fake("could not tell")))
    assert found["kills float64"]["rate"] == 0
    assert found["false alarms"]["rate"] == 0
    assert found["could not tell of right ones"]["rate"] == 1


def test_a_rate_is_held_against_its_target():
    assert Figure("kills", 95, 100, 0.95).ok
    assert not Figure("kills", 94, 100, 0.95).ok
    assert not Figure("alarms", 3, 2000, 0.001, at_most=True).ok
    assert Figure("alarms", 2, 2000, 0.001, at_most=True).ok
    assert not Figure("of nothing", 0, 0, 0.95).ok


def test_a_whole_run_has_2000_checks_of_right_gradients():
    right = [t for t in tasks(Selection()) if t.subject.kind is None]
    assert sum(len(t.seeds) * len(t.subject.dtypes) for t in right) >= 2000
    assert {len(t.seeds) for t in right} == {SEEDS}


def test_peers_find_the_obvious_and_accept_the_right():
    for checker in peers.CHECKERS:
        pytest.importorskip(checker.peer)
        if checker.peer == "jax" or checker.name == "tf f32":
            continue  # jax compiles for seconds; TensorFlow rejects right ones
        wrong = Subject("tanh", checker.framework, "sign")
        right = Subject("tanh", checker.framework)
        assert peers.peers(checker, wrong, 0).alarm
        assert not peers.peers(checker, right, 0).alarm


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(gs, "check", Fake("wrong", "sign"), raising=False)
    arguments = ["mutants", "--json", "--peers", "none", "--operation", "tanh"]
    arguments += ["--kind", "sign", "--every", "--framework", "numpy", "--jobs", "1"]
    assert command.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["kinds"] == {"sign": {"gs.check f64": [1, 1], "gs.check f32": [1, 1]}}
    assert [c["checker"] for c in result["checkers"]] == [
        "gs.check f32",
        "gs.check f64",
    ]


def test_an_interrupted_run_goes_on(run, tmp_path):
    path = tmp_path / "outcomes.jsonl"
    first = run(Fake("wrong"), results=str(path))
    lines = path.read_text().splitlines()
    assert len(lines) == len(first.outcomes)
    path.write_text("\n".join(lines[:5]) + '\n{"oper')  # interrupted while it wrote
    again = run(Fake("right"), results=str(path))
    told = [o.verdict for o in again.outcomes]
    assert 0 < told.count("wrong") <= 5  # those of the file, if the task was complete
    assert len(told) == len(first.outcomes)
    assert run(Fake(raises=ValueError()), results=str(path)).outcomes == again.outcomes


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["mutants", "--kind", "signs"])
    assert "--kind 'signs' is none of sign, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["lse", "--half", "tuned"])
    assert "--half is not for lse" in capsys.readouterr().err
