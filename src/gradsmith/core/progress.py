"""Long work: without noise of frameworks, and with a line on how far it is."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds of silence before progress is shown


@contextmanager
def without_warnings() -> Iterator[None]:
    """Without warnings and log messages, which are expected here."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


class Progress:
    """Tells a terminal what is being run, once it takes more than two seconds."""

    def __init__(self, tool: str, name: str, total: int | None = None) -> None:
        self.what, self.done = f"{tool} {name}", 0
        self.of = f" of {total}" if total else ""
        self.start = time.monotonic()
        self.shown = 0

    def __call__(self, doing: str) -> None:
        self.done += 1
        if time.monotonic() - self.start < PATIENCE or not sys.stderr.isatty():
            return
        self._show(f"{self.what}: {self.done}{self.of}, {doing}")

    def close(self) -> None:
        """Take the line away again."""
        if self.shown:
            self._show("")
            sys.stderr.write("\r")

    def _show(self, line: str) -> None:
        sys.stderr.write(f"\r{line.ljust(self.shown)}")
        sys.stderr.flush()
        self.shown = len(line)
