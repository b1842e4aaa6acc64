"""A badge for a README: what was found, in an SVG of its own."""

from __future__ import annotations

from html import escape
from typing import Any
from unicodedata import east_asian_width

from ..entries import Finished, Level

# White letters are legible on all of them
GREEN, YELLOW, RED, GREY = "#2a7d2e", "#8a6500", "#c22b26", "#5f6368"
_COLOURS = {Level.FINE: GREEN, Level.WARNING: YELLOW, Level.ERROR: RED, None: GREY}
_WIDTHS = {**dict.fromkeys("ijl.,:;!'|", 3.4), **dict.fromkeys(" frt()I", 4.4)}
_WIDTHS |= dict.fromkeys("mwMW", 10.0)


def badge(run: Finished) -> str:
    return of_summary(run.summary)


def of_summary(summary: dict[str, Any]) -> str:
    """A badge of what a JSON document says of its results."""
    level = None if summary["level"] is None else Level(summary["level"])
    words = words_of(summary["counts"])
    return drawn(str(summary["subject"]), words, _COLOURS[level])


def words_of(counts: dict[str, int]) -> str:
    """How many of each verdict.

    >>> words_of({"right": 12, "wrong": 1})
    '12 right, 1 wrong'
    >>> words_of({})
    'none'
    """
    short = {"right, with limits": "with limits", "could not tell": "unclear"}
    said = [f"{n} {short.get(what, what)}" for what, n in counts.items() if n]
    return ", ".join(said) or "none"


def drawn(label: str, words: str, colour: str) -> str:
    """Two fields of text side by side; the widths fit any common sans-serif font."""
    left, right = _width(label) + 12, _width(words) + 12
    total, title = left + right, escape(f"{label}: {words}", quote=True)
    texts = "".join(
        f'<text x="{x}" y="14" textLength="{n - 12}">{escape(said)}</text>'
        for x, n, said in ((left / 2, left, label), (left + right / 2, right, words))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" '
        f'viewBox="0 0 {total} 20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{total}" height="20" rx="3" fill="{colour}"/>'
        f'<path d="M3 0H{left}V20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>'
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        f'font-family="Verdana,DejaVu Sans,Geneva,sans-serif">{texts}</g></svg>\n'
    )


def _width(words: str) -> int:
    """About how many pixels the words take at 11 px in Verdana."""
    return round(sum(map(_letter, words)))


def _letter(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 11
    return _WIDTHS.get(letter, 6.7)
