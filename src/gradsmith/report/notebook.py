"""A result as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from .result import BAD, GOOD, OPEN, Block, Code, Document, Fact, Figure, Item, Line
from .result import Table as Cells

_COLOURS = {GOOD: "#1a7f37", BAD: "#cf222e", OPEN: "#9a6700"}


def html(document: Document) -> str:
    """A heading in the colour of the verdict, and the blocks."""
    colour = _COLOURS.get(document.tone)
    style = f" style='color:{colour}'" if colour else ""
    parts = [_blocks([*group]) for _, group in groupby(document.blocks, type)]
    return f"<div><b{style}>{escape(document.headline)}</b>{''.join(parts)}</div>"


def _blocks(blocks: Sequence[Block]) -> str:
    """Blocks of one kind, one after the other."""
    if isinstance(blocks[0], Item):
        return f"<ul>{''.join(map(_item, blocks))}</ul>"
    if isinstance(blocks[0], Fact):
        return f"<table>{''.join(map(_fact, blocks))}</table>"
    return "".join(map(_one, blocks))


def _item(item: Block) -> str:
    assert isinstance(item, Item)
    lines = "".join(f"<br>{escape(line)}" for line in item.lines)
    return f"<li>{escape(item.mark)} {escape(item.text)}{lines}</li>"


def _fact(fact: Block) -> str:
    assert isinstance(fact, Fact)
    return (
        f"<tr><th scope='row'>{escape(fact.label)}</th>"
        f"<td style='text-align:left'>{escape(fact.text)}</td></tr>"
    )


def _one(block: Block) -> str:
    if isinstance(block, Code):
        source = f"<pre>{escape(block.source)}</pre>" if block.source else ""
        return f"<div><code>{escape(block.place)}</code></div>{source}"
    if isinstance(block, Cells):
        return table(block.header, block.rows)
    if isinstance(block, Figure):
        return block.svg
    return f"<div>{escape(block.text)}</div>" if isinstance(block, Line) else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells as a table."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"
