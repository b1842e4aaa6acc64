"""The GitHub Action and the pre-commit hooks, run as their hosts would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gradsmith
from tests.command.test_check import RIGHT, WRONG, folder, write  # noqa: F401
from tests.command.test_config import git, repository  # noqa: F401

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
PLAIN = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(Path(gradsmith.__file__).parents[1]),
}


# --- the action


def step(name: str) -> dict:
    return next(s for s in ACTION["runs"]["steps"] if s.get("name") == name)


def act(name: str, folder: Path, **inputs: str):  # noqa: F811
    """Run a step's script with its own environment, filled in from the inputs."""
    defaults = {key: value["default"] for key, value in ACTION["inputs"].items()}
    given = {**defaults, **{key.replace("_", "-"): x for key, x in inputs.items()}}
    known = {f"inputs.{key}": value for key, value in given.items()}
    known["steps.install.outputs.results"] = str(folder / "results")
    fill = lambda text: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], text)
    own = {key: fill(value) for key, value in step(name)["env"].items()}
    (folder / "results").mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c",
         step(name)["run"]],
        env={
            **PLAIN, **own,
            "GITHUB_ACTION_PATH": "/the/action",
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_WORKSPACE": str(Path.cwd()),
            "RUNNER_TEMP": str(folder),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def runner(tmp_path_factory):
    made = tmp_path_factory.mktemp("runner")
    (made / "summary.md").touch()  # as GitHub does
    return made


def test_the_metadata_is_what_github_needs():
    assert ACTION["runs"]["using"] == "composite"
    assert {"name", "description"} <= set(ACTION)
    for each in ACTION["inputs"].values():
        assert each["description"]
        assert isinstance(each["default"], str)
    for each in ACTION["runs"]["steps"]:
        assert ("uses" in each) != ("run" in each)
        if "run" in each:
            assert each["shell"] == "bash"
            # Inputs reach a shell as variables: words of a pull request run nothing
            assert "${{" not in each["run"]


def test_a_pull_request_is_annotated_and_summarized(repository, runner):  # noqa: F811
    base = git("rev-parse", "HEAD")
    write("src/new.py", WRONG)
    Path("plain.py").write_text("raise SystemExit('not to be imported')")
    git("add", ".")
    git("commit", "--quiet", "-m", "second")
    found = act("Check gradients", runner, base=base, audit="false")
    assert found.returncode == 1, found.stderr
    assert "✗ wrong  src/new.py:wrong  NumPy" in found.stdout  # the table
    assert "::error file=src/new.py,line=6,col=1,title=" in found.stdout
    assert "same.py" not in found.stdout  # as wrong, and not changed
    summary = (runner / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("### gradsmith check: 1 wrong in ")
    made = {each.name for each in (runner / "results").iterdir()}
    assert made == {"check.json", "check.xml", "check.sarif", "check.svg"}


def test_the_audit_follows_with_its_limit(repository, runner):  # noqa: F811
    pytest.importorskip("flint")
    base = git("rev-parse", "HEAD")
    write("src/ops.py", RIGHT, "\n# changed\n")
    git("commit", "--quiet", "-a", "-m", "second")
    found = act("Check gradients", runner, base=base, max_ulp="0.1")
    assert found.returncode == 1
    assert "1 right in" in found.stdout
    assert "1 beyond 0.1 ULP" in found.stdout
    summary = (runner / "summary.md").read_text(encoding="utf-8")
    assert summary.count("### gradsmith") == 2
    data = json.loads((runner / "results" / "audit.json").read_text("utf-8"))
    assert data["max_ulp"] == 0.1
    git("commit", "--quiet", "--allow-empty", "-m", "third")
    found = act("Check gradients", runner, base=git("rev-parse", "HEAD"))
    assert found.returncode == 0
    assert found.stdout.count("no file has changed") == 4  # as text, and annotated


def test_a_new_branch_and_no_changes_mean_everything(repository, runner):  # noqa: F811
    zeros = "0" * 40
    found = act("Check gradients", runner, base=zeros, paths="src", audit="false")
    assert found.returncode == 1
    assert "src/same.py:wrong" in found.stdout
    assert "gone.py" not in found.stdout
    found = act("Check gradients", runner, base=zeros, audit="false")
    assert "gone.py:wrong" in found.stdout
    words = {"changed": "false", "paths": "src/ops.py", "format": "github"}
    found = act("Check gradients", runner, audit="false", **words)
    assert found.returncode == 0, found.stdout
    assert found.stdout.startswith("::notice title=gradsmith check::1 right")


def test_the_installation(runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    pip = tmp_path / "bin" / "python"
    pip.write_text('#!/bin/sh\necho "$@" > said\n')
    pip.chmod(0o755)
    monkeypatch.setitem(PLAIN, "PATH", f"{pip.parent}{os.pathsep}{PLAIN['PATH']}")
    given = {"version": "==0.1.0", "install": "-e . torch"}
    assert act("Install Gradsmith", runner, **given).returncode == 0
    assert Path("said").read_text().endswith("gradsmith[audit,cli]==0.1.0 -e . torch\n")
    assert (runner / "output").read_text() == f"results={runner}/gradsmith\n"
    assert act("Install Gradsmith", runner).returncode == 0
    assert Path("said").read_text().endswith(" /the/action[audit,cli]\n")


# --- the hooks


def hooked(name: str, *files: str):
    hook = next(each for each in HOOKS if each["id"] == name)
    command, *words = shlex.split(hook["entry"])
    assert command == "gradsmith"
    return subprocess.run(
        [sys.executable, "-m", "gradsmith", *words, *files],
        env=PLAIN, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_hooks_name_the_extras_that_they_need():
    needs = {each["id"]: each["additional_dependencies"] for each in HOOKS}
    assert needs == {"gradsmith-check": [".[cli]"], "gradsmith-audit": [".[cli,audit]"]}
    for each in HOOKS:
        assert each["language"] == "python"
        assert each["types"] == ["python"]
        assert each["require_serial"]


@pytest.mark.usefixtures("folder")
def test_a_hook_looks_at_the_files_that_it_is_given():
    write("ops.py", WRONG)
    write("fine.py", RIGHT)
    Path("plain.py").write_text("raise SystemExit('not to be imported')")
    assert hooked("gradsmith-check", "plain.py").returncode == 0
    assert hooked("gradsmith-check", "plain.py", "fine.py").returncode == 0
    found = hooked("gradsmith-check", "plain.py", "ops.py", "fine.py")
    assert found.returncode == 1
    assert "1 right; 1 wrong in" in found.stdout


@pytest.mark.usefixtures("folder")
def test_the_hook_of_the_audit():
    pytest.importorskip("flint")
    write("ops.py", RIGHT)
    assert hooked("gradsmith-audit", "ops.py", "--points=300").returncode == 0
    words = ("--points=300", "--max-ulp=0.1")
    assert hooked("gradsmith-audit", "ops.py", *words).returncode == 1
