"""A result as HTML, for notebooks and for the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from itertools import groupby
from keyword import kwlist
from typing import Any

from .plots import draw
from .result import (
    BAD,
    GOOD,
    LIMITED,
    OPEN,
    Block,
    Code,
    Document,
    Fact,
    Figure,
    Item,
    Line,
    More,
    Table,
)
from .styles import notebook_style

# Of items, by their marks
_TONES = {"✓": GOOD, "limit:": LIMITED, "✗": BAD, "?": OPEN, "~": OPEN, "!": BAD}


def notebook(document: Document) -> str:
    """The headline in the colour of the verdict, and the blocks, with their style."""
    tone = escape(document.tone)
    words = f'<p class="headline {tone}">{coded(document.headline)}</p>'
    return (
        f'<div class="gradsmith {tone}"><style>{notebook_style()}</style>'
        f"{words if document.headline else ''}{html(document.blocks)}</div>"
    )


def html(blocks: Iterable[Block]) -> str:
    """Blocks, those of one kind together."""
    groups = groupby(blocks, _kind)
    return "".join(_RENDERERS[kind](*group) for (kind, _), group in groups)


def _kind(block: Block) -> tuple[type[Block], bool]:
    return type(block), isinstance(block, Item) and bool(block.lines)


def _items(*items: Item) -> str:
    if items[0].lines:
        return "".join(map(_finding, items))
    lines = [
        f'<li class="{_TONES.get(item.mark, "")}"><span class="mark">'
        f"{escape(item.mark)}</span> {coded(item.text)}</li>"
        for item in items
    ]
    return f'<ul class="items">{"".join(lines)}</ul>'


def _finding(item: Item) -> str:
    """An item with its lines: what it is about, how, and facts about it."""
    lines = "".join(
        f'<p class="message">{coded(line)}</p>' for line in item.lines
        if isinstance(line, str)
    )  # fmt: skip
    facts = [line for line in item.lines if isinstance(line, Fact)]
    return (
        f'<article class="finding {_TONES.get(item.mark, "")}"><h4>'
        f"{escape(item.mark)} {coded(item.text)}</h4>{lines}{_facts(*facts)}</article>"
    )


def _facts(*facts: Fact) -> str:
    rows = [
        f'<div class="{escape(fact.label.replace(" ", "-"))}"><dt>{escape(fact.label)}'
        f"</dt><dd>{coded(fact.text)}</dd></div>"
        for fact in facts
    ]
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def _code(*lines: Code) -> str:
    return "".join(
        (f'<p class="place">{coded(line.place)}</p>' if line.place else "")
        + (f'<pre tabindex="0">{highlighted(line.source)}</pre>' if line.source else "")
        for line in lines
    )


def _lines(*lines: Line) -> str:
    """Sentences; what has lines of its own stays as its author laid it out."""
    return "".join(
        f'<pre tabindex="0">{escape(line.text)}</pre>'
        if "\n" in line.text
        else f'<p class="message">{coded(line.text)}</p>'
        for line in lines
    )


def _tables(*tables: Table) -> str:
    return "".join(map(_table, tables))


def _table(table: Table) -> str:
    head = "".join(_cell(table, i, cell, "col") for i, cell in enumerate(table.header))
    tones = table.tones or ("",) * len(table.rows)
    rows = [
        f'<tr class="{tone}">'
        + "".join(
            _cell(table, i, cell, "" if i else "row") for i, cell in enumerate(row)
        )
        + "</tr>"
        for row, tone in zip(table.rows, tones, strict=True)
    ]
    caption = escape(table.caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table>'
        + (f"<caption>{caption}</caption>" if caption else "")
        + f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(table: Table, i: int, text: str, scope: str) -> str:
    kinds = ["number"] if i in table.right else []
    if not scope and not table.tones:  # each cell for itself
        kinds += filter(None, [_TONES.get(text.partition(" ")[0])])
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    if scope:
        return f'<th scope="{scope}"{kind}>{escape(text)}</th>'
    return f"<td{kind}>{coded(text)}</td>"


def _figures(*figures: Figure) -> str:
    shown = [
        f'<figure class="{figure.plot}" tabindex="0">{draw(figure)}'
        f"<figcaption>{coded(figure.caption)}</figcaption>"
        "</figure>"
        for figure in figures
    ]
    return f'<div class="plots">{"".join(shown)}</div>'


def _more(*folded: More) -> str:
    return "".join(
        f'<details class="more"><summary>{coded(each.title)}</summary>'
        f"{html(each.blocks)}</details>"
        for each in folded
    )


_RENDERERS: dict[type[Block], Callable[..., str]] = {
    Item: _items, Fact: _facts, Code: _code, Table: _tables, Line: _lines,
    Figure: _figures, More: _more,
}  # fmt: skip


_TOKENS = re.compile(
    r"""(?P<c>\#[^\n]*)|(?P<s>(?<!\w)[rbfu]{0,2}(?:\"\"\".*?\"\"\"|"[^"\n]*"|'[^'\n]*'))"""
    rf"|\b(?P<k>{'|'.join(kwlist)})\b|(?P<n>\b\d[\d_.]*(?:e[+-]?\d+)?)",
    re.DOTALL,
)


def highlighted(source: str) -> str:
    """Python code, escaped, with colours; it may be cut anywhere.

    >>> highlighted("if x < 1:")
    '<span class="k">if</span> x &lt; <span class="n">1</span>:'
    """
    parts, end = [], 0
    for found in _TOKENS.finditer(source):
        parts.append(escape(source[end : found.start()]))
        parts.append(f'<span class="{found.lastgroup}">{escape(found[0])}</span>')
        end = found.end()
    return "".join([*parts, escape(source[end:])])


def coded(text: Any) -> str:
    """Escaped, with what stands between backticks as code.

    >>> coded("`a < b` holds")
    '<code>a &lt; b</code> holds'
    """
    parts = escape(str(text)).split("`")
    if len(parts) % 2 == 0:  # one of them has no other
        return escape(str(text))
    return "".join(
        f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)
    )
