"""What has been done of a long audit, in a file of JSON lines."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ...core import __version__
from .tally import Bins, Tally, Worst
from .task import Task


class Journal:
    """The tallies of pieces of work, by what they are of; nothing without a path.

    A line that another audit has written, or that was cut off, is not looked at.
    """

    def __init__(self, path: str | Path | None, key: str) -> None:
        self.path, self.key = None if path is None else Path(path), key
        self.done: dict[tuple[int, int], list[Tally]] = {}
        self._is_cut = False
        if self.path is not None and self.path.exists():
            self._read(self.path.read_text(encoding="utf-8"))

    def _read(self, text: str) -> None:
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and row.get("key") == self.key:
                first, last = row["codes"]
                self.done[first, last] = [tally_of(part) for part in row["tallies"]]

    def add(self, codes: tuple[int, int], tallies: list[Tally]) -> None:
        if self.path is None:
            return
        parts = [dict_of(tally) for tally in tallies]
        row = {"key": self.key, "codes": codes, "tallies": parts}
        with self.path.open("a", encoding="utf-8") as file:
            start, self._is_cut = "\n" if self._is_cut else "", False
            file.write(start + json.dumps(row) + "\n")


def dict_of(tally: Tally) -> dict[str, Any]:
    """A tally as JSON knows it; it writes infinities, too."""
    row = asdict(tally)
    if tally.bins is not None:
        row["bins"] = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in row["bins"].items()
        }
    return row


def tally_of(row: dict[str, Any]) -> Tally:
    bins = row["bins"]
    if bins is not None:
        arrays = {name: np.array(v) for name, v in bins.items() if name != "start"}
        bins = Bins(start=bins["start"], **arrays)
    worst = tuple(Worst(**one) for one in row["worst"])
    return Tally(**{**row, "kinds": tuple(row["kinds"]), "worst": worst, "bins": bins})


def key_of(task: Task, what: str) -> str:
    """Changes if the operation, the truth, or what is asked for does."""
    parts = (
        __version__, np.__version__, task.runner.framework, source_of(task.runner.call),
        repr(sorted(task.runner.keywords.items())), source_of(task.reference),
        task.format, task.ends, what,
    )  # fmt: skip
    return sha256(repr(parts).encode()).hexdigest()[:24]


def source_of(fn: Callable[..., Any]) -> str:
    """What a function is: its code if there is any, else its name."""
    inner = getattr(fn, "fn", None)  # of an operation of ours
    rules = [getattr(fn, name, None) for name in ("vjp_rule", "jvp_rule")]
    if callable(inner):
        return "".join(source_of(part) for part in (inner, *rules) if callable(part))
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        code = getattr(fn, "__code__", None)
        if code is not None:
            return repr((code.co_code.hex(), code.co_consts, code.co_names))
        return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__name__', repr(fn))}"
