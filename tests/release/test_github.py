"""Workflows, templates, the recipe and the citation: they parse, and agree with us."""

from __future__ import annotations

import re
import subprocess

import pytest

from gradsmith.core import __version__

from .project import EXTRAS, MAKEFILE, PROJECT, PYPROJECT, ROOT, targets

yaml = pytest.importorskip("yaml", reason="PyYAML reads them: pip install pyyaml")

GITHUB = ROOT / ".github"
FILES = sorted({*GITHUB.rglob("*.yml"), *ROOT.glob("*.yml"), *ROOT.glob("*.yaml")})
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TEMPLATES = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))


def read(path):
    """mkdocs.yml has tags of its own, and every `on:` is a true to YAML."""
    text = re.sub(r"!!python/name:\S+", "''", path.read_text(encoding="utf-8"))
    text = re.sub(r"!ENV\b", "", text)
    return yaml.safe_load(re.sub(r"^on:", '"on":', text, flags=re.M))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_can_be_read(path):
    assert read(path)


def steps(workflow):
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_make_targets_that_exist(path):
    commands = [step["run"] for step in steps(read(path)) if "run" in step]
    called = re.findall(r"\bmake (?:--\S+ )*([\w-]+)", "\n".join(commands))
    assert called
    assert set(called) <= targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_write_nothing_that_it_need_not(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["on"]


def test_the_release_is_by_trusted_publishing():
    jobs = read(GITHUB / "workflows" / "release.yml")["jobs"]
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert set(publish["needs"]) == {"tests", "build", "wheels"}
    [_, upload] = publish["steps"]
    assert upload == {"uses": "pypa/gh-action-pypi-publish@release/v1"}
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text()


def test_ci_runs_what_the_workflows_run():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    called = set(re.findall(r"^make ([\w-]+)", ci, re.M))
    assert called <= targets()
    assert {"lint", "docs", "dist", "test-oldest", "test-pythons", "test"} <= called


def test_every_target_that_is_a_verb_is_phony():
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split())
    assert phony == targets()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_is_a_form(path):
    form = read(path)
    assert {"name", "description", "labels", "body"} == set(form)
    identifiers = [field["id"] for field in form["body"]]
    assert len(identifiers) == len(set(identifiers))
    assert all(field["attributes"]["label"] for field in form["body"])


def test_the_templates_are_of_four_kinds():
    kinds = ["wrong-gradient", "wrong-verdict", "crash", "feature"]
    assert [path.stem[2:] for path in TEMPLATES] == kinds


# --- one version, one list of requirements --------------------------------------------


def spaced(requirement: str) -> str:
    return re.sub(r"(>=)", r" \1", requirement)


def test_the_recipe_agrees_with_pyproject():
    recipe = read(ROOT / "conda" / "recipe.yaml")
    assert recipe["context"]["version"] == __version__
    python = f"python {PROJECT['requires-python']}"
    needed = [*PROJECT["dependencies"], *EXTRAS["cli"]]
    assert recipe["requirements"]["run"] == [python, *map(spaced, needed)]
    built = [spaced(r) for r in PYPROJECT["build-system"]["requires"]]
    assert recipe["requirements"]["host"] == [python, "pip", *built]
    scripts = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    scripts = [line for test in recipe["tests"] for line in test.get("script", ())]
    assert scripts
    assert all(isinstance(line, str) for line in scripts)
    about = recipe["about"]
    assert about["license"] == PROJECT["license"]
    assert about["summary"] == PROJECT["description"]
    assert about["homepage"] == PROJECT["urls"]["Homepage"]
    assert about["documentation"] == PROJECT["urls"]["Documentation"]


def test_the_citation_agrees_with_pyproject():
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert citation["authors"] == PROJECT["authors"]


def test_make_says_the_version():
    said = subprocess.check_output(["make", "-s", "version"], cwd=ROOT, text=True)
    assert said.strip() == __version__
