"""The torture in its short form, and that it finds what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gradsmith as gs
from benchmarks import __main__ as command
from benchmarks._report import Options
from benchmarks.torture import aliasing, running, signatures
from benchmarks.torture.leaks.measure import growth
from benchmarks.torture.outcome import Outcome
from benchmarks.torture.parts import QUICK, Selection, names
from benchmarks.torture.programs.differences import slope
from benchmarks.torture.programs.judge import examine, judge
from benchmarks.torture.programs.program import Program, program
from benchmarks.torture.programs.writer import Line
from benchmarks.torture.report import TortureReport


def of(line: str, **inputs: np.ndarray) -> Program:
    inputs = inputs or {"x0": np.array([0.5, -1.25, 2.0])}
    return Program(0, 0, inputs, {}, (Line("v0", line),), "loss = np.sum(x0 * v0)")


def bad(outcomes):
    return [(o.name, o.cause) for o in outcomes if o.is_bad]


def test_programs_have_right_gradients():
    outcomes = [judge(0, number) for number in range(100)]
    assert bad(outcomes) == []
    judged = sum(o.verdict == "right" for o in outcomes)
    assert judged >= 90


def test_a_program_is_the_same_every_time():
    assert program(3, 5).source() == program(3, 5).source() != program(3, 6).source()


def test_the_source_of_a_program_runs(capsys):
    exec(program(0, 1).source(), {})
    assert "array" in capsys.readouterr().out


@gs.custom_gradient
def doubtful(x):
    return x * x, lambda dy: 2.001 * x * dy


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("v0 = np.sin(x0)", "right"),
        ("v0 = np.abs(x0 - 0.5)", "not judged"),  # a kink
        ("v0 = np.sin(x0, out=np.empty(3))", "refused"),
        ("v0 = np.zeros(3); v0[0] = x0[0]", "refused"),  # by NumPy's error from ours
        ("v0 = cube(x0)", "wrong"),
        ("v0 = soft(x0)", "crash"),
    ],
)
def test_verdicts(line, verdict, monkeypatch):
    from benchmarks.torture.programs.program import numpy_namespace

    def crashing(x, beta=1.0):
        return x * x if isinstance(x, np.ndarray) else x.nothing

    monkeypatch.setitem(numpy_namespace(), "cube", doubtful)
    monkeypatch.setitem(numpy_namespace(), "soft", crashing)
    assert examine(of(line)).verdict == verdict


def test_a_wrong_program_is_shown_with_the_line_at_fault(monkeypatch):
    from benchmarks.torture.programs import judge as module
    from benchmarks.torture.programs.program import numpy_namespace

    subject = of("v0 = cube(x0)")
    lines = (Line("v1", "v1 = np.sin(x0)"), *subject.lines, Line("v2", "v2 = v1 * v0"))
    subject = Program(0, 0, subject.inputs, {}, lines, "loss = np.sum(v2)")
    monkeypatch.setitem(numpy_namespace(), "cube", doubtful)
    monkeypatch.setattr(module, "program", lambda seed, number: subject)
    outcome = judge(0, 0)
    assert outcome.verdict == "wrong"
    assert "[x = cube(x)]" in outcome.cause
    assert "np.sin" not in outcome.text


def test_differences_tell_their_error():
    smooth = slope(lambda h: np.exp(2 + h))
    assert abs(smooth.value - np.exp(2)) <= smooth.error
    assert smooth.judges(1.0)
    assert slope(abs).kink
    assert slope(lambda h: max(h, 0.0)).kink
    assert not slope(lambda h: 100 * h * h).kink


def test_aliasing_scenarios_are_many():
    assert len(names("aliasing", Selection())) >= 77


@pytest.mark.parametrize("name", names("aliasing", QUICK))
def test_aliasing_is_right_or_refused(name):
    outcome = aliasing.trial(name)
    assert not outcome.is_bad, outcome.cause


def test_signatures_and_bad_calls():
    assert bad(map(signatures.trial, names("signatures", QUICK))) == []


def test_growth_sees_what_stays():
    kept = []
    assert growth(lambda: kept.append(bytearray(100)), 80, 16.0) > 100
    assert growth(lambda: bytearray(100), 80, 16.0) <= 16


def test_a_trial_that_kills_python_is_a_crash(monkeypatch):
    """And the next one is run all the same."""
    monkeypatch.setattr(running, "names", lambda *_: ["numpy; a", "numpy; 0:0"])
    found = list(running.outcomes("signatures", QUICK, lambda text: None))
    assert [o.name for o in found] == ["numpy; a", "numpy; 0:0"]
    assert found[0].verdict == "crash"
    assert found[1].verdict == "right"


def test_the_command(capsys):
    argv = ["torture", "--json", "--part", "programs", "--programs", "3"]
    assert command.main(argv) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"][0]["trials"] == 3
    assert told["seed"] == 0


def test_the_table_names_the_seed_and_the_program():
    report = TortureReport("torture", Options(), Selection(seed=2, parts=("programs",)))
    report.outcomes = [Outcome("programs", "--seed 2 --program 1", "wrong", "why", "x")]
    assert not report.ok
    for text in ("seed 2", "--seed 2 --program 1", "why", "| x"):
        assert text in report.table()


@pytest.mark.parametrize(
    "argv", [["--part", "nothing"], ["--trial", "x"], ["--half", "tuned"]]
)
def test_options_that_make_no_sense(argv, capsys):
    with pytest.raises(SystemExit):
        command.main(["torture", *argv])
    assert "--" in capsys.readouterr().err
