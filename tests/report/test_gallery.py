"""The gallery: its code runs, and its pictures show what the code gives now."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.report import gallery
from tests.report.browser import chromium, preferring, resized, why_not

mpl.use("agg")
ROOT = Path(__file__).parents[2]
NAMES = re.findall(
    r"\(pictures/(.*?)\.svg\)", (ROOT / gallery.PAGE).read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield {picture.name: picture for picture in gallery.pictures()}
    mpl.pyplot.close("all")


def file(name: str) -> Path:
    return ROOT / gallery.FOLDER / f"{name}.svg"


def test_every_picture_has_a_file_and_a_description(shown):
    assert [*shown] == NAMES
    assert len(NAMES) == len({*NAMES}) >= 12
    assert sorted(p.stem for p in file("").parent.iterdir()) == sorted(NAMES)
    assert all(len(picture.words) > 20 for picture in shown.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_what_the_code_gives(shown, name):
    """If not: make gallery."""
    drawn = file(name).read_text(encoding="utf-8")
    assert gallery.content(drawn) == gallery.content(gallery.svg(shown[name]))
    assert len(gallery.content(drawn)) > 8
    assert "<script" not in drawn
    assert not re.search(r'(href|src)="(?!#)', drawn)


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_all_of_them(tmp_path_factory, scheme):
    images = "".join(f'<img src="{file(n).as_uri()}" width="340">' for n in NAMES)
    page = tmp_path_factory.mktemp("page") / "gallery.html"
    page.write_text(f"<!doctype html>{images}", encoding="utf-8")
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        preferring(driver, prefers_color_scheme=scheme)
        resized(driver, 360)
        driver.get(page.as_uri())
        sizes = "return [...document.images].map((i) => [i.naturalWidth, i.height])"
        found = driver.execute_script(sizes)
    assert len(found) == len(NAMES)
    assert all(width > 100 and height > 50 for width, height in found)
