"""The commands that make a page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradsmith.command.command import gradsmith as command
from tests.command.test_check import RIGHT, WRONG, folder, write  # noqa: F401
from tests.report.sample import Tree

pytestmark = pytest.mark.usefixtures("folder")

CRASHES = """
import inspect

@gs.custom_gradient
def crashes(x):
    if any("timing" in frame.filename for frame in inspect.stack()):
        os._exit(3)
    return x**2, lambda dy: 2 * x * dy
"""


def run(*words: str):
    found = CliRunner().invoke(command, words)
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def entries(file: str = "report.html"):
    tree = Tree(Path(file).read_text(encoding="utf-8"))
    data = next(w for tag, w in tree.words if tag == "script" and w.startswith("["))
    return {entry["name"]: entry for entry in json.loads(data)}, tree


def test_report_writes_a_page_and_says_where():
    write("ops.py", RIGHT, WRONG)
    found = run("report", "ops.py", "--jobs", "2", "--resume", "done.jsonl")
    assert found.exit_code == 1
    assert "1 right; 1 wrong in" in found.stdout
    assert "the page is report.html (" in found.stdout
    parts, tree = entries()
    assert [entry["status"] for entry in parts.values()] == ["wrong", "right"]
    for entry in parts.values():
        assert entry["report"]
        parts_of = {"survival", "audit", "samples", "timing", "nan", "memory"}
        assert entry["more"].keys() == parts_of
        for part in entry["more"].values():
            assert "skipped" not in part, part
    assert parts["right"]["more"]["samples"]["beyond"] == 0
    assert parts["wrong"]["more"]["samples"]["beyond"] > 0
    assert "Gradients of ops.py" in tree.text

    # What is done is not done again
    before = Path("done.jsonl").read_text()
    again = run("report", "ops.py", "-o", "again.html", "--resume", "done.jsonl")
    assert again.exit_code == 1
    assert Path("done.jsonl").read_text() == before
    assert entries("again.html")[0].keys() == parts.keys()


OVERFLOWS = """
@gs.custom_gradient
def softplus(x):
    return np.log1p(np.exp(x)), lambda dy: dy / (1 + np.exp(-x))
"""
RANDOM = """
@gs.custom_gradient
def dropout(x):
    mask = (np.random.default_rng().uniform(size=x.shape) > 0.5).astype(x.dtype)
    return x * mask, lambda dy: dy * mask
"""


def test_one_verdict_from_all_tools():
    """It overflows for large inputs: the check does not see it, the audit does."""
    write("ops.py", OVERFLOWS)
    done = ("--quick", "--resume", "done.jsonl")
    assert run("check", "ops.py", "--quick", "--strict").exit_code == 0
    found = run("report", "ops.py", *done)
    assert found.exit_code == 0
    assert "✓ right, with limits" in found.stdout
    assert run("report", "ops.py", *done, "--strict").exit_code == 1
    (entry,), tree = entries()[0].values(), entries()[1]
    assert entry["status"] == "right, with limits"
    assert entry["limits"][0].startswith("accuracy: value overflows to inf")
    assert entry["text"].startswith("✓ softplus")
    assert "the gradient is right, with limits (" in entry["text"]
    assert "limit: accuracy: value overflows" in entry["text"]
    assert "The gradient is right, with limits" in tree.text
    statuses = {a["data-status"] for _, a, _ in tree.elements if "data-status" in a}
    assert statuses == {"right, with limits", ""}
    assert "ops.py:6" in tree.text  # the rule
    assert not re.search(r"\de\+\d+ (%|ULP)", tree.text)


def test_nothing_is_said_of_what_is_random():
    write("ops.py", RANDOM)
    found = run("report", "ops.py")
    assert found.exit_code == 3
    (entry,), tree = entries()[0].values(), entries()[1]
    assert entry["status"] == "could not tell"
    assert " %" not in tree.text
    for words in ("✗", "lost", "dropped", "off by", "off at", "wrong for"):
        assert words not in tree.text, words
    for name in ("audit", "samples"):
        assert "the operation is random" in entry["more"][name]["skipped"]
    fates = {each["verdict"] for each in entry["more"]["survival"]["outcomes"]}
    assert fates == {"unclear"}


def test_quick_leaves_out_survival():
    write("ops.py", RIGHT)
    kept = ("--quick", "--resume", "done.jsonl")
    assert run("check", "ops.py", *kept).exit_code == 0  # which is less than is needed
    assert run("report", "ops.py", *kept, "-o", "page.html").exit_code == 0
    (entry,) = entries("page.html")[0].values()
    assert "survival" not in entry["more"]
    assert entry["more"]["timing"]["rows"]


def test_a_crash_in_one_part_keeps_the_verdict():
    write("ops.py", CRASHES)
    found = run("report", "ops.py", "--quick")
    assert found.exit_code == 0
    assert "✓ right" in found.stdout
    (entry,), tree = entries()[0].values(), entries()[1]
    assert entry["more"]["lost"] == "timing ended the process with status 3"
    assert entry["more"]["samples"]["beyond"] == 0
    assert "Not all of it could be computed: timing ended" in tree.text


def test_what_could_not_run_is_in_the_page():
    write("broken.py", "1 / 0\n")
    assert run("report", "broken.py").exit_code == 3
    (entry,) = entries()[0].values()
    assert entry["status"] == "could not run"
    assert "ZeroDivisionError" in entry["details"]


def test_check_can_write_a_page_too():
    write("ops.py", RIGHT)
    found = run("check", "ops.py", "--quick", "--html", "checks.html")
    assert found.exit_code == 0
    assert "the page is checks.html (" in found.stdout
    (entry,), tree = entries("checks.html")[0].values(), entries("checks.html")[1]
    assert entry["more"] is None
    assert "the gradient is right" in tree.text


@pytest.mark.parametrize("words", [("report", "-o"), ("check", "--html")])
def test_no_file_of_the_users_is_overwritten(words):
    write("ops.py", RIGHT)
    name, option = words
    found = run(name, "ops.py", option, "ops.py")
    assert found.exit_code == 2
    assert "put the targets first" in found.stderr
    assert "custom_gradient" in Path("ops.py").read_text()
    found = run(name, "ops.py", option, "no/such/folder.html")
    assert "there is no folder" in found.stderr


def test_a_missing_jinja2_is_named_before_anything_runs(monkeypatch):
    write("ops.py", RIGHT)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    found = run("report", "ops.py")
    assert found.exit_code == 2
    assert 'pip install "gradsmith[report]"' in found.stderr.replace("\n", " ")
