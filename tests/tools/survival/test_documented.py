"""The tables in the documents are what the command prints."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import _documents, _report, survival

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "survival.md"


@pytest.mark.parametrize("framework", survival.MECHANISMS)
def test_the_document_shows_the_tables_of_the_command(framework):
    region = _documents.region(DOCUMENT.read_text(), "survival")
    assert region
    if find_spec(framework) is None:
        pytest.skip(f"no {framework}")
    table = survival.markdown(survival.survey(framework))
    title = table.splitlines()[0]
    if title not in region:
        pytest.skip(f"the tables are not of {title}")
    again = "run python -m benchmarks survival --update docs/survival.md"
    assert table in region, again


def test_tables_are_put_between_the_marks(tmp_path):
    path = tmp_path / "a.md"
    begin, end = _documents.marks("survival")
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    _documents.update([str(path)], "new\nlines", "survival")
    text = path.read_text()
    assert text == f"before\n{begin}\nnew\nlines\n{end}\nafter\n"
    assert _documents.region(text, "survival") == "new\nlines"


def test_a_document_without_marks_is_refused(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("text")
    with pytest.raises(SystemExit, match="has no lines"):
        _documents.update([str(path)], "new", "survival")


def test_markdown_is_for_survival_alone(capsys):
    with pytest.raises(SystemExit):
        command.main(["lse", "--markdown"])
    assert "are for survival" in capsys.readouterr().err


def test_the_command(capsys):
    pytest.importorskip("jax")
    arguments = ["survival", "--quick", "--peers", "jax"]
    assert command.main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    native = [row for row in found["rows"] if row["mechanism"] == "custom_vjp"]
    assert [row["transformation"] for row in native] == ["grad", "jit(grad)"]
    assert {row["verdict"] for row in native} == {"honoured"}
    assert command.main([*arguments, "--check"]) == (0 if found["ok"] else 1)
    assert "custom_vjp" in capsys.readouterr().out
    assert command.main([*arguments, "--markdown"]) == 0
    assert "| grad |" in capsys.readouterr().out


def test_a_missing_framework_is_told(monkeypatch):
    monkeypatch.setattr(_report, "is_installed", lambda name: False)
    report = survival.run(_report.Options())
    assert "pip install jax" in report.table()
    assert report.as_dict()["skipped"][1]["install"] == "pip install jax"
