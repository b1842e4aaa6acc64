"""The site: built once, its links followed, its pages looked at in a real Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import gradsmith as gs
from tests.docs.test_reference import NAMES, published
from tests.report.browser import CONTRAST, chromium, preferring, resized, why_not

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WIDE, NARROW = 1400, 360
TEXT = 4.5  # WCAG AA
STILL = {"prefers_reduced_motion": "reduce"}

pytest.importorskip("material", reason="the packages of the site are not installed")
in_browser = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site; notebooks are shown as they are, not executed."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", folder]
    environ = {"DOCS_EXECUTE": "false", "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


class Page(HTMLParser):
    """The places in a page, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {found[key] or "" for key in ("id", "name") if key in found}
        self.references += [found[key] or "" for key in ("href", "src") if key in found]


@cache
def page(path: Path) -> Page:
    return Page(path)


def pages(site: Path) -> list[Path]:
    return [p for p in sorted(site.rglob("*.html")) if p.name != "404.html"]


# Links and titles


def test_internal_links_and_anchors_lead_somewhere(site):
    broken = []
    for path in pages(site):
        for reference in page(path).references:
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)) if parts.path else path
            target, place = target.resolve(), unquote(parts.fragment)
            is_there = target.is_file()
            if is_there and place and target.suffix == ".html":
                is_there = place in page(target).ids
            if not is_there:
                broken.append(f"{path.relative_to(site)}: {reference}")
    assert broken == []


def test_pages_name_no_scripts_of_other_sites(site):
    foreign = ("//cdn", "cdnjs", "unpkg.com", "jsdelivr", "googleapis")
    found = [
        f"{path.relative_to(site)}: {name}"
        for path in pages(site)
        for name in foreign
        if name in path.read_text(encoding="utf-8")
    ]
    assert found == []


def titled(entries: Any) -> Iterator[tuple[str, str]]:
    """Each page of the navigation with its title."""
    for entry in entries:
        for title, below in entry.items():
            if isinstance(below, str):
                yield title, below
            else:
                yield from titled(below)


def navigation() -> list[tuple[str, str]]:
    import yaml

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return [*titled(yaml.safe_load(text[text.index("\nnav:") :])["nav"])]


def heading(path: Path) -> str:
    """The title of a page: the one that it states, or else its first heading."""
    text = path.read_text(encoding="utf-8")
    if text.startswith("---\ntitle: "):
        return text.splitlines()[1].removeprefix("title: ")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "".join(next(c for c in cells if c["cell_type"] == "markdown")["source"])
    return next(
        line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")
    )


def test_titles_in_the_navigation_are_those_of_the_pages():
    assert [(title, path) for title, path in navigation()] == [
        (heading(DOCS / path), path) for _, path in navigation()
    ]


def test_every_page_is_in_the_navigation():
    written = {*DOCS.rglob("*.md"), *(DOCS / "tutorials").glob("*.ipynb")}
    assert {str(p.relative_to(DOCS)) for p in written} == {p for _, p in navigation()}


# The reference


@pytest.fixture(scope="module")
def reference(site) -> dict[str, str]:
    """What stands under the heading of each name."""
    found = {}
    for path in (site / "api").glob("*.html"):
        html = path.read_text(encoding="utf-8")
        for name in NAMES:
            start = html.find(f'id="gradsmith.{name}"')
            if start >= 0:
                ends = [
                    html.find(tag, start + 1) for tag in ("<h2", "<h3", "</article")
                ]
                found[name] = html[start : min(end for end in ends if end > 0)]
    return found


def test_every_public_name_has_a_heading(reference):
    assert set(reference) == set(NAMES)
    for name, html in reference.items():
        assert f"gs.{name}" in html


