"""How results look: one palette and one set of rules, for the page and for notebooks.

In a notebook, all rules are about what is inside of our own element, so that they
change nothing else on the notebook's page; and it has a background of its own, so that
its colours are legible on any other.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

LIGHT = """
--paper: #ffffff; --panel: #f6f7f9; --ink: #1a1e24; --muted: #59636f; --rule: #dde1e6;
--edge: #8b949e; --link: #0a4fb4; --good: #14692f; --limited: #5c6100; --bad: #b3121d;
--open: #7a4e00; --failed: #6639b5; --good-tint: #e6f4ea; --limited-tint: #f3f5d4;
--bad-tint: #fdebec; --open-tint: #fbf1d9; --failed-tint: #f1ebfc; --a: #0a5fd0;
--b: #b4540a; --c: #14785a; --d: #8a3ab9; --a-tint: #e8f1fd; --d-tint: #f5ebfa;
"""
DARK = """
--paper: #0f1217; --panel: #171b22; --ink: #e4e8ee; --muted: #9ca6b3; --rule: #2a303a;
--edge: #6b7684; --link: #82b6ff; --good: #62c97f; --limited: #c3cc4a; --bad: #ff8a85;
--open: #e2b450; --failed: #c5a3ff; --good-tint: #12281a; --limited-tint: #23260d;
--bad-tint: #331517; --open-tint: #2c2310; --failed-tint: #241a38; --a: #6aa8ff;
--b: #f0985a; --c: #4fc7a0; --d: #cf95f2; --a-tint: #14233a; --d-tint: #2a1b36;
"""
FONTS = """
--sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
--mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
"""

# Twice, to outweigh what notebooks say of every table
SCOPE = ".gradsmith.gradsmith"
# How a dark page says so
DARK_PAGES = (
    '[data-jp-theme-light="false"]',  # JupyterLab
    ".vscode-dark",
    ".vscode-high-contrast",
    'html[theme="dark"]',  # Colab
    '[data-theme="dark"]',  # Sphinx
    '[data-md-color-scheme="slate"]',  # MkDocs Material
    '[data-bs-theme="dark"]',  # Quarto, and others with Bootstrap
)


def page_style() -> str:
    """For a page of its own, which follows the reader's system."""
    return (
        f":root {{ color-scheme: light dark; {LIGHT}{FONTS} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}\n"
        + _text("page/templates/page.css", "blocks.css", "plots/plots.css")
    )


@cache
def notebook_style() -> str:
    """For a result among others on a notebook's page."""
    rules = _text("notebook.css", "blocks.css", "plots/plots.css")
    # Of the page's own size of letters nothing is known
    rules = re.sub(r"([\d.]+)rem", lambda n: f"{16 * float(n[1]):g}px", rules)
    dark = ", ".join(f"{page} {SCOPE}" for page in DARK_PAGES)
    return (
        f"{SCOPE} {{ color-scheme: light; {LIGHT}{FONTS} }}\n"
        f"{dark} {{ color-scheme: dark; {DARK} }}\n{scoped(rules)}"
    )


@cache
def drawing_style() -> str:
    """For a file with a drawing, which follows the reader's system."""
    name = "svg.gradsmith.plot"
    rules = _text("plots/plots.css").replace("svg.plot", name)
    return (
        f"{name} {{ {LIGHT}{FONTS} background: var(--paper); }}\n"
        f"@media (prefers-color-scheme: dark) {{ {name} {{ {DARK} }} }}\n{rules}"
    )


def scoped(rules: str) -> str:
    """Rules about what is inside of the scope; `:scope` is that itself.

    >>> print(scoped("td, th { margin: 0; }"))
    .gradsmith.gradsmith td, .gradsmith.gradsmith th { margin: 0; }
    """

    def inside(found: re.Match[str]) -> str:
        names = [f"{SCOPE} {name.strip()}" for name in found[2].split(",")]
        return found[1] + ", ".join(names).replace(f"{SCOPE} :scope", SCOPE) + " {"

    bare = re.sub(r"/\*.*?\*/", "", rules, flags=re.DOTALL)
    return re.sub(r"(?m)^(\s*)([^@\s{}][^{}]*?)\s*\{", inside, bare)


def _text(*names: str) -> str:
    folder = files(__package__ or "")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
