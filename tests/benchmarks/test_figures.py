"""Each figure has one place; the README and the docs quote it."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import __main__ as command
from benchmarks import figures
from benchmarks._documents import marks, region
from benchmarks._report import Options, Report, Row
from benchmarks.mutants.outcome import Outcome
from benchmarks.mutants.peers import CHECKERS
from benchmarks.mutants.report import MutantReport

README = figures.ROOT / "README.md"


@pytest.mark.parametrize(
    ("path", "name"),
    [*figures.places()],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_document_quotes_what_is_recorded(path, name):
    shown = region(path.read_text(encoding="utf-8"), name)
    assert shown == figures.TEXTS[name](), "run python -m benchmarks.figures"


def test_every_figure_is_quoted():
    assert {name for _, name in figures.places()} == set(figures.TEXTS)
    assert set(figures.RECORDED) == set(json.loads(figures.FILE.read_text()))


def test_the_readme_has_no_other_figures():
    """No ratio or share outside of the marks, where nothing would renew it."""
    text = README.read_text(encoding="utf-8")
    for path, name in figures.places():
        begin, end = marks(name)
        if path == README:
            text = text.partition(begin)[0] + text.partition(end)[2]
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    assert not re.findall(rf"\d\s?(?:{figures.TIMES}|%|us\b|ms\b)|\d of \d", text)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A project with one document, which quotes a benchmark and a sentence."""
    (tmp_path / "docs").mkdir()
    quoted = [line for name in ("import", "speed") for line in marks(name)]
    (tmp_path / "README.md").write_text("\n".join(quoted))
    recorded = figures.FILE.read_text()
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "FILE", tmp_path / "docs" / "figures.json")
    figures.FILE.write_text(recorded)
    return tmp_path


def test_a_run_is_recorded_and_quoted_everywhere(elsewhere):
    row = Row("import gradsmith", 30.0, 20.0, "import numpy", 1.3, "ms")
    figures.record(Report("import", Options(), [row]))
    text = (elsewhere / "README.md").read_text()
    assert "| 30 ms | import numpy | 20 ms | 1.500 | ≤ 1.3 (missed) |" in text
    assert f"| `import gradsmith` | 1.50 {figures.TIMES} `import numpy` |" in text
    assert json.loads(figures.FILE.read_text())["import"][0]["ours"] == 30


def test_checkers_that_were_not_run_keep_their_figures(elsewhere):
    before = json.loads(figures.FILE.read_text())["mutants"]
    row = Outcome(
        "exp", "sign", "jax", False, "float64", 0, "gs.check", "wrong", seconds=0.1
    )
    figures.record(MutantReport("mutants", Options(), [row]))
    after = json.loads(figures.FILE.read_text())["mutants"]
    assert after == {**before, "gs.check f64": [1, 1, 0, 0]}


def test_what_is_quick_is_not_recorded(capsys):
    for arguments in (["import", "--quick"], ["gpu"], ["all"]):
        with pytest.raises(SystemExit):
            command.main([*arguments, "--record"])
        assert "--record is for overhead" in capsys.readouterr().err


def test_the_command_records(elsewhere, monkeypatch):
    seen = []
    monkeypatch.setattr(figures, "record", lambda report: seen.append(report.name))
    report = Report("import", Options(), [])
    monkeypatch.setattr("benchmarks.import_time.run", lambda options: report)
    assert command.main(["import", "--record"]) == 0
    assert seen == ["import"]


def test_the_peers_are_those_of_the_benchmark():
    assert list(figures.PEERS) == [checker.name for checker in CHECKERS]


def test_totals_are_counted():
    rows = ["| t | Gradsmith | theirs |", "| a | ✓ honoured | ✗ dropped |"]
    rows += ["| b | ✓ honoured |  |"]
    assert figures._totals(rows) == [
        ("Gradsmith", {"honoured": 2}),
        ("theirs", {"dropped": 1}),
    ]
