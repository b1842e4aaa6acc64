"""The page about the architecture names files and functions that exist."""

from __future__ import annotations

import ast
import re
import tomllib
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


def compiled_modules() -> list[Path]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    return [ROOT.joinpath("src", *m.split(".")) for m in hook["modules"]]


@pytest.mark.parametrize("path", compiled_modules(), ids=lambda path: path.name)
def test_compiled_code_negates_no_chain(path):
    """Cython 3.3 compiles `not a is b is c` as `a is not b is c`."""
    tree = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        chain = node.operand if negated else None
        if isinstance(chain, ast.Compare) and len(chain.ops) > 1:
            by_identity = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
            assert not isinstance(chain.ops[0], by_identity), ast.unparse(node)
