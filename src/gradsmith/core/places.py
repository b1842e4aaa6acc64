"""Where in the user's code something happened: not in ours, nor in a framework's."""

from __future__ import annotations

import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType, FrameType

from .arrays import generated_files, packages

# Whose code the user did not write and can't repair, beside that of frameworks
_OTHERS = ("gradsmith", "scipy", "autograd")
_INSTALLED = ("site-packages", "dist-packages")  # the latter on Debian
_COMPILED = os.path.join("gradsmith", "")  # how compiled modules call their files
_TYPED_IN = ("<stdin>", "<ipython", "<doctest")


@dataclass(frozen=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""
    source: str = ""

    def __str__(self) -> str:
        return line_name(self.file, self.line)


def line_name(file: str, line: int, path: Callable[[str], str] = str) -> str:
    """A line as the user knows it: in a notebook by its cell, else by its file.

    `path` shortens the name of the file.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    cell = None if shell is None else shell.compile.format_code_name(file)
    return f"{' '.join(cell)}, line {line}" if cell else f"{path(file)}:{line}"


def place_at(file: str, line: int, function: str = "") -> Place:
    """The place of a line, with its text as far as it can be read."""
    source = linecache.getline(file, line).strip()
    return Place(file, line, function.rpartition(".")[2], source)


def place_here(*, within: Iterable[CodeType] = ()) -> Place | None:
    """The innermost line of the user's code that is running; `within` as below."""
    frame = user_frame(within=within)
    if frame is None:
        return None
    code = frame.f_code
    return place_at(code.co_filename, frame.f_lineno, code.co_qualname)


def user_frame(*, within: Iterable[CodeType] = ()) -> FrameType | None:
    """The innermost frame of the user's code.

    With `within`, only inside the call of one of these functions of ours: what called
    them does not count.
    """
    ends = set(within)
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code not in ends:
        file = frame.f_code.co_filename
        if is_users(file) or (file == "<string>" and _is_command(frame)):
            return frame
        frame = frame.f_back
    return None


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many calls of ours are between."""
    frame = user_frame()
    if frame is None:  # a thread of ours, or nothing but libraries
        warnings.warn(message, category, stacklevel=3)
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_command(frame: FrameType) -> bool:
    """Whether text without a file is that of `python -c`; other code is not."""
    return frame.f_globals.get("__name__") == "__main__"


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
    if file.startswith(_COMPILED):
        return False
    path = os.path.abspath(file)
    if os.path.basename(path).startswith(generated_files()):
        return False
    installed = package_of(path)
    if installed:
        return installed not in _OTHERS and installed not in packages()
    return not path.startswith(_own_folders())


def package_of(file: str) -> str:
    """The installed package that a file belongs to, if it does.

    >>> package_of("/usr/lib/python3/dist-packages/scipy/special/__init__.py")
    'scipy'
    """
    parts = file.split(os.sep)
    at = [i for i, part in enumerate(parts[:-1]) if part in _INSTALLED]
    return parts[at[-1] + 1].removesuffix(".py") if at else ""


@cache
def _own_folders() -> tuple[str, ...]:
    """Ours and those of Python's own modules."""
    import sysconfig  # some milliseconds, which `import gradsmith` does without

    ours = os.path.dirname(os.path.dirname(__file__))
    folders = (ours, *map(sysconfig.get_path, ("stdlib", "platstdlib")))
    return tuple(os.path.abspath(folder) + os.sep for folder in folders)
