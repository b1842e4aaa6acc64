"""The pictures of docs/gallery.md, from the code on that page.

python -m tests.report.gallery writes them (make gallery).
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradsmith import kernels
from gradsmith.report.styles import DARK, SCOPE
from tests.report.browser import chromium, resized

# As users of the page see it: the names of its lines are in reports
PAGE = Path("docs/gallery.md")
FOLDER = Path("docs/pictures")
WIDTH = 640  # legible on the site, which is little wider, and on phones
_PARTS = re.compile(
    r"^```python\n(.*?)^```|^!\[(.*?)\]\(pictures/(.*?)\.svg\)", re.M | re.S
)
_OPEN, _CLOSE = '<div xmlns="http://www.w3.org/1999/xhtml">', "</div>"


@dataclass(frozen=True)
class Picture:
    """A picture on the page: its file's name, what it shows in words, and the value."""

    name: str
    words: str
    value: Any

    @property
    def is_page(self) -> bool:
        return not isinstance(self.value, Figure)


def pictures() -> Iterator[Picture]:
    """Run the code of the page; each picture is of the last expression before it.

    Without kernels, whose last digits depend on the processor.
    """
    text, names, value = PAGE.read_text(encoding="utf-8"), {"__name__": "gallery"}, None
    for part in _PARTS.finditer(text):
        if part[1]:
            line = text.count("\n", 0, part.start(1))
            with kernels(False):
                value = _run("\n" * line + part[1], names)
        else:
            yield Picture(
                part[3], part[2], value.figure if isinstance(value, Axes) else value
            )


def _run(code: str, names: dict[str, Any]) -> Any:
    """Run a block; the value of its last line, if that has one."""
    *body, last = ast.parse(code).body
    run: Any = {"filename": str(PAGE)}
    if not isinstance(last, ast.Expr):
        exec(compile(code, mode="exec", **run), names)
        return None
    exec(compile(ast.Module(body, []), mode="exec", **run), names)
    return eval(compile(ast.Expression(last.value), mode="eval", **run), names)


def svg(picture: Picture, height: int = 0) -> str:
    """The text of the file; a result is a page in it, as high as the browser says."""
    value = picture.value
    if isinstance(value, Figure):
        made = StringIO()
        plain = {"svg.fonttype": "none", "svg.hashsalt": picture.name}
        with mpl.rc_context(plain):
            value.savefig(made, format="svg", metadata={"Date": None})
        return made.getvalue()
    dark = (
        f"<style>@media (prefers-color-scheme: dark) {{ {SCOPE} {{ {DARK} }} }}</style>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}"><foreignObject width="100%" height="100%">'
        f"{_OPEN}{value._repr_html_()}{dark}{_CLOSE}</foreignObject></svg>"
    )


def content(text: str) -> list[str]:
    """The words of a picture, without the versions of what made it."""
    tree = ElementTree.fromstring(text)
    for parent in tree.iter():
        for child in [*parent]:
            if child.tag.endswith(("}style", "}metadata")):
                parent.remove(child)
    words = [" ".join(words.split()) for words in tree.itertext()]
    return [re.sub(r"(?<=NumPy )[\d.]+", "VERSION", each) for each in words if each]


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        resized(driver, WIDTH)
        for picture in pictures():
            height = 0
            if picture.is_page:
                page = Path(profile, "page.html")
                html = f'<body style="margin:0">{picture.value._repr_html_()}'
                page.write_text(
                    f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8"
                )
                driver.get(page.as_uri())
                script = "return document.body.getBoundingClientRect().height"
                height = round(driver.execute_script(script)) + 10
            file = FOLDER / f"{picture.name}.svg"
            file.write_text(svg(picture, height), encoding="utf-8")
            sys.stdout.write(f"{file}: {file.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    mpl.use("agg")
    main()
