"""Workflow commands of GitHub Actions, which become annotations of lines."""

from __future__ import annotations

from ..entries import Entry, Finished, Level


def github(run: Finished) -> str:
    """A command for each operation with something to say, and one for the total.

    GitHub shows ten of each kind for a step, so that an operation has one alone.
    """
    entries = [entry for entry in run.entries if entry.level is not Level.FINE]
    lines = [_command(entry) for entry in entries]
    lines.append(f"::notice title=gradsmith {run.tool}::{escaped(run.total)}")
    return "".join(f"{line}\n" for line in lines)


def _command(entry: Entry) -> str:
    remark = entry.remarks[0]
    spot = remark.spot or entry.spot
    where = f" ({entry.framework})" if entry.framework else ""
    properties = {"title": f"{entry.label}: {entry.verdict}{where}"}
    if spot is not None:
        place = {"file": spot.path, "line": spot.line, "col": spot.column}
        properties = {**place, **properties}
    said = ",".join(f"{key}={of_property(v)}" for key, v in properties.items())
    words = "\n".join(each.text for each in entry.remarks)
    return f"::{entry.level} {said}::{escaped(words)}"


def escaped(words: str) -> str:
    r"""Words as the message of a command.

    >>> escaped("90 %\nor more")
    '90 %25%0Aor more'
    """
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def of_property(value: object) -> str:
    """A value as a property of a command.

    >>> of_property("ops.py:cube, twice")
    'ops.py%3Acube%2C twice'
    """
    return escaped(str(value)).replace(":", "%3A").replace(",", "%2C")
