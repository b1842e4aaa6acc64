"""The same words for the same gradient, wherever it is checked, and what fails."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.check import Verdict
from tests.command.test_check import folder  # noqa: F401
from tests.command.test_report import run
from tests.report.sample import Tree
from tests.tools.recording.test_plugin import ALONE, LOADED, TIME

pytest_plugins = "pytester"

OPERATIONS = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def right(x):
    return x**3, lambda dy: 3 * x**2 * dy

@gs.custom_gradient
def limited(x):
    y = np.sqrt(np.sum(x * x))
    return y, lambda dy: dy * x / y

@gs.custom_gradient(surrogate="straight through")
def declared(x):
    return np.round(x), lambda dy: dy

@gs.custom_gradient
def surrogate(x):
    return np.round(x), lambda dy: dy

@gs.custom_gradient
def random_one(x):
    mask = np.random.default_rng().uniform(size=x.shape)
    return mask * x, lambda dy: mask * dy

@gs.custom_gradient
def wrong(x):
    return x**2, lambda dy: 3 * x * dy
"""
VERDICTS = {
    "right": "right",
    "limited": "right, with limits",
    "declared": "as declared",
    "surrogate": "surrogate",
    "random_one": "could not tell",
    "wrong": "wrong",
}
FAILS = ("wrong",)
FAILS_STRICTLY = ("right, with limits", "surrogate", "wrong")
X = np.array([[0.5, -1.25], [2.0, 0.75]])


@pytest.fixture
def module(folder, monkeypatch):  # noqa: F811
    Path("graded.py").write_text(OPERATIONS)
    monkeypatch.syspath_prepend(".")
    yield import_module("graded")
    sys.modules.pop("graded")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", VERDICTS)
def test_in_python(module, name, strict):
    report = gs.check.options(strict=strict)(getattr(module, name), X)
    verdict = VERDICTS[name]
    assert report.verdict == verdict
    fails = verdict in (FAILS_STRICTLY if strict else FAILS)
    assert report.ok is (not fails and verdict != "could not tell")
    assert report.headline.startswith(f"{report.verdict.symbol} {name} in NumPy")
    assert report.verdict.sentence in report.headline
    assert report.document().verdict == report.as_dict()["verdict"] == verdict


def status_of(verdict: str, strict: bool) -> int:
    if verdict in (FAILS_STRICTLY if strict else FAILS):
        return 1
    return 3 if verdict == "could not tell" else 0


@pytest.mark.usefixtures("module")
def test_on_the_command_line():
    kept = ("--quick", "--resume", "done.jsonl", "--jobs", "2")
    found = run("check", "graded.py", *kept, "--json", "all.json", "--html", "all.html")
    assert found.exit_code == 1
    document = json.loads(Path("all.json").read_text())
    statuses = {each["name"]: each["status"] for each in document["results"]}
    assert statuses == VERDICTS
    page = Tree(Path("all.html").read_text(encoding="utf-8"))
    rows = [a for a in page.all("tr") if "data-for" in a]
    by_name = {a["data-for"].split("-")[2]: a["data-status"] for a in rows}
    assert by_name == VERDICTS
    for each in document["results"]:
        verdict = Verdict(each["status"])
        line = f"{verdict.symbol} {verdict}"
        assert line in found.stdout
        assert verdict.sentence in each["text"]
    for name, verdict in VERDICTS.items():
        for strict in (False, True):
            options = ("--strict",) if strict else ()
            found = run("check", "graded.py", "-k", name, *kept, *options)
            assert found.exit_code == status_of(verdict, strict), (name, strict)
    found = run("check", "graded.py", "-k", "random_one", *kept, "--allow-inconclusive")
    assert found.exit_code == 0


@pytest.mark.usefixtures("module")
def test_a_surrogate_is_declared_on_the_command_line():
    options = ("-k", "surrogate", "--quick", "--strict")
    found = run("check", "graded.py", *options, "--surrogate", "surrogate")
    assert "✓ as declared" in found.stdout
    assert found.exit_code == 0


# Which of them run together, and whether strictly: what does not fail the run, all at
# once, and what does by itself
RUNS = [
    (tuple(name for name in VERDICTS if name != "wrong"), False),
    (("wrong",), False),
    (("right", "declared", "random_one"), True),
    (("limited",), True),
    (("surrogate",), True),
]


@pytest.mark.parametrize(("names", "strict"), RUNS)
def test_in_pytest(pytester, monkeypatch, names, strict):
    monkeypatch.setenv("PYTHONPATH", str(Path(gs.__file__).parents[1]))
    monkeypatch.setenv(ALONE, "1")
    tests = "\n".join(
        f"def test_{name}():\n    {name}(np.array({X.tolist()}))" for name in names
    )
    pytester.makepyfile(test_graded=f"{OPERATIONS}\n{tests}\n")
    option = "--gradsmith-strict" if strict else "--gradsmith"
    found = pytester.runpytest_subprocess(
        *LOADED, *TIME, option, "--gradsmith-json=found.json"
    )
    rows = json.loads(Path("found.json").read_text())["operations"]
    assert {row["operation"] for row in rows} == set(names)
    for row in rows:
        verdict = VERDICTS[row["operation"]]
        assert row["verdict"] == row["cases"][0]["report"]["verdict"] == verdict
    fails = FAILS_STRICTLY if strict else FAILS
    assert int(found.ret) == int(any(VERDICTS[name] in fails for name in names))
    if len(names) == 1:
        found.stdout.fnmatch_lines([f"1 custom gradient: 1 {VERDICTS[names[0]]} (*"])
    if "limited" in names:
        found.stdout.fnmatch_lines(["limited: limit: not finite *"])
