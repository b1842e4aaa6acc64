"""What is to be checked: files, folders and modules, found without importing any."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from ..core.arrays import FRAMEWORKS, NUMPY
from ..core.errors import GradsmithError
from ..report.terminal import clean
from .definitions import may_define

_IMPORT = re.compile(rb"^(?:import|from)\s+(\w+)", re.MULTILINE)
_KNOWN = {"gradsmith", *FRAMEWORKS} - {NUMPY}
_SKIPPED = {"__main__.py", "setup.py", "conftest.py"}
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


@dataclass(frozen=True)
class Source:
    """A file as it was when the run began."""

    file: str
    root: str  # the folder that has to be on the path
    module: str  # the name by which it is imported then
    label: str  # the file as the user would write it
    digest: str  # changes if the file does
    name: str | None = None  # the only operation that is asked for
    imports: tuple[str, ...] = ()  # gradsmith and frameworks, as far as its text tells


def sources_of(
    target: str,
    skipped: list[str] | None = None,
    *,
    defining: bool = False,
    exclude: tuple[str, ...] = (),
) -> list[Source]:
    """The files that a target names: path, path:name, module or module:name.

    Of a folder, `skipped` is told the files that could not be read, and why. A file by
    itself is one whatever it contains, unless `defining` asks for those alone that
    could define an operation. `exclude` are patterns of paths, or folders.

    >>> [source.module for source in sources_of("gradsmith.command.main:main")]
    ['gradsmith.command.main']
    """
    skipped = [] if skipped is None else skipped
    found = _sources(target, skipped, defining=defining)
    return [each for each in found if each.name or not _is_excluded(each, exclude)]


def _is_excluded(source: Source, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern fits the file or a folder that it is in."""
    path = Path(source.file)
    return any(
        fnmatch(each.as_posix(), os.path.abspath(pattern))
        for pattern in patterns
        for each in (path, *path.parents)
    )


def _sources(target: str, skipped: list[str], *, defining: bool) -> list[Source]:
    where, name = _parted(target)
    path = Path(where)
    if path.is_dir() and not name:
        return list(_folder(path, skipped))
    if path.is_file():
        if path.suffix != ".py":
            if not defining:
                raise GradsmithError(f"{where!r} {_other(path)}")
            skipped.append(f"{_label(path)}: it {_other(path)}".partition("\n")[0])
            return []
        if defining and not name:
            return [*_defining([path], skipped)]
        return [_read(path, name)]
    if path.exists():
        raise GradsmithError(f"{where!r} is no regular file")
    if path.suffix == ".py" or "/" in where or "\\" in where:
        raise GradsmithError(f"there is no file or folder {where!r}")
    return _module(where, name, skipped)


def _other(path: Path) -> str:
    """What a file is that can't be imported."""
    if path.suffix != ".ipynb":
        return "is no Python file: its name does not end in .py"
    return (
        "is a notebook, and operations are checked in Python files\n  what to do: call "
        "gs.check in the notebook, or make a file of it by `jupyter nbconvert --to "
        f"script {path.name}`"
    )


def _read(path: Path, name: str | None) -> Source:
    try:
        return _file(path, name, path.read_bytes())
    except OSError as error:
        raise GradsmithError(f"{path} can't be read: {error.strerror}") from None


def _parted(target: str) -> tuple[str, str | None]:
    where, colon, name = target.rpartition(":")
    if colon and re.fullmatch(r"[\w.]+", name) and len(where) > 1:  # not C:\...
        return where, name
    return target, None


def _folder(folder: Path, skipped: list[str]) -> Iterator[Source]:
    """The files of a folder that could define an operation; none is imported."""
    return _defining(sorted(python_files(folder)), skipped)


def _defining(paths: Iterable[Path], skipped: list[str]) -> Iterator[Source]:
    for path in paths:
        try:
            code = _code_of(path)
            if may_define(code):
                yield _file(path, None, code)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            skipped.append(f"{_label(path)}: {words}")


def python_files(folder: Path) -> Iterator[Path]:
    """The files of a folder, but those of other projects and of builds."""
    for where, folders, files in os.walk(folder):
        here = Path(where)
        folders[:] = [
            name
            for name in folders
            if not _is_skipped_folder(name)
            and not os.path.exists(here / name / "pyvenv.cfg")  # Path's may raise
        ]
        for name in files:
            if name.endswith(".py") and name not in _SKIPPED:
                yield here / name


def _code_of(path: Path) -> bytes:
    """The text of a file; ValueError says why it has none."""
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
        raise ValueError("no regular file")
    code = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(code).readline)
        code.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise ValueError("it can't be decoded") from None
    if b"\0" in code:
        raise ValueError("it contains a null byte")
    return code


def _is_skipped_folder(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS


def is_skipped(path: Path) -> bool:
    """Whether a file would be left out of the folders that it is in."""
    *folders, name = path.parts
    return name in _SKIPPED or any(map(_is_skipped_folder, folders))


def _file(path: Path, name: str | None, code: bytes) -> Source:
    path = path.resolve()
    root, module = module_of(path)
    digest = sha256(code).hexdigest()[:16]
    imports = tuple(sorted({each.decode() for each in _IMPORT.findall(code)} & _KNOWN))
    return Source(str(path), str(root), module, _label(path), digest, name, imports)


def module_of(path: Path) -> tuple[Path, str]:
    """The folder that has to be on the path, and the name of the module then."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    if path.stem == "__init__" and len(parts) > 1:
        parts.pop()
    return root, ".".join(parts)


def _label(path: Path) -> str:
    here, path = Path.cwd(), Path(os.path.abspath(path))
    return clean(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _module(name: str, operation: str | None, skipped: list[str]) -> list[Source]:
    spec = spec_of(name)
    if spec is None or not (spec.origin or spec.submodule_search_locations):
        raise GradsmithError(
            f"there is no file, folder or module {name!r}\n  what to do: give a path, "
            "such as ops.py or src/, or a module that can be imported from here"
        )
    if spec.submodule_search_locations and operation is None:
        return [
            source
            for folder in spec.submodule_search_locations
            for source in _folder(Path(folder), skipped)
        ]
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise GradsmithError(f"{name!r} is not written in Python: {spec.origin}")
    return [_read(Path(spec.origin), operation)]


def spec_of(name: str) -> ModuleSpec | None:
    """Where a module is. `importlib.util.find_spec` would import its packages."""
    path: Any = None
    spec = None
    parts = name.split(".")
    for i in range(len(parts)):
        spec = _found(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and i + 1 < len(parts):
            return None
    return spec


def _found(name: str, path: Any) -> ModuleSpec | None:
    if path is None:
        path = [str(Path.cwd()), *sys.path]
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)
