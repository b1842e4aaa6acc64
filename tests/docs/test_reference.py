"""The reference has every public name, with an example, and what it raises."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.options import CheckOptions

API = Path(__file__).parents[2] / "docs" / "api"
NAMESPACES = ("numpy", "ops", "optimizers")
NAMES = [
    *(name for name in gs.__all__ if name not in NAMESPACES),
    *(f"ops.{name}" for name in gs.ops.__all__),
    *(f"optimizers.{name}" for name in gs.optimizers.__all__),
]
# They take whatever they are given
NEVER_RAISE = {"constant", "example", "kernels", "release_memory", "stop_gradient"}
REFUSES = re.compile(r"\braise\b|\brequire_\w+\(|\bwrong\(|_require\w+\(")


def published(name: str) -> Any:
    found: Any = gs
    for part in name.split("."):
        found = getattr(found, part)
    return found


@cache
def pages() -> str:
    return "\n".join(p.read_text(encoding="utf-8") for p in sorted(API.glob("*.md")))


def docstring(name: str) -> str:
    if name != "zero":
        return inspect.getdoc(published(name)) or ""
    # A value: what stands below it is what the reference shows
    module = import_module("gradsmith.operations.contract.words")
    after = inspect.getsource(module).partition("\nzero = _Zero()\n")[2]
    return ast.literal_eval(after[: after.index('"""', 3) + 3])


def examples(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(docstring(name))


def test_the_options_of_the_check_are_in_the_reference():
    page = (API / "verify.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", page, re.MULTILINE)
    assert rows == [(each.name, repr(each.default)) for each in fields(CheckOptions)]


def test_every_public_name_is_in_the_reference_once():
    entries = re.findall(r"^::: gradsmith\.(\S+)$", pages(), re.MULTILINE)
    assert sorted(entries) == sorted(NAMES)


def test_every_portable_name_is_in_the_reference():
    shown = set(re.findall(r"`(\w+)`", (API / "numpy.md").read_text(encoding="utf-8")))
    known = {*gnp.__all__, *dir(gnp.linalg), *dir(gnp.special)}
    missing = {n for n in known if not n.startswith("_")} - shown
    assert missing == {"linalg", "special"}  # titles of rows


@pytest.mark.parametrize("name", NAMES)
def test_it_has_an_example_that_runs_when_copied(name):
    found = examples(name)
    assert found, "no example"
    tree = ast.parse("".join(each.source for each in found))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {
                (each.asname or each.name).partition(".")[0] for each in node.names
            }
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            made.add(node.name)
    assert {node.id for node in names} - made == set()
    called = f"gs.{name}"
    uses = any(called in each.source or called in each.want for each in found)
    returned = isinstance(published(name), type) or name == "constant"
    assert uses or returned, f"the example does not show {called}"


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_raises(name):
    thing = published(name)
    if isinstance(thing, type) or name in {"zero", *NEVER_RAISE}:
        return  # of results nothing is asked
    if name.startswith("ops.") and not REFUSES.search(inspect.getsource(thing)):
        return  # what all of them raise stands above them
    assert re.search(r"^Raises\n------\n\w+\n    \S", docstring(name), re.MULTILINE)


def test_examples_are_run_as_doctests():
    """pytest finds examples where they stand; lazy names and operations among them."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in NAMES:
        if name == "zero":
            continue
        thing = published(name)
        module = import_module(thing.__module__)
        found = {test.docstring for test in finder.find(module)}
        assert thing.__doc__ in found, name
