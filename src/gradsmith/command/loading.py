"""Import a file of the user's, and show their own frames if it fails."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.places import is_users, package_of
from .sources import Source

_HOME = str(Path(__file__).parents[1])


def load(source: Source) -> ModuleType:
    """The module of a file, imported once."""
    if source.root not in sys.path:
        sys.path.insert(0, source.root)
    known = sys.modules.get(source.module)
    if known is None and "." in source.module:
        return importlib.import_module(source.module)
    if known is not None and _is_file(known, source.file):
        return known
    # By its path: another module of that name may be found first, or loaded already.
    name = source.module if known is None else f"{source.module}_{source.digest}"
    spec = importlib.util.spec_from_file_location(name, source.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_file(module: ModuleType, file: str) -> bool:
    return Path(getattr(module, "__file__", None) or "").resolve() == Path(file)


def own_traceback(error: BaseException, root: str) -> str:
    """The traceback of an exception, as far as it is about the user's code."""
    shown = traceback.TracebackException.from_exception(error)
    own = [frame for frame in shown.stack if is_own(frame.filename, root)]
    if not own and not isinstance(error, SyntaxError):  # perhaps a mistake of ours
        own = shown.stack[-3:]
    shown.stack = traceback.StackSummary.from_list(own)
    shown.__cause__ = shown.__context__ = None
    return "".join(shown.format(chain=False)).rstrip()


def is_own(filename: str, root: str) -> bool:
    """Whether a file is the user's: none of ours, of Python's or of a library's."""
    if filename.startswith(("<", _HOME)):
        return False
    path = Path(filename)
    if path.is_relative_to(root):  # which may be an installed package
        return not package_of(str(path.relative_to(root)))
    return is_users(filename) and not package_of(filename)


def named(module: ModuleType, name: str) -> Any:
    """What stands in a module by its name, `Class.method` included."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found
