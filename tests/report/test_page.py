"""The page: what it says, how it is built, and that no word becomes markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.report.page import page_of, render, write
from gradsmith.report.result import Document
from tests.report.sample import EVIL, Tree, audit, evil, failed, results


@pytest.fixture(scope="module")
def html() -> str:
    return render(page_of(results(), title="Gradients of ops.py", seed=0))


@pytest.fixture(scope="module")
def tree(html) -> Tree:
    return Tree(html)


def test_verdicts_come_first_and_what_is_wrong_before_all_else(tree):
    text = tree.text
    places = [
        text.index(words)
        for words in (
            "1 gradient is wrong",
            "What to look at first",
            "the gradient is 2 times the derivative",
            "took longer than 5 s",
            "overflows to inf for x > 100",
            "4 operations; what is wrong comes first",
        )
    ]
    assert places == sorted(places)
    rows = [a["data-for"] for a in tree.all("tr") if "data-for" in a]
    assert rows == [
        "op-ops.py-twice_too_much-NumPy",
        "op-broken.py",
        "op-ops.py-cube-NumPy",
        "op-ops.py-product-NumPy",
    ]


def test_everything_there_is_stands_in_the_details(tree):
    for words in (
        "divide the gradient by 2",
        "Gradient against differences",
        "they agree at all",
        "value and gradient, eager; median of at least",
        "All checks: ",
        "2 honoured",
        "The audit was left out: for a reason",
        "It was here:",
        "Error of the gradient in ULP against the input",
    ):
        assert words in tree.text, words


def test_each_operation_has_an_anchor_and_each_link_a_target(tree):
    ids = [a["id"] for _, a, _ in tree.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in tree.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    for attributes in tree.all("tr"):
        if "data-for" in attributes:
            assert f"#{attributes['data-for']}" in links


def test_tables_have_captions_and_heads_with_scopes(tree):
    tables = [i for i, (tag, _, _) in enumerate(tree.elements) if tag == "table"]
    assert len(tables) > 5
    for i in tables:
        assert tree.elements[i + 1][0] == "caption"
    assert all(a.get("scope") in ("col", "row") for a in tree.all("th"))


def test_drawings_have_words(tree):
    drawings = tree.all("svg")
    assert len(drawings) >= 8
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"]) > 40


def test_nothing_is_fetched_and_nothing_else_is_run(html, tree):
    for tag, attributes, _ in tree.elements:
        assert not {"style", "srcset", "action"} & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:image/svg")), tag
    scripts = [a.get("type") for a in tree.all("script")]
    assert scripts == ["application/json", None]
    assert "default-src 'none'" in html
    assert not re.search(r"@import|url\(|fetch\(|https?://(?!www.w3.org)", html)


def test_user_text_is_escaped_everywhere():
    rendered = render(page_of([evil(), *results()], title=EVIL, fact=EVIL))
    tree = Tree(rendered)
    assert len(tree.all("script")) == 2
    assert tree.all("img") == []
    assert rendered.count("<script>hacked") == 0
    assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|&(\d+)", tree.text)
    assert ("code", "<b>") in tree.words
    assert tree.text.count(EVIL) > 20
    assert tree.text.count(EVIL.replace("`", "")) >= 5  # as code
    data = next(w for tag, w in tree.words if tag == "script" and w.startswith("["))
    entries = json.loads(data)
    assert entries[0]["name"] == EVIL
    assert entries[0]["report"]["findings"][0]["message"] == EVIL


def test_results_are_in_the_page_as_json(tree):
    data = next(w for tag, w in tree.words if tag == "script" and w.startswith("["))
    entries = {entry["name"]: entry for entry in json.loads(data)}
    assert entries["cube"]["more"]["audit"]["gradient"]["max_ulp"] == "inf"
    assert entries[""]["status"] == "could not run"


def test_a_page_of_checks_alone_has_no_other_columns():
    plain = [replace(row, more=None, said=row.said[:1]) for row in results()]
    heads = Tree(render(page_of(plain))).text
    assert "Gradient check" in heads
    assert "Beside autodiff" not in heads
    assert "Value, ULP" not in heads


def test_a_page_of_alone(tmp_path):
    good = audit(operation="fine", gradient=audit().value)
    page = page_of([good, audit()], title="Accuracy")
    path = write(tmp_path / "audits.html", page)
    tree = Tree(path.read_text(encoding="utf-8"))
    assert "1 operation is inaccurate" in tree.text
    assert "Gradient check" not in tree.text
    rows = [a["data-for"] for a in tree.all("tr") if "data-for" in a]
    assert rows == ["op-cube-NumPy", "op-fine-NumPy"]
    data = next(w for tag, w in tree.words if tag == "script" and w.startswith("["))
    assert "Infinity" not in data  # which is no JSON
    assert json.loads(data)[0]["gradient"]["max_ulp"] == "inf"
    assert "All 2 operations are accurate" in render(page_of([good, good]))


@pytest.mark.parametrize(
    ("some", "words"),
    [
        ((), "No operation was found"),
        ((1,), "The gradient is right"),
        ((0,), "The gradient is right, with limits"),
        ((1, 1), "All 2 gradients are right"),
        ((0, 1), "All 2 gradients are right, 1 with limits"),
        ((0, 0), "All 2 gradients are right, with limits"),
        ((0, 2), "No gradient is wrong, but 1 of 2 are open"),
        ((0, 3), "1 gradient is wrong"),
        ((3, 3), "2 gradients are wrong"),
    ],
)
def test_the_headline(some, words):
    tree = Tree(render(page_of([results()[i] for i in some])))
    heading = [w for tag, w in tree.words if tag == "h1"]
    assert heading == [words]


def test_the_same_operation_twice_has_two_anchors():
    tree = Tree(render(page_of([failed(), failed()])))
    rows = [a["data-for"] for a in tree.all("tr") if "data-for" in a]
    assert rows == ["op-broken.py", "op-broken.py-2"]


def test_code_in_words_is_shown_as_code():
    found = audit("loses bits (cancellation in `a - b`, line 12)")
    tree = Tree(render(page_of([found])))
    assert ("code", "a - b") in tree.words
    assert "in a - b, line 12" in tree.text
    odd = Tree(render(page_of([audit("one ` alone")])))
    assert "one ` alone" in odd.text


def test_many_inaccurate_ones_don_t_hide_the_table():
    cube, wrong = results()[0], results()[3]
    tree = Tree(render(page_of([wrong, *[cube] * 3])))
    assert "3 right, with limits" in tree.text
    tree = Tree(render(page_of([wrong, *[cube] * 2])))
    assert "Accuracy: 2" not in tree.text


def test_results_of_every_tool_share_a_page():
    def reciprocal_root(x):
        return (1 / np.sqrt(x)).sum()

    x = np.array([4.0, 1.0])
    nan = gs.find_nan(reciprocal_root, np.array([4.0, 0.0]))
    found = [nan, gs.memory(reciprocal_root, x), audit()]
    tree = Tree(render(page_of(found)))
    for report in found:
        assert report.document().headline in tree.text
    assert "2 operations are not in order" in tree.text
    rows = [a["data-status"] for a in tree.all("tr") if "data-for" in a]
    assert rows == ["not finite", "inaccurate", ""]


def test_a_document_comes_back_from_json():
    for result in results():
        for document in result.documents():
            packed = json.loads(json.dumps(document.as_dict(), allow_nan=False))
            assert Document.from_dict(packed).as_dict() == document.as_dict()
