"""From results to the text of the page.

Style and script stand in the page itself, and its policy allows those two and nothing
else: nothing is fetched, and no text of a user's can become a script.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...core import __version__
from ...core.errors import GradsmithError
from ..figures import plural
from ..html import coded, html
from ..result import Result
from ..styles import page_style
from .entries import Page, arranged

FOLDER = "templates"


def page_of(results: Iterable[Result], *, title: str = "", **facts: Any) -> Page:
    """The page of results: of checks, audits, survival, memory, NaN; or of a run."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Page(title or "Results", arranged(results), __version__, made, facts)


def write(path: str | Path, page: Page) -> Path:
    """Write a page to a file."""
    path = Path(path)
    path.write_text(render(page), encoding="utf-8")
    return path


def render(page: Page) -> str:
    """The page as HTML."""
    environment = _environment()
    style, script = page_style(), _text("page.js")
    return environment.get_template("page.html").render(
        page=page,
        data=[_without_curves(entry.data) for entry in page.entries],
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _without_curves(tree: Any) -> Any:
    """What is drawn already is left out of the data."""
    if isinstance(tree, Mapping):
        kept = {key: value for key, value in tree.items() if key != "curve"}
        return {key: _without_curves(value) for key, value in kept.items()}
    return [*map(_without_curves, tree)] if isinstance(tree, list) else tree


def _environment() -> Any:
    jinja2 = require_jinja2()
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe: Any = jinja2.utils.markupsafe.Markup  # what escapes its own words
    environment.filters["coded"] = lambda text: safe(coded(text))
    environment.filters["html"] = lambda blocks: safe(html(blocks))
    environment.globals["plural"] = plural
    return environment


def require_jinja2() -> Any:
    """Jinja2, which fills the page in."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise GradsmithError(
            'jinja2 is not installed, which the page needs: pip install "'
            'gradsmith[report]"'
        ) from error
    return jinja2


def _text(name: str) -> str:
    return files(__package__ or "").joinpath(FOLDER, name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