def test_every_name_has_its_signature_and_examples_are_code(reference):
    for name, html in reference.items():
        thing = published(name)
        takes = (
            "__init__" in vars(thing) if isinstance(thing, type) else callable(thing)
        )
        assert not takes or "doc-signature" in html, name
        assert 'class="gp"' in html, name  # a prompt, told from code
        assert "```" not in html, name
    assert "inputs" in reference["check"]
    assert "self" not in reference["check"]
    assert gs.check.__doc__ != gs.assert_gradients.__doc__


# In a browser


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def opened(driver: Any, path: Path, width: int = WIDE, scheme: str = "light") -> Any:
    preferring(driver, prefers_color_scheme=scheme, **STILL)
    resized(driver, width)
    driver.get(path.as_uri())
    return driver


def schemed(driver: Any, scheme: str) -> None:
    """The colours of a scheme at once, as its button would choose them."""
    attribute = {"light": "default", "dark": "slate"}[scheme]
    driver.execute_script(
        "document.body.setAttribute('data-md-color-scheme', arguments[0])", attribute
    )


def console(driver: Any) -> list[str]:
    return [e["message"] for e in driver.get_log("browser") if e["level"] != "INFO"]


# What is wider than the page, if that scrolls sideways
OVERFLOW = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width) return [];
const isInside = (e) => {
  for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
    if (getComputedStyle(p).overflowX !== "visible") return true;
  return false;
};
return [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > width + 1 && !isInside(e))
  .map((e) => e.tagName + "." + e.className).slice(0, 3);
"""
# The text that is read, and not what is hidden until it is pointed at
READ = """
document.querySelectorAll(".md-header, .md-tabs, .md-footer, .md-search, .headerlink")
  .forEach((e) => e.classList.add("skip"));
document.head.append(Object.assign(document.createElement("style"), {
  textContent: "* { transition: none !important }",
}));
"""


@in_browser
def test_pages_have_no_errors_fit_and_can_be_read(site, driver):
    faults = []
    for path in pages(site):
        name = str(path.relative_to(site))
        opened(driver, path)
        faults += [f"{name}: {message}" for message in console(driver)]
        driver.execute_script(READ)
        for scheme in ("light", "dark"):
            schemed(driver, scheme)
            faults += [
                f"{name}, {scheme}: {ratio:.2f} of {text!r} in {ink}"
                for ratio, text, ink in driver.execute_script(CONTRAST)[:3]
                if ratio < TEXT
            ]
        for width in (WIDE, NARROW):
            resized(driver, width)
            wide = driver.execute_script(OVERFLOW)
            faults += [f"{name}, {width} px: {each} is too wide" for each in wide]
        loaded = driver.execute_script(
            "return performance.getEntriesByType('resource').map((e) => e.name)"
        )
        faults += [f"{name}: {each}" for each in loaded if each.startswith("http")]
    assert faults == []


@in_browser
def test_the_button_changes_the_colours(site, driver):
    opened(driver, site / "index.html")
    body = driver.find_element("css selector", "body")
    assert body.get_attribute("data-md-color-scheme") == "default"
    driver.find_element("css selector", "label[title='Switch to dark mode']").click()
    assert body.get_attribute("data-md-color-scheme") == "slate"
    driver.find_element("css selector", "label[title='Switch to light mode']").click()


@in_browser
@pytest.mark.parametrize("system", ["light", "dark"])
def test_results_in_the_gallery_have_the_colours_of_the_page(site, driver, system):
    """By the button, whatever the system says; what Matplotlib draws is a picture."""
    opened(driver, site / "gallery.html", scheme=system)
    papers = """return [...document.querySelectorAll(".md-content .gradsmith")]
      .map((e) => getComputedStyle(e).backgroundColor)"""
    for scheme, paper in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 18, 23)")):
        schemed(driver, scheme)
        found = driver.execute_script(papers)
        assert len(found) >= 9
        assert {*found} == {paper}
    pictures = driver.find_elements("css selector", ".md-content img")
    names = [each.get_attribute("src").rpartition("/")[2] for each in pictures]
    assert names == ["check-plot.svg", "check-elements.svg", "audit-plot.svg"]


@in_browser
@pytest.mark.parametrize("name", ["gallery", "fluid"])
def test_plots_are_light_in_the_light_and_dark_in_the_dark(site, driver, name):
    from PIL import Image, ImageStat

    opened(driver, site / f"{name}.html")
    for scheme, low, high in (("light", 200, 255), ("dark", 0, 90)):
        schemed(driver, scheme)
        for each in driver.find_elements("css selector", ".md-content img"):
            shot = Image.open(BytesIO(each.screenshot_as_png)).convert("L")
            assert low <= ImageStat.Stat(shot).median[0] <= high


@in_browser
def test_the_search_works_without_a_server(site, driver):
    from selenium.webdriver.support.wait import WebDriverWait

    opened(driver, site / "index.html")
    box = driver.find_element("css selector", ".md-search__input")
    box.click()
    box.send_keys("recompute checkpoint")
    query = ".md-search-result__item h1"
    WebDriverWait(driver, 20).until(lambda d: d.find_elements("css selector", query))
    titles = [e.text for e in driver.find_elements("css selector", query)]
    assert "Checkpointing" in titles
    assert console(driver) == []


# What each button copies: a page may not copy unless somebody clicks, so it is caught
# where the browser would be asked to
COPIED = """
const copied = [];
document.execCommand = () => copied.push(document.activeElement.value);
[...document.querySelectorAll("[data-md-type=copy]")]
  .filter((button) => button.checkVisibility()).forEach((button) => button.click());
