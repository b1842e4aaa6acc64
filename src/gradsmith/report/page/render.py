"""From results to the text of the page.

Style and script stand in the page itself, and its policy allows those two and nothing
else: nothing is fetched, and no text of a user's can become a script.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from ...core import __version__
from ...core.errors import GradsmithError
from . import figures, phrases, plots, views
from .entries import Page, entries_of, entries_of_audits

FOLDER = "templates"


def page_of(
    results: Iterable[Mapping[str, Any]], *, title: str = "", **facts: Any
) -> Page:
    """The page of results of `gradsmith check` or `gradsmith report`, as dicts."""
    return _page(title or "Gradients", entries_of(results), facts)


def page_of_audits(audits: Iterable[Any], *, title: str = "", **facts: Any) -> Page:
    """The page of audits: `Audit`s, or dicts of them."""
    return _page(title or "Accuracy", entries_of_audits(audits), facts)


def _page(title: str, entries: Any, facts: dict[str, Any]) -> Page:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Page(title, entries, version=__version__, made=made, facts=facts)


def write(path: str | Path, page: Page) -> Path:
    """Write a page to a file."""
    path = Path(path)
    path.write_text(render(page), encoding="utf-8")
    return path


def render(page: Page) -> str:
    """The page as HTML."""
    environment = _environment()
    style, script = _text("page.css"), _text("page.js")
    return environment.get_template("page.html").render(
        page=page,
        problems=views.summary(page),
        data=[_for_json(asdict(entry)) for entry in page.entries],
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _for_json(tree: Any) -> Any:
    """Without curves, which are drawn already; NaN and inf are words in JSON."""
    if isinstance(tree, Mapping):
        shown = {key: value for key, value in tree.items() if key != "curve"}
        return {key: _for_json(value) for key, value in shown.items()}
    if isinstance(tree, list | tuple):
        return [_for_json(value) for value in tree]
    return str(tree) if isinstance(tree, float) and not isfinite(tree) else tree


def _environment() -> Any:
    jinja2 = require_jinja2()
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe: Any = jinja2.utils.markupsafe.Markup
    environment.filters["coded"] = lambda text: coded(text, safe)
    for plot in ("ulp_plot", "gradient_plot", "deviation_plot", "time_plot"):
        environment.globals[plot] = _marked(getattr(plots, plot), safe)
    environment.globals.update(views=views, phrases=phrases, words=figures)
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


def coded(text: Any, safe: Any) -> Any:
    """Escaped, with what stands between backticks as code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # one of them has no other
        return safe.escape(text)
    marked = [
        safe("<code>{}</code>").format(part) if i % 2 else safe.escape(part)
        for i, part in enumerate(parts)
    ]
    return safe("").join(marked)


def _marked(plot: Any, safe: Any) -> Any:
    """A plot escapes its own words."""
    return lambda *args: safe(plot(*args))


def _text(name: str) -> str:
    return files(__package__ or "").joinpath(FOLDER, name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
