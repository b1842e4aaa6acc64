"""The first page: short, readable on a package index, and true."""

from __future__ import annotations

import re
import shlex

import pytest

from benchmarks.__main__ import BENCHMARKS
from tests.docs.lost_digits import COLOURS, MAPS

from .project import PROJECT, ROOT, targets

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)]+)\)", TEXT)
DOCS = PROJECT["urls"]["Documentation"]
SOURCE = PROJECT["urls"]["Source"]
RAW = SOURCE.replace("github.com", "raw.githubusercontent.com")


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 150


def file_of(link: str):
    """The file in this repository that a link leads to; None if it is none of ours."""
    for start, folder, old, new in (
        (DOCS, "docs/", ".html", ".md"),
        (f"{SOURCE}/blob/main/", "", "", ""),
        (f"{RAW}/main/", "", "", ""),
    ):
        if link.startswith(start):
            name = link.removeprefix(start).partition("#")[0]
            return ROOT / f"{folder}{name.removesuffix(old)}{new}"
    return None


@pytest.mark.parametrize("link", LINKS)
def test_a_link_works_on_a_package_index(link):
    assert link.startswith("https://")
    path = file_of(link)
    assert path is None or path.is_file()


@pytest.mark.parametrize("link", [*PROJECT["urls"].values()])
def test_a_link_of_the_project_works(link):
    path = file_of(link)
    assert path is None or path.is_file() or link == DOCS


def test_a_wrong_link_is_noticed():
    assert not file_of(f"{DOCS}nowhere.html").exists()


def test_the_first_screen_has_a_picture_and_the_command_that_makes_it():
    pictures = re.findall(r'(?:src|srcset)="(.+?)"', TEXT)
    made = {f"{stem}-{scheme}.svg" for stem in MAPS for scheme in COLOURS}
    assert len(pictures) == 2  # in a dark and a light scheme
    for picture in pictures:
        assert file_of(picture).is_file()
        assert file_of(picture).name in made
    assert "`make picture`" in TEXT[: TEXT.index(pictures[0])]
    assert TEXT.index(pictures[-1]) < TEXT.index("\n## ")


DOCUMENTS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_target_that_a_document_names_exists(path):
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.M)) <= targets()


def commands():
    code = re.findall(
        r"^(make .*|python -m .*)$|`((?:make|python -m) [^`]+)`", TEXT, re.M
    )
    return [shlex.split(block or inline, comments=True) for block, inline in code]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_a_command_exists(command):
    if command[0] == "make":
        assert command[1] in targets()
    else:
        assert command[:3] == ["python", "-m", "benchmarks"]
        assert command[3] in BENCHMARKS
