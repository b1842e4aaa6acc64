"""Results in notebooks: that nothing leaks, and that all is legible in a Chromium."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradsmith.report.html import highlighted
from gradsmith.report.styles import notebook_style, scoped
from tests.report import notebooks
from tests.report.browser import CONTRAST, chromium, resized, why_not
from tests.report.sample import EVIL, Tree

in_chromium = pytest.mark.skipif(bool(why_not()), reason=why_not())
KINDS = [*notebooks.shown()]


def test_every_rule_is_about_our_own_element():
    rules = re.sub(r"@media[^{]*\{", "", notebook_style())
    selectors = [
        name for names in re.findall(r"([^{}]+)\{", rules) for name in names.split(",")
    ]
    assert len(selectors) > 100
    assert [name for name in selectors if ".gradsmith.gradsmith" not in name] == []
    assert "@import" not in rules
    assert "url(" not in rules


def test_comments_and_media_queries_are_no_selectors():
    rules = "/* a, b { } */\n@media (x) {\n  p, q > r { a: b; }\n}\n:scope.s { c: d; }"
    inside = ".gradsmith.gradsmith p, .gradsmith.gradsmith q > r { a: b; }"
    assert inside in scoped(rules)
    assert scoped(rules).endswith(".gradsmith.gradsmith.s { c: d; }")
    assert "a, b" not in scoped(rules)


def test_code_is_coloured_and_stays_the_same():
    code = 'def f(x):  # "quoted" & <b>\n    return "if <i>" + 1.5e-3 * x_2'
    html = highlighted(code)
    assert '<span class="k">def</span>' in html
    assert '<span class="c"># &quot;quoted&quot; &amp; &lt;b&gt;</span>' in html
    assert '<span class="s">&quot;if &lt;i&gt;&quot;</span>' in html
    assert '<span class="n">1.5e-3</span>' in html
    assert Tree(html).text == code


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_says_in_a_notebook_what_it_says_as_text(kind):
    result = notebooks.shown()[kind]
    tree = Tree(result._repr_html_())
    said = " ".join(tree.text.split())
    headline = str(result).splitlines()[0]
    if kind == "program":
        headline = "program network:"
        assert "np.tanh" in said
        assert "inputs x float64 (3,)" in said.replace("inputsx", "inputs x")
    if kind == "drawing":
        headline = "The graph of"
    if kind == "both":
        headline = "transformation"
    assert " ".join(headline.split()[:3]) in said
    assert not any("onload" in each for each in tree.all("svg"))


@pytest.mark.parametrize("kind", [*notebooks.evil()])
def test_no_word_becomes_markup(kind):
    html = notebooks.evil()[kind]._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "hacked=1" in html


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def opened(driver: Any, folder: Any, html: str) -> Any:
    path = folder / "notebook.html"
    path.write_text(html, encoding="utf-8")
    driver.get(path.as_uri())
    driver.execute_script(
        "for (const d of document.querySelectorAll('details')) d.open = true"
    )
    return driver


@in_chromium
@pytest.mark.parametrize("name", [*notebooks.PAGES])
def test_it_is_legible_and_no_wider_than_a_phone(driver, tmp_path, name):
    html = notebooks.page(notebooks.PAGES[name], notebooks.shown())
    page = opened(driver, tmp_path, html.replace('id="others"', 'id="others" hidden'))
    for width in (360, 1000):
        resized(page, width)
        seen = page.execute_script(CONTRAST)
        assert len(seen) > 200
        assert [text for text in seen if text[0] < 4.5] == []
        wide = page.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
    dark = page.execute_script(
        "return getComputedStyle(document.querySelector('.gradsmith')).backgroundColor"
    )
    assert (dark == "rgb(15, 18, 23)") == ("dark" in name)


@in_chromium
def test_the_labels_of_facts_have_room(driver, tmp_path):
    start = notebooks.PAGES["JupyterLab, light"]
    page = opened(driver, tmp_path, notebooks.page(start, notebooks.shown()))
    resized(page, 1000)
    widths = page.execute_script(
        "return [...document.querySelectorAll('.gradsmith dt')].map(d => d.offsetWidth)"
    )
    assert min(widths) > 60


# What the browser makes of others' elements
STYLES = """
const found = [];
for (const e of document.querySelectorAll('#others, #others *')) {
  const s = getComputedStyle(e);
  found.push([...s].map((name) => name + ':' + s.getPropertyValue(name)));
}
return found;
"""


@in_chromium
def test_others_on_the_page_look_as_without_us(driver, tmp_path):
    resized(driver, 1000)
    start = notebooks.PAGES["JupyterLab, light"]
    alone = opened(driver, tmp_path, notebooks.page(start, {})).execute_script(STYLES)
    html = notebooks.page(start, notebooks.shown())
    assert opened(driver, tmp_path, html).execute_script(STYLES) == alone


# How far the headlines and plots of cards are from the left
LEFT = """
const inside = document.querySelectorAll('.gradsmith > .headline, .gradsmith > .plots');
const left = (e) => e.getBoundingClientRect().left;
return [...inside].map((e) => left(e) - left(e.parentElement));
"""


@in_chromium
def test_what_floats_on_the_page_stays_outside(driver, tmp_path):
    resized(driver, 1000)
    start = notebooks.PAGES["JupyterLab, light"]
    page = opened(driver, tmp_path, notebooks.page(start, notebooks.shown()))
    found = page.execute_script(LEFT)
    assert len(found) > 8
    assert len(set(found)) == 1


@in_chromium
def test_an_attack_does_nothing(driver, tmp_path):
    start = notebooks.PAGES["JupyterLab, light"]
    page = opened(driver, tmp_path, notebooks.page(start, notebooks.evil()))
    assert page.execute_script("return typeof hacked") == "undefined"
    assert EVIL in page.find_element("tag name", "body").get_property("textContent")
    fetched = page.execute_script("return performance.getEntriesByType('resource')")
    assert fetched == []
