"""The page in a real Chromium."""

from __future__ import annotations

from typing import Any

import pytest

from gradsmith.report.page import page_of, write
from tests.report.browser import CONTRAST, chromium, preferring, resized, why_not
from tests.report.sample import EVIL, evil, results

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

# What scrolls smoothly moves while it is clicked on
STILL = {"prefers_color_scheme": "light", "prefers_reduced_motion": "reduce"}
TEXT = 4.5  # WCAG AA
CUBE = "op-ops.py-cube-NumPy"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write(path, page_of([*results(), evil()], title="Gradients")).as_uri()


@pytest.fixture
def page(driver, address):
    """The page, freshly loaded, on a screen of a usual size."""
    preferring(driver, **STILL)
    resized(driver, 1200)
    driver.get("about:blank")
    driver.get(address)
    return driver


def found(page: Any, query: str) -> list[Any]:
    return page.find_elements("css selector", query)


def labels(page: Any) -> list[str]:
    """The operations in the overview, as far as they are shown."""
    rows = [row for row in found(page, "#overview tbody tr") if row.is_displayed()]
    return [row.find_element("css selector", "th a").text for row in rows]


def contents(page: Any) -> list[Any]:
    """The links to operations in the list of contents, as far as they are shown."""
    return [each for each in found(page, ".contents .name") if each.is_displayed()]


def head(page: Any, name: str) -> Any:
    heads = found(page, "#overview thead th")
    return next(each for each in heads if each.text.startswith(name))


def test_it_loads_without_a_word_in_the_console(page):
    assert page.get_log("browser") == []
    assert page.execute_script("return typeof hacked") == "undefined"
    assert "2 gradients are wrong" in page.title
    fetched = page.execute_script("return performance.getEntriesByType('resource')")
    assert [entry["name"] for entry in fetched if "data:" not in entry["name"]] == []


def test_columns_sort_up_down_and_back(page):
    at_first = labels(page)
    column = head(page, "Operation")
    column.find_element("tag name", "button").click()
    assert column.get_attribute("aria-sort") == "ascending"
    assert labels(page) == sorted(at_first, key=str.lower)
    column.find_element("tag name", "button").click()
    assert column.get_attribute("aria-sort") == "descending"
    assert labels(page) == sorted(at_first, key=str.lower, reverse=True)
    column.find_element("tag name", "button").click()
    assert column.get_attribute("aria-sort") is None
    assert labels(page) == at_first


def test_figures_sort_as_numbers_by_the_keyboard_and_absent_ones_stay_last(page):
    button = head(page, "Gradient, ULP").find_element("tag name", "button")
    for _ in range(2):
        button.send_keys("\ue007")  # Enter
        cells = found(page, '#overview tbody td[data-label="Gradient, ULP"]')
        by = [cell.get_attribute("data-by") for cell in cells]
        numbers = [float(x) for x in by if x]
        assert by[len(numbers) :] == [""] * (len(by) - len(numbers))
        assert numbers in (sorted(numbers), sorted(numbers, reverse=True))


def test_search_narrows_rows_and_details(page):
    every = labels(page)
    page.find_element("tag name", "body").send_keys("/")
    search = page.switch_to.active_element
    assert search.get_attribute("id") == "search"
    search.send_keys("CUBE numpy")
    assert labels(page) == ["cube"]
    assert [each for each in found(page, "details.op") if each.is_displayed()] == [
        page.find_element("id", CUBE)
    ]
    assert page.find_element("id", "shown").text == f"1 of {len(every)} shown"
    search.clear()
    search.send_keys("no such thing")
    assert labels(page) == []
    assert page.find_element("id", "none").is_displayed()


