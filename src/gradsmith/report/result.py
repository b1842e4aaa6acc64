"""The one model of a result: a verdict, what there is to say, and the data behind it.

Each tool's result derives from `Result` and says, by `document()`, what it has to say:
a headline with its tone, then blocks. The renderers (`terminal`, `html`, `page`) know
the blocks and none of the tools.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

# Tones; "" is none of them
GOOD, LIMITED, BAD, OPEN, FAILED = "good", "limited", "bad", "open", "failed"


@dataclass(frozen=True)
class Fact:
    """Something to know, with its label."""

    label: str
    text: str


@dataclass(frozen=True)
class Item:
    """A line with a mark before it ("✗", "-", or a word), and lines that belong to it.

    Lines that start with spaces are laid out by their author and stay as they are.
    """

    mark: str
    text: str
    lines: tuple[str | Fact, ...] = ()


@dataclass(frozen=True)
class Code:
    """Code of the user's, or for them, and where it is or what it is for."""

    place: str
    source: str = ""


@dataclass(frozen=True)
class Table:
    """Cells in columns; `right` are those of numbers. Lines are cut to `width`."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    width: int | None = None
    titled: bool = True  # whether the header is shown as text
    caption: str = ""  # where it stands among other things
    tones: tuple[str, ...] = ()  # of each row


@dataclass(frozen=True)
class Line:
    """A sentence; at the margin, or indented like the other blocks."""

    text: str
    indent: int = 2


@dataclass(frozen=True)
class Figure:
    """A picture for renderers that show pictures: a name in `plots`, and its data."""

    plot: str
    data: dict[str, Any]
    caption: str = ""


@dataclass(frozen=True)
class More:
    """What is shown on demand, and left out where nothing can be folded."""

    title: str
    blocks: tuple[Block, ...]


Block = Item | Fact | Code | Table | Line | Figure | More


@dataclass(frozen=True)
class Cell:
    """What stands in a table of several results, and by what it is sorted there."""

    column: str
    text: str
    by: float | str = ""
    tone: str = ""
    meaning: str = ""  # of a column of figures


@dataclass(frozen=True)
class Document:
    """What a result says: by itself, and in a line among others."""

    headline: str
    blocks: tuple[Block, ...] = ()
    tone: str = ""
    title: str = ""  # what it is a result of: "Accuracy"
    subject: str = ""  # the operation
    framework: str = ""
    verdict: str = ""  # in a word
    symbol: str = ""  # of the verdict
    remark: str = ""  # the most important thing
    limit: str = ""  # beside which a gradient may be right, but not without a word
    repair: str = ""
    cells: tuple[Cell, ...] = ()

    @property
    def has_figures(self) -> bool:
        return any(isinstance(block, Figure) for block in self.blocks)

    def as_dict(self) -> dict[str, Any]:
        """The document for JSON; `from_dict` is the way back."""
        return _packed(self)

    @staticmethod
    def from_dict(packed: dict[str, Any]) -> Document:
        return _unpacked(packed)


_PARTS = {
    each.__name__: each
    for each in (Item, Fact, Code, Table, Line, Figure, More, Cell, Document)
}


def _packed(tree: Any) -> Any:
    if not is_dataclass(tree):
        return [*map(_packed, tree)] if isinstance(tree, tuple) else plain(tree)
    named = {each.name: _packed(getattr(tree, each.name)) for each in fields(tree)}
    return {"part": type(tree).__name__, **named}


def _unpacked(tree: Any) -> Any:
    if isinstance(tree, list):
        return tuple(map(_unpacked, tree))
    if not isinstance(tree, dict) or "part" not in tree:
        return tree
    named = {name: _unpacked(value) for name, value in tree.items() if name != "part"}
    return _PARTS[tree["part"]](**named)


class Result:
    """What every result can do: `ok`, as data, as text, in a notebook."""

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        raise NotImplementedError

    def document(self) -> Document:
        """What the result says, for every renderer."""
        raise NotImplementedError

    def documents(self) -> tuple[Document, ...]:
        """All that a page says: the result itself, then what stands beside it."""
        return (self.document(),)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers; NaN and inf as strings."""
        fields: Any = self
        return {"ok": self.ok, **plain(asdict(fields))}

    def to_json(self) -> str:
        """`as_dict` as a JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def show(self) -> None:
        """Print the result; with colours, if rich is installed."""
        from .terminal import show

        show(self.document())

    def __str__(self) -> str:
        from .terminal import text

        return text(self.document())

    def _repr_html_(self) -> str:
        from .html import notebook

        return notebook(self.document())


def plain(tree: Any) -> Any:
    """Only what JSON knows: it has no infinities, and no numbers of NumPy's.

    >>> plain({"x": (1.5, float("inf")), 2: None})
    {'x': [1.5, 'inf'], '2': None}
    """
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [plain(value) for value in tree]
    if isinstance(tree, float):
        return float(tree) if math.isfinite(tree) else str(float(tree))
    if isinstance(tree, str):
        return str(tree)
    return tree if tree is None or type(tree) in (bool, int) else str(tree)
