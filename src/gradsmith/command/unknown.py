"""Operations that the configuration names, and that there are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .config import Config, is_named, nearest
from .sources import module_of, python_files, spec_of


def unknown_names(config: Config, found: Sequence[tuple[str, str]]) -> list[str]:
    """What is said of no operation, with its place and the nearest name.

    `found` are the operations of a run, and their modules. One that is defined
    elsewhere in the project, perhaps in a test, is known; so is one of a package that
    is installed.
    """
    if config.file is None or not found:
        return []
    folder = config.file.parent
    return [
        f"{place}: there is no operation {name!r}; {_hint(name, found)}"
        for name, place in config.named
        if not _is_known(name, found, folder)
    ]


def unmatched_patterns(
    patterns: Sequence[str], found: Sequence[tuple[str, str]], folder: Path
) -> list[str]:
    """Patterns that are about no operation of a run, and about no name of a project."""
    return [
        f"the pattern {name!r} matches no custom gradient; {_hint(name, found)}"
        for name in patterns
        if found and not _is_known(name, found, folder)
    ]


def _is_known(name: str, found: Sequence[tuple[str, str]], folder: Path) -> bool:
    return (
        any(is_named(name, *each) for each in found)
        or _is_foreign(name, found)
        or any(is_named(name, *each) for each in _defined(folder, name))
    )


def _hint(name: str, found: Sequence[tuple[str, str]]) -> str:
    dotted = "." in name
    return nearest(name, [f"{module}.{op}" if dotted else op for op, module in found])


def _is_foreign(name: str, found: Sequence[tuple[str, str]]) -> bool:
    """Whether a name with its module is one of another package."""
    package, dot, _ = name.partition(".")
    own = {module.partition(".")[0] for _, module in found}
    return bool(dot) and package not in own and spec_of(package) is not None


def _defined(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Functions, classes and variables of the files that could define this one."""
    words = re.findall(r"\w+", name)
    for path in python_files(folder):
        module = module_of(path)[1]
        try:
            code = path.read_text(encoding="utf-8")
            if any(word in code or word in module for word in words):
                for each in _names(ast.parse(code)):
                    yield each, module
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            for part in node.body:  # of a class, its methods
                if isinstance(part, ast.FunctionDef):
                    yield f"{node.name}.{part.name}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
