"""The package as a map: what lies where, and who may name a framework."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import gradsmith
from gradsmith.core.arrays import FRAMEWORKS

PACKAGE = Path(gradsmith.__file__).parent
FOLDERS = PACKAGE / "frameworks"
FOREIGN = [name for name in FRAMEWORKS if name != "numpy"]
NAMED = re.compile(rf"(?<![a-z])({'|'.join(FOREIGN)}|keras|jaxlib)(?![a-z])", re.I)
# What nobody promises to keep: a name with an underscore, and these
UNPUBLISHED = re.compile(
    r"(torch|jax|mlx)(\.\w+)*\._(?!_)\w+|tensorflow\.(python|core)\b|jax\.(_src|interpreters)\b"
)
# Files that every folder may have beside its parts
BESIDE = {"__init__", "early", "private"}


def sources(*, outside: bool):
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(FOLDERS) != outside:
            yield path


def test_the_top_level_is_a_table_of_contents():
    entries = {p.name for p in PACKAGE.iterdir() if p.name != "__pycache__"}
    assert len(entries - {"__init__.py", "__main__.py", "py.typed"}) <= 12
    assert all(
        (PACKAGE / name).is_dir() or name.startswith(("__", "py.")) for name in entries
    )


def test_no_file_outside_is_named_after_a_framework():
    named = [p for p in sources(outside=True) if NAMED.search(p.stem.replace("_", " "))]
    assert named == []


def code_of(path: Path):
    """Names and strings, without comments, docstrings and what users read."""
    text = path.read_text(encoding="utf-8")
    documented = {
        (node.body[0].lineno, node.body[0].end_lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        inside = any(a <= token.start[0] <= b for a, b in documented)
        if token.type in (tokenize.NAME, tokenize.STRING) and not inside:
            yield token


@pytest.mark.parametrize(
    "path", [*sources(outside=True)], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_frameworks_are_named_in_their_folders_alone(path):
    found = [
        f"{t.start[0]}: {t.string}" for t in code_of(path) if NAMED.search(t.string)
    ]
    assert found == []


def parts_of(name: str) -> set[str]:
    return {
        p.stem for p in (FOLDERS / name).iterdir() if p.name != "__pycache__"
    } - BESIDE


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_each_folder_has_the_same_parts(name):
    everything = set().union(*map(parts_of, FRAMEWORKS))
    missing = everything - parts_of(name)
    assert missing == set(FRAMEWORKS[name].cannot)


# Underscores that their owners document
DOCUMENTED = {"_version", "_fields", "_make", "_replace"}
OURS = DOCUMENTED | {
    name
    for path in PACKAGE.rglob("*.py")
    if path.name != "private.py"
    for name in re.findall(
        r"(?:self\.|def |class |^\s*)(_\w+)(?=\b.*[:=(])", path.read_text(), re.M
    )
}


def _is_private(node: ast.AST) -> bool:
    """An attribute with an underscore that no class or module of ours has."""
    if not isinstance(node, ast.Attribute) or not re.match("_[^_]", node.attr):
        return False
    return node.attr not in OURS


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_published_is_touched_in_one_file(name):
    found = []
    for path in sorted((FOLDERS / name).rglob("*.py")):
        if path.name == "private.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute):
                modules = [ast.unparse(node)]
            else:
                continue
            found += [
                f"{path.relative_to(FOLDERS)}:{node.lineno}: {module}"
                for module in modules
                if UNPUBLISHED.match(module) or _is_private(node)
            ]
    assert found == []
