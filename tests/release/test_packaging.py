"""What is installed with what: extras for users, dependency groups for developers."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import gradsmith as gs

from .project import (
    EXTRAS,
    FOR_GPUS,
    GROUPS,
    MAKEFILE,
    PROJECT,
    ROOT,
    expanded,
    name_of,
    requirements,
)

DEVELOPERS = {"pytest", "pytest-xdist", "hypothesis", "ruff", "pyright", "mkdocs"}


def test_the_engine_needs_numpy_alone():
    assert [name_of(r) for r in PROJECT["dependencies"]] == ["numpy"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_has_nothing_that_only_developers_need(extra):
    needed = {name_of(r) for entry in EXTRAS[extra] for r in expanded(entry)}
    assert needed
    assert not needed & DEVELOPERS


def test_all_is_every_extra_but_those_for_gpus():
    """Which bring hundreds of megabytes that a machine without one can't use."""
    [entry] = EXTRAS["all"]
    others = sorted(EXTRAS.keys() - {"all", *FOR_GPUS})
    assert entry == f"gradsmith[{','.join(others)}]"


def test_the_page_on_installing_names_every_extra():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `gradsmith\[([\w-]+)\]`", page, re.M)
    assert sorted(named) == sorted(EXTRAS)


def test_each_environment_of_make_has_a_group():
    environments = set(re.findall(r"\$\(ENVS\)/(\w+)/made", MAKEFILE))
    assert {"test", "lint", "docs"} <= environments
    assert environments - {"wild", "compiled"} <= set(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_can_be_installed(group):
    """It includes what exists, and names each package with one range."""
    needed = requirements(group)
    names = [name_of(r) for r in needed if "==" not in r]
    assert len(names) == len(set(names))
    assert all(r == "torch==2.13.0" for r in needed if name_of(r) == "torch")


def test_links_for_a_package_index():
    urls = PROJECT["urls"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert all(url.startswith("https://") for url in urls.values())


def test_dir_shows_the_public_names_alone():
    """Also after what is loaded late was asked for."""
    code = "import gradsmith as gs; gs.check, gs.ops; print(*dir(gs))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert shown == sorted([*gs.__all__, "__version__"])
