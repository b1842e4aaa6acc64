"""The page about the architecture names files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gradsmith
from gradsmith.core.arrays import FRAMEWORKS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MENTIONED = sorted(set(re.findall(r"`(src/gradsmith/[\w/.]*\w)(?:::([\w.]+))?`", PAGE)))
PACKAGE = Path(gradsmith.__file__).parent


def rows_after(heading: str) -> list[str]:
    """The first cells of the table that follows a line."""
    table = PAGE[PAGE.index(heading) :].partition("\n\n")[0].splitlines()[2:]
    return [line.split("|")[1].strip(" `") for line in table]


def test_the_tree_is_that_of_the_package():
    packages = {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").is_file()}
    assert set(rows_after("| under `src/gradsmith/` |")) == packages


def test_the_parts_are_those_of_the_folders():
    parts = rows_after("| part |")
    for name in FRAMEWORKS:
        folder = {p.stem for p in (PACKAGE / "frameworks" / name).iterdir()}
        missing = set(parts) - folder
        assert missing <= set(FRAMEWORKS[name].cannot)
        assert folder - set(parts) <= {"__init__", "__pycache__", "early", "private"}


def test_there_are_mentions():
    assert len(MENTIONED) > 15


@pytest.mark.parametrize(("file", "name"), MENTIONED)
def test_what_is_mentioned_exists(file, name):
    path = ROOT / file
    assert path.exists()
    body = ast.parse(path.read_text(encoding="utf-8")).body if name else []
    for part in filter(None, name.split(".")):
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"{file} has no {name}"
        body = getattr(found[0], "body", [])
