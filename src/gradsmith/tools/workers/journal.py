"""What has been done of long work, in a file of JSON lines."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import GradsmithError

LONGEST = 64 * 2**20  # bytes of a line
CHECKSUM = "crc32"

T = TypeVar("T")


class Journal:
    """Rows by their keys, added to a file as they come; none is kept without a path.

    A key changes if what is done, or how, does. A line that is damaged is skipped:
    `skipped` says which, and why. If a row can't be written, `trouble` says why, and
    the work goes on.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[str, dict[str, Any]] = {}
        self.skipped: list[str] = []
        self.trouble = ""
        self._lines: dict[str, int] = {}  # in which a row stands
        self._is_cut = False  # the last line is not complete
        if self.path is not None:
            try:
                self._open(self.path)
            except OSError as error:
                raise GradsmithError(
                    f"{path} can't be used as a journal: {error.strerror or error}"
                ) from None

    def _open(self, path: Path) -> None:
        """Read what is there; open for writing too, to see that it can be."""
        with path.open("ab"):
            pass
        if not path.is_file():
            return  # a device, from which nothing is to be read
        with path.open("rb") as file:
            number, line = 0, b""
            while more := file.readline(LONGEST):
                line, number = more, number + 1
                while not more.endswith(b"\n") and (more := file.readline(LONGEST)):
                    line = b""  # too long: the rest of it is dropped
                self._read(number, line.removeprefix(b"\xef\xbb\xbf").strip())
            self._is_cut = bool(line) and not line.endswith(b"\n")

    def _read(self, number: int, line: bytes) -> None:
        if not line:
            return
        try:
            row = json.loads(line)
            key, crc = row["key"], row.pop(CHECKSUM)
            is_whole = isinstance(key, str) and crc == checksum(row)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            is_whole = False
        if is_whole:
            self.rows[key], self._lines[key] = row, number
        else:
            self._skip(number)

    def _skip(self, number: int) -> None:
        self.skipped.append(f"{self.path}, line {number}: it is damaged")

    def get(self, key: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """What a row means; None if there is none, or it means nothing."""
        row = self.rows.get(key)
        if row is None:
            return None
        try:
            return parse(row)
        except (ValueError, TypeError, LookupError, AttributeError):
            del self.rows[key]
            self._skip(self._lines[key])
            return None

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, which has a "key"."""
        if self.path is None:
            return
        line = json.dumps({**row, CHECKSUM: checksum(row)}) + "\n"
        try:
            with self.path.open("ab", buffering=0) as file:
                start, self._is_cut = b"\n" if self._is_cut else b"", True
                data = start + line.encode()
                self._is_cut = file.write(data) < len(data)
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror or error}"


def checksum(row: dict[str, Any]) -> int:
    """Of a row as it is read back, in whichever order its keys stand."""
    return zlib.crc32(json.dumps(row, sort_keys=True).encode())
