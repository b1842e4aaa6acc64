"""A result as text, and in a terminal with colours."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap

from .result import (
    BAD,
    FAILED,
    GOOD,
    LIMITED,
    OPEN,
    Block,
    Code,
    Document,
    Fact,
    Figure,
    Item,
    More,
)
from .result import Table as Cells

WIDTH = 88
STYLES = {
    GOOD: "green", LIMITED: "dark_goldenrod", BAD: "bold red", OPEN: "yellow",
    FAILED: "magenta", "": "",
}  # fmt: skip


# What moves the cursor, colours, turns the direction of writing or is no text
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufffe\uffff]"
)


def clean(words: str) -> str:
    r"""Words of a user's code for a terminal: control characters as escapes.

    >>> print(clean("\x1b[31mred\tand\ngreen"))
    \x1b[31mred	and
    green
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], words)


def text(document: Document) -> str:
    """All of it; lines are at most 88 characters long, unless code is."""
    lines = [document.headline]
    for block in document.blocks:
        lines += lines_of(block)
    return clean("\n".join(lines))


def lines_of(block: Block) -> list[str]:
    """A block as lines of text."""
    if isinstance(block, Item):
        own = wrapped(f"{block.mark} {block.text}", 2)
        return own + [line for each in block.lines for line in wrapped(said(each), 4)]
    if isinstance(block, Fact):
        return wrapped(said(block), 2)
    if isinstance(block, Code):
        lines = [f"      {line}".rstrip() for line in block.source.splitlines()]
        return [f"  {block.place}", *lines]
    if isinstance(block, Cells):
        rows = [block.header, *block.rows] if block.titled else [*block.rows]
        return [cut("  " + line, block.width) for line in aligned(rows, block.right)]
    if isinstance(block, Figure | More):
        return []
    return wrapped(block.text, block.indent) if block.indent else [block.text]


def said(line: str | Fact) -> str:
    return line if isinstance(line, str) else f"{line.label}: {line.text}"


def wrapped(line: str, indent: int) -> list[str]:
    """A sentence in lines; what is laid out by its author stays as it is."""
    first, rest = " " * indent, " " * (indent + 2)
    if line.startswith("  ") or len(line) + indent <= WIDTH:
        return [first + line]
    return wrap(
        line, WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """Columns as wide as they need to be.

    >>> print(*aligned([("", "ULP"), ("value", "0.5")], right=[1]), sep="|")
           ULP|value  0.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in pairs)
        yield "  ".join(cells).rstrip()


def cut(line: str, width: int | None) -> str:
    """A line that ends with … where it is too long."""
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def show(document: Document) -> None:
    """Print a result; with colours, if rich is installed."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        sys.stdout.write(text(document) + "\n")
        return
    console = Console()
    headline = Text(clean(document.headline), style=STYLES[document.tone])
    console.print(headline, soft_wrap=True)
    for block in document.blocks:
        for line in map(clean, lines_of(block)):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
