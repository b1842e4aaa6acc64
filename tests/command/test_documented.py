"""The page "Checks in CI": its commands run, its files are understood."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradsmith.command.command import gradsmith as command
from gradsmith.command.config import read
from tests.command.test_action import ACTION, HOOKS
from tests.command.test_check import folder  # noqa: F401
from tests.command.test_config import git

yaml = pytest.importorskip("yaml")
PAGE = Path(__file__).parents[2].joinpath("docs", "ci.md").read_text(encoding="utf-8")
LOSSES = """\
import numpy as np
import gradsmith as gs


@gs.custom_gradient
def softplus(x):
    return np.log1p(np.exp(x)), lambda dy: dy / (1 + np.exp(-x))


@gs.custom_gradient
def mean_square(x):
    return np.mean(x**2), lambda dy: 2 * x * dy
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command, and the lines that it prints."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]


def same(said: str, expected: str) -> bool:
    """Whether lines agree but for widths, times and errors."""
    figure = r"\d+(\.\d+)?(e-\d+)?"
    plain = [re.sub(" +", " ", re.sub(figure, "#", each)) for each in (said, expected)]
    return plain[0].strip() == plain[1].strip()


def test_the_commands_print_what_the_page_says(folder):  # noqa: F811
    Path("src").mkdir()
    Path("src/losses.py").write_text(LOSSES, encoding="utf-8")
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    git("init", "--quiet")
    ran = 0
    for block in blocks("console"):
        for line, expected in commands(block):
            name, *words = shlex.split(line)
            assert name == "gradsmith"
            if words == ["doctor"]:
                continue
            if "--changed=HEAD" in words:
                git("add", ".")
                git("commit", "--quiet", "-m", "all")
            found = CliRunner().invoke(command, words)
            printed = found.stdout.splitlines()
            for each in expected:
                is_there = any(same(said, each) for said in printed)
                assert each == "..." or is_there, f"{line}: {each}\n{found.output}"
            ran += 1
    assert ran == 6
    assert Path("badge.svg").read_bytes() == Path("gradients.svg").read_bytes()


def test_the_table_of_the_page_is_understood(tmp_path):
    (block,) = blocks("toml")
    tomllib.loads(block)
    file = tmp_path / "pyproject.toml"
    file.write_text(block, encoding="utf-8")
    config = read(file)
    assert config.values["frameworks"] == ["numpy", "torch"]
    assert config.chosen("round", "quantize")["surrogate"] == "straight through"
    assert config.chosen("cross_entropy", "losses")["data"] == ("labels",)


def test_the_workflows_of_the_page_use_what_there_is():
    workflow, *hooks = map(yaml.safe_load, blocks("yaml"))
    (job,) = workflow["jobs"].values()
    *_, ours = job["steps"]
    assert set(ours["with"]) <= set(ACTION["inputs"])
    rows = re.findall(r"^\| `([\w-]+)` \|.*\|.*\|$", PAGE, re.MULTILINE)
    assert set(ACTION["inputs"]) <= set(rows)
    named = [each["id"] for hook in hooks for r in hook["repos"] for each in r["hooks"]]
    assert {*named} == {each["id"] for each in HOOKS}
    (local,) = [r for hook in hooks for r in hook["repos"] if r["repo"] == "local"]
    (check,) = [each for each in HOOKS if each["id"] == "gradsmith-check"]
    assert local["hooks"][0]["entry"] == check["entry"]
