"""Where in the user's code something happened: not in ours, nor in a framework's."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType

# Whose code the user did not write and can't repair.
_OTHERS = (
    "gradsmith", "numpy", "scipy", "autograd", "torch", "functorch", "jax", "jaxlib",
    "tensorflow", "keras", "tf_keras",
)  # fmt: skip
_TYPED_IN = ("<stdin>", "<ipython", "<doctest")


@dataclass(frozen=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def place_at(file: str, line: int, function: str = "") -> Place:
    """The place of a line, with its text as far as it can be read."""
    source = linecache.getline(file, line).strip()
    return Place(file, line, function.rpartition(".")[2], source)


def place_here(*, within: Iterable[CodeType] = ()) -> Place | None:
    """The innermost line of the user's code that is running.

    With `within`, only as far as the call of one of these functions of ours: what
    called them is not looked at.
    """
    ends = set(within)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in ends:
        file = frame.f_code.co_filename
        if is_users(file):
            return place_at(file, frame.f_lineno, frame.f_code.co_qualname)
        frame = frame.f_back
    return None


_LINE = re.compile(r'File "(.+)", line (\d+), in (.+)')


def place_in(traceback: Iterable[str]) -> Place | None:
    """The innermost line of the user's code in a formatted traceback."""
    for entry in reversed(list(traceback)):
        found = _LINE.search(entry)
        if found and is_users(found[1]):
            return place_at(found[1], int(found[2]), found[3].strip())
    return None


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is the user's: none of ours, a framework's or Python's own.

    >>> is_users(__file__), is_users(os.__file__), is_users("<stdin>")
    (False, False, True)
    """
    if file.startswith("<"):
        return file.startswith(_TYPED_IN)
    path = os.path.abspath(file)
    parts = path.split(os.sep)
    if parts[-1].startswith("__autograph_generated"):
        return False
    if "site-packages" in parts:
        inside = parts[len(parts) - parts[::-1].index("site-packages") :]
        return inside[0].removesuffix(".py") not in _OTHERS
    return not path.startswith((_OURS, *_PYTHONS))


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PYTHONS = tuple(
    os.path.abspath(sysconfig.get_path(name)) + os.sep
    for name in ("stdlib", "platstdlib")
)
