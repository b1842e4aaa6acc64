"""A summary in Markdown, as GitHub shows it beside a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ..entries import Entry, Finished, Level


def markdown(run: Finished) -> str:
    """The total, a row for each operation, and the reports of those not fine."""
    lines = [f"### gradsmith {run.tool}: {_escaped(run.total)}", ""]
    if run.entries:
        lines += ["| verdict | operation | framework | | time |"]
        lines += ["|---|---|---|---|---:|", *map(_row, run.entries), ""]
    for entry in run.entries:
        if entry.level is not Level.FINE:
            lines += _details(entry)
    return "\n".join(lines).rstrip() + "\n\n"


def _row(entry: Entry) -> str:
    where = f" (line {entry.spot.line})" if entry.spot else ""
    cells = (
        f"{entry.symbol} {entry.verdict}",
        f"`{entry.label}`{where}",
        entry.framework,
        _escaped(entry.remark),
        f"{entry.seconds:.1f} s",
    )
    return f"| {' | '.join(cells)} |"


def _details(entry: Entry) -> Iterator[str]:
    yield f"<details><summary>{entry.symbol} {escape(entry.label)}</summary>"
    longest = max(map(len, re.findall("`{3,}", entry.text)), default=2)
    fence = "`" * (longest + 1)
    yield from ("", f"{fence}text", entry.text, fence, "", "</details>", "")


def _escaped(words: str) -> str:
    r"""Words that mean nothing to Markdown or HTML.

    >>> _escaped("|x| < 1")
    '\\|x\\| &lt; 1'
    """
    words = " ".join(words.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|*_`\[\]])", r"\\\1", words)
