"""The tutorials are stored clean, and are such that `make docs` executes them.

`make docs` runs each cell and fails on an error, an `assert` of a cell included; so
they are not executed here a second time.
"""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SITE = (ROOT / "mkdocs.yml").read_text()

# What the environment of the site has
INSTALLED = {"gradsmith", "jax", "matplotlib", "numpy", "scipy", "torch"}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return json.loads(path.read_text())


def sources(notebook, kind):
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == kind]


def test_there_are_six():
    assert len(NOTEBOOKS) >= 6


def test_nothing_of_a_run_is_stored(path, notebook):
    assert {*notebook} == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert {*notebook["metadata"]} == {"kernelspec", "language_info"}
    for cell in notebook["cells"]:
        # What proves the notebook right is not shown on the site
        is_test = "\nassert " in "\n" + "".join(cell["source"])
        assert cell["metadata"] == ({"tags": ["test"]} if is_test else {})
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    ids = [cell["id"] for cell in notebook["cells"]]
    assert ids == [f"cell-{n:02}" for n in range(len(ids))]
    assert path.stat().st_size < 30_000


def test_is_told_in_words_with_a_picture(notebook):
    prose, code = sources(notebook, "markdown"), sources(notebook, "code")
    assert notebook["cells"][0]["cell_type"] == "markdown"
    assert prose[0].startswith("# ")
    assert notebook["cells"][-1]["cell_type"] == "markdown"
    assert "](" in prose[-1]
    assert any("plt.show()" in source for source in code)
    assert len(prose) >= len(code) / 2


def test_formulas_are_letters(notebook):
    """The site loads nothing that would set them."""
    assert not [text for text in sources(notebook, "markdown") if "$" in text]


def test_its_results_are_asserted(notebook):
    trees = map(ast.parse, sources(notebook, "code"))
    asserts = [n for t in trees for n in ast.walk(t) if isinstance(n, ast.Assert)]
    assert len(asserts) >= 3


def test_imports_only_what_the_site_has(notebook):
    nodes = [n for s in sources(notebook, "code") for n in ast.walk(ast.parse(s))]
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
    packages = {name.partition(".")[0] for name in names}
    assert packages <= INSTALLED | sys.stdlib_module_names


def test_its_links_lead_somewhere(notebook):
    text = "\n".join(sources(notebook, "markdown"))
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert links
    for link in links:
        assert (FOLDER / link).is_file(), link


def test_links_lead_to_pages_of_the_site_and_to_the_notebook():
    hook = runpy.run_path(str(ROOT / "overrides" / "hooks.py"))["on_page_content"]
    links = '<h1>T</h1><a href="../check.md#inputs"> <a href="a.ipynb"> <a href="b.py">'
    pages = {
        uri: hook(links, page=SimpleNamespace(file=SimpleNamespace(src_uri=uri)))
        for uri in ("tutorials/me.ipynb", "me.md")
    }
    found = re.findall('href="([^"]+)"', pages["tutorials/me.ipynb"])
    assert found == ["me.ipynb", "../check.html#inputs", "a.html", "b.py"]
    assert pages["me.md"] == links


def test_the_site_executes_and_shows_it(path):
    assert f"tutorials/{path.name}" in SITE[SITE.index("\nnav:") :]
    assert 'include: ["tutorials/*.ipynb"]' in SITE
    assert "execute: !ENV [DOCS_EXECUTE, true]" in SITE
    assert "allow_errors: false" in SITE