return copied;
"""


def copied_from(driver: Any) -> list[str]:
    """The theme makes the buttons after the page is loaded."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 20).until(lambda d: d.execute_script(COPIED))


@in_browser
@pytest.mark.parametrize("name", ["index", "check", "coming-from-jax", "api/verify"])
def test_copied_code_has_no_prompts_and_no_output(site, driver, name):
    copied = copied_from(opened(driver, site / f"{name}.html"))
    for code in copied:
        assert ">>>" not in code
        assert "Traceback" not in code
    sessions = [code for code in copied if "import gradsmith" in code]
    assert sessions
    for code in sessions:
        compile(code, name, "exec")


@in_browser
def test_the_copied_definition_is_the_one_on_the_landing_page(site, driver):
    copied = copied_from(opened(driver, site / "index.html"))
    code = next(each for each in copied if "def softplus" in each)
    assert code.splitlines() == [
        "import numpy as np",
        "import gradsmith as gs",
        "import gradsmith.numpy as gnp",
        "@gs.custom_gradient",
        "def softplus(x):",
        "    e = gnp.exp(-gnp.abs(x))",
        "    y = gnp.maximum(x, 0) + gnp.log1p(e)",
        "    def grad(dy):",
        "        return dy * gnp.where(x > 0, 1, e) / (1 + e)",
        "    return y, grad",
    ]


@in_browser
def test_a_framework_is_chosen_by_its_tab(site, driver):
    opened(driver, site / "index.html")
    tabs = driver.find_elements("css selector", ".tabbed-labels > label")
    assert [t.text for t in tabs] == ["NumPy", "TensorFlow", "JAX", "PyTorch", "MLX"]
    tabs[3].click()
    shown = driver.find_elements("css selector", ".tabbed-block")
    assert [each.is_displayed() for each in shown] == [i == 3 for i in range(5)]
    assert ".backward()" in shown[3].text


@in_browser
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_point_is_on_the_first_screen(site, driver, width):
    """Definition, frameworks, a wrong gradient and the map; on a phone, the first."""
    opened(driver, site / "index.html", width)
    driver.execute_script("window.scrollTo(0, 0)")
    bottoms = [e.rect["y"] for e in driver.find_elements("css selector", ".pair h2")]
    assert len(bottoms) == 4
    assert max(bottoms if width == WIDE else bottoms[:1]) < 800
