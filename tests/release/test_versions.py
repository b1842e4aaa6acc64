"""The table of versions says what pyproject.toml says, and is found in the docs."""

from __future__ import annotations

import pytest

from benchmarks._documents import region
from gradsmith.core import __version__

from . import pythons, versions
from .project import MAKEFILE, PROJECT, ROOT

TABLE = region(versions.DOCUMENT.read_text(encoding="utf-8"), "versions") or ""


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_table_has_the_bounds_of_pyproject():
    """What is tested may be newer: it is what was installed when it was written."""
    shown = [cells(line) for line in TABLE.splitlines()[2:]]
    expected = [list(row) for row in versions.rows()]
    again = "run make versions"
    assert [(name, old, use) for name, old, _, use in shown] == [
        (name, old, use) for name, old, _, use in expected
    ], again


@pytest.mark.parametrize("line", TABLE.splitlines()[2:])
def test_what_was_tested_is_supported(line):
    _, oldest, tested, _ = cells(line)
    for version in tested.split(", "):
        assert number(version)[: len(number(oldest))] >= number(oldest)


def test_the_classifiers_are_pythons_that_are_tried():
    known = [f"python{version}" for version in versions.tested_pythons()]
    assert known == pythons.NAMES[: len(known)]
    assert f"PYTHONS := {' '.join(pythons.NAMES)}\n" in MAKEFILE


def test_one_version():
    assert PROJECT["version"] == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
