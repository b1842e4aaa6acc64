"""What has been done of long work, in a file of JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Journal:
    """Rows by their keys, added to a file as they come; none is kept without a path.

    A key changes if what is done, or how, does. A line that was cut off is skipped.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[str, dict[str, Any]] = {}
        self._is_cut = False  # the last line is not complete
        if self.path is not None and self.path.exists():
            self._read(self.path.read_text(encoding="utf-8"))

    def _read(self, text: str) -> None:
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "key" in row:
                self.rows[row["key"]] = row

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, which has a "key"."""
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            start, self._is_cut = "\n" if self._is_cut else "", False
            file.write(start + json.dumps(row, ensure_ascii=False) + "\n")