def test_verdicts_filter(page):
    button = found(page, 'button[data-status="right"]')[0]
    button.click()
    assert labels(page) == ["product"]
    assert button.get_attribute("aria-pressed") == "true"
    assert [each.text for each in contents(page)] == ["product"]
    assert not [each for each in found(page, ".problems li") if each.is_displayed()]
    found(page, 'button[data-status="right, with limits"]')[0].click()
    assert labels(page) == ["cube"]
    assert button.get_attribute("aria-pressed") == "false"
    found(page, 'button[data-status=""]')[0].click()
    assert len(labels(page)) == len(contents(page)) == 5
    button.click()
    button.click()  # and back
    assert len(labels(page)) == 5


def test_the_contents_stand_beside_the_results_on_wide_screens(page):
    resized(page, 1400)
    box = "return document.querySelector(arguments[0]).getBoundingClientRect()"
    contents, main = (page.execute_script(box, each) for each in (".contents", "main"))
    assert contents["right"] < main["left"]
    resized(page, 360)
    contents, main = (page.execute_script(box, each) for each in (".contents", "main"))
    assert contents["bottom"] <= main["top"]


def test_a_link_opens_its_operation(page, address):
    from selenium.webdriver.support.ui import WebDriverWait

    details = page.find_element("id", CUBE)
    assert details.get_attribute("open") is None
    page.find_element("css selector", f'#overview a[href="#{CUBE}"]').click()
    # The event of another hash comes when the browser has time for it
    WebDriverWait(page, 20).until(lambda _: details.get_attribute("open") is not None)
    page.get("about:blank")
    page.get(f"{address}#{CUBE}")
    details = page.find_element("id", CUBE)
    assert details.get_attribute("open") is not None
    place = "return arguments[0].getBoundingClientRect().top"
    WebDriverWait(page, 20).until(
        lambda _: 0 <= page.execute_script(place, details) < 60
    )


def opened(page: Any) -> None:
    page.execute_script(
        "for (const d of document.querySelectorAll('details')) d.open = true"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_all_text_has_contrast(page, scheme, width):
    preferring(page, prefers_color_scheme=scheme)
    resized(page, width)
    opened(page)
    seen = page.execute_script(CONTRAST)
    assert len(seen) > 200
    assert [text for text in seen if text[0] < TEXT] == []


def test_dark_mode_is_dark(page):
    background = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(background) == "rgb(255, 255, 255)"
    preferring(page, prefers_color_scheme="dark")
    red = int(page.execute_script(background)[4:].partition(",")[0])
    assert red < 40


@pytest.mark.parametrize("width", [320, 360, 768, 1200, 1400])
def test_nothing_is_wider_than_the_screen(page, width):
    resized(page, width)
    opened(page)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_on_a_phone_text_in_plots_is_legible(page):
    resized(page, 360)
    opened(page)
    sizes = page.execute_script(
        "return [...document.querySelectorAll('svg text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    )
    assert min(sizes) >= 9


def test_without_motion(page):
    behavior = "return getComputedStyle(document.documentElement).scrollBehavior"
    assert page.execute_script(behavior) == "auto"
    preferring(page, prefers_reduced_motion="no-preference")
    assert page.execute_script(behavior) == "smooth"


def test_without_scripts_all_of_it_is_there(page, address):
    off = "Emulation.setScriptExecutionDisabled"
    page.execute_cdp_cmd(off, {"value": True})
    try:
        page.get(address)
        assert len(labels(page)) == 5
        assert not any(each.is_displayed() for each in found(page, ".tools"))
        assert found(page, "#overview thead button") == []
        details = page.find_element("id", CUBE)
        details.find_element("tag name", "summary").click()
        assert "Gradient against differences" in details.text
        assert EVIL in page.find_element("tag name", "body").text
    finally:
        page.execute_cdp_cmd(off, {"value": False})


def test_what_is_folded_is_printed(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        inside = page.find_element("css selector", f"#{CUBE} h4".replace(".", "\\."))
        assert page.execute_script("return arguments[0].checkVisibility()", inside)
        assert not any(each.is_displayed() for each in found(page, ".tools"))
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
