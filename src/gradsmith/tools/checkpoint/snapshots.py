"""Stored states, in memory or on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np

from ...core.tape import Traced
from ...core.tensor import readonly, wrap


class Snapshots:
    """States by the number of the step that they are before.

    With each go the states of random generators, if anything is drawn. Arrays in memory
    are not copied: nobody changes them.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.stored: dict[int, Any] = {}
        self._made: str | None = None

    def store(self, n: int, leaves: list[Any], random: Any, place: str) -> None:
        held = leaves if place == "ram" else self._write(n, leaves)
        self.stored[n] = (held, random)

    def load(self, n: int, *, last: bool) -> tuple[list[Any], Any]:
        held, random = self.stored.pop(n) if last else self.stored[n]
        leaves = held if isinstance(held, list) else held.read(remove=last)
        return [stripped(x) for x in leaves], random

    def _write(self, n: int, leaves: list[Any]) -> _File:
        if self._made is None:
            self._made = tempfile.mkdtemp(prefix="gradsmith-", dir=self.folder)
            weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        return _File(os.path.join(self._made, f"{n}.npz"), leaves)


class _File:
    """A state on disk."""

    def __init__(self, path: str, leaves: list[Any]) -> None:
        self.path = path
        self.traced = [isinstance(x, Traced) for x in leaves]
        arrays = [x.value if isinstance(x, Traced) else x for x in leaves]
        try:
            with open(path, "wb") as file:
                for x in arrays:
                    np.lib.format.write_array(file, np.asarray(x), allow_pickle=False)
        except OSError as error:
            error.add_note(
                "while checkpoint_scan stored a state on disk: free some space, choose "
                "another folder=..., or fewer disk=... snapshots"
            )
            raise

    def read(self, *, remove: bool) -> list[Any]:
        with open(self.path, "rb") as file:
            arrays = [np.lib.format.read_array(file) for _ in self.traced]
        if remove:
            os.remove(self.path)
        pairs = zip(arrays, self.traced, strict=True)
        return [wrap(x) if traced else x for x, traced in pairs]


def stripped(x: Any) -> Any:
    """A value as a step is given it: followed by nobody, and not to be changed."""
    return wrap(x.value) if isinstance(x, Traced) else readonly(x)
