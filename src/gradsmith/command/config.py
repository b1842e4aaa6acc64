"""`[tool.gradsmith]` in pyproject.toml: what a project chose once for every tool.

What is unknown or of another type is refused, with its line and the nearest name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ..core.arrays import FRAMEWORKS
from ..core.errors import GradsmithError

FILE = "pyproject.toml"
TABLE = "tool.gradsmith"
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


class ConfigError(GradsmithError):
    """The configuration says something that nobody understands."""


def size_of(words: str) -> int | None:
    """Bytes, from words; None if they are no size.

    >>> size_of("4GB"), size_of("500 MB"), size_of("lots")
    (4000000000, 500000000, None)
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt])i?b?\s*", words.lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


# --- what a value may be


@dataclass(frozen=True)
class _Kind:
    """What is expected, in words, and whether something is that."""

    expected: str
    accepts: Callable[[Any], bool]


def _is_number(x: Any) -> bool:
    return type(x) in (int, float)


def _are(x: Any, *types: type) -> bool:
    return isinstance(x, list) and all(type(each) in types for each in x)


_NAMES = _Kind("a list of strings", lambda x: _are(x, str))
_FLAG = _Kind("true or false", lambda x: type(x) is bool)
_WHOLE = _Kind("an integer, 0 or larger", lambda x: type(x) is int and x >= 0)
_COUNT = _Kind("an integer, 1 or larger", lambda x: type(x) is int and x > 0)
_SECONDS = _Kind("a positive number of seconds", lambda x: _is_number(x) and x > 0)
_ULPS = _Kind("a number, 0 or larger", lambda x: _is_number(x) and x >= 0)
_SIZE = _Kind('a size, such as "4GB"', lambda x: type(x) is str and bool(size_of(x)))
_FRAMEWORKS = _Kind(
    f"a list of {', '.join(FRAMEWORKS)}; or all",
    lambda x: _are(x, str) and all(each in (*FRAMEWORKS, "all") for each in x),
)
_ARGUMENTS = _Kind(
    "a list of names or positions of arguments", lambda x: _are(x, str, int)
)
_WORDS = _Kind("the reason, a string", lambda x: type(x) is str and bool(x))
_DOMAIN = _Kind(
    "two numbers, the lower one first",
    lambda x: _are(x, int, float) and len(x) == 2 and x[0] < x[1],
)
_OPERATIONS = _Kind("a table for each operation", lambda x: isinstance(x, dict))

KEYS = {
    "paths": _NAMES,
    "exclude": _NAMES,
    "frameworks": _FRAMEWORKS,
    "seed": _WHOLE,
    "quick": _FLAG,
    "strict": _FLAG,
    "allow-inconclusive": _FLAG,
    "time-limit": _SECONDS,
    "memory-limit": _SIZE,
    "jobs": _COUNT,
    "max-ulp": _ULPS,
    "max-seconds": _SECONDS,
    "surrogate": _NAMES,
    "operations": _OPERATIONS,
}
OPERATION_KEYS = {
    "data": _ARGUMENTS,
    "wrt": _ARGUMENTS,
    "surrogate": _WORDS,
    "domain": _DOMAIN,
}


# --- reading


@dataclass(frozen=True)
class Config:
    """The values that are given, with underscores in their names."""

    file: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """As seen from the working directory."""
        if self.file is None:
            return ()
        folder = self.file.parent
        return tuple(os.path.relpath(folder / p) for p in self.values.get("paths", ()))

    @property
    def exclude(self) -> tuple[str, ...]:
        """Patterns of whole paths."""
        if self.file is None:
            return ()
        folder = self.file.parent.as_posix()
        return tuple(f"{folder}/{each}" for each in self.values.get("exclude", ()))

    def chosen(
        self,
        name: str,
        module: str,
        *,
        wrt: tuple[str, ...] = (),
        data: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Options of the check for an operation, by what was given and by the file."""
        surrogate = tuple(self.values.get("surrogate", ()))
        return options_for(
            self.operations, name, module, surrogate=surrogate, wrt=wrt, data=data
        )

    def unknown(self, found: Sequence[tuple[str, str]]) -> list[str]:
        """What it says of operations that there are not, by those that were found."""
        from .unknown import unknown_names

        return unknown_names(self, found)

    def unmatched(
        self, patterns: Sequence[str], found: Sequence[tuple[str, str]], folder: Path
    ) -> list[str]:
        """Patterns of names that match nothing, neither found nor in a folder."""
        from .unknown import unmatched_patterns

        return unmatched_patterns(patterns, found, folder)

    def place(self, name: str, table: str = TABLE) -> str:
        """Where it says something: file, line and table."""
        assert self.file is not None
        text = self.file.read_text(encoding="utf-8")
        return f"{_place(self.file, text, name)}: [{table}]"

    @property
    def named(self) -> Iterator[tuple[str, str]]:
        """What it calls operations, or patterns of them, with where it does."""
        for name in self.values.get("surrogate", ()):
            yield name, f"{self.place(name)} surrogate"
        for name in self.operations:
            yield name, self.place(name, f"{TABLE}.operations.{name}")


def config_for(start: str | Path = ".") -> Config:
    """The configuration of the nearest folder above that has one."""
    here = Path(start).resolve()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            config = read(folder / FILE)
            if config.file is not None:
                return config
    return Config()


def read(file: Path) -> Config:
    """The configuration of a file; an empty one if it says nothing about us."""
    try:
        text = file.read_text(encoding="utf-8")
        tool = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{_shown(file)} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{_shown(file)}: {error.strerror}") from None
    table = tool.get("gradsmith") if isinstance(tool, dict) else None
    if table is None:
        return Config()
    if not isinstance(table, dict):
        raise ConfigError(f"{_shown(file)}: [{TABLE}] is no table")
    values = dict(_checked(file, text, table, KEYS, TABLE))
    operations = {
        name: dict(_operation(file, text, name, given))
        for name, given in values.pop("operations", {}).items()
    }
    return Config(file, values, operations)


def _operation(
    file: Path, text: str, name: str, given: Any
) -> Iterator[tuple[str, Any]]:
    where = f"{TABLE}.operations.{name}"
    if not isinstance(given, dict):
        key = re.sub(r"[^\w-]", "", name)
        raise ConfigError(f"{_place(file, text, key)}: [{where}] is no table")
    return _checked(file, text, given, OPERATION_KEYS, where)


def _checked(
    file: Path, text: str, table: dict[str, Any], keys: dict[str, _Kind], where: str
) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = name.replace("_", "-")
        place = f"{_place(file, text, name)}: [{where}]"
        if key not in keys:
            raise ConfigError(f"{place} has no {name!r}; {nearest(key, keys)}")
        if not keys[key].accepts(value):
            raise ConfigError(
                f"{place} {name} = {value!r}: expected {keys[key].expected}"
            )
        yield key.replace("-", "_"), value


def nearest(name: str, names: Iterable[str], most: int = 14) -> str:
    """The name that is likely to be meant; else all of them, or the first.

    >>> nearest("max-upl", ["paths", "max-ulp"]), nearest("zz", ["paths", "seed"])
    ("did you mean 'max-ulp'?", 'what there is: paths, seed')
    """
    names = [*dict.fromkeys(names)]
    if near := get_close_matches(name, names, 1, 0.5):
        return f"did you mean {near[0]!r}?"
    more = ", ..." if len(names) > most else ""
    return f"what there is: {', '.join(names[:most])}{more}"


def _place(file: Path, text: str, name: str) -> str:
    """The file, and the line of a key, or of an entry of a list, in our tables."""
    ours = False
    word = re.compile(rf"""[^#]*?(?<![\w-])["']?{re.escape(name)}["']?\s*([=\],]|$)""")
    for i, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            ours = TABLE in line.replace(" ", "")
        if ours and word.match(line):
            return f"{_shown(file)}:{i}"
    return _shown(file)


def _shown(file: Path) -> str:
    return os.path.relpath(file)


# --- what holds for an operation


def is_named(pattern: str, name: str, module: str) -> bool:
    """Whether a pattern is about an operation, by its name alone or with the module.

    >>> [is_named(each, "cube", "ops") for each in ("cube", "ops.*", "cub")]
    [True, True, False]
    """
    return fnmatch(name, pattern) or fnmatch(f"{module}.{name}", pattern)


def settings_for(
    operations: dict[str, dict[str, Any]], name: str, module: str
) -> dict[str, Any]:
    """What is said of an operation; of several that fit, the later wins."""
    found: dict[str, Any] = {}
    for pattern, given in operations.items():
        if is_named(pattern, name, module):
            found |= given
    return found


def options_for(
    operations: dict[str, dict[str, Any]],
    name: str,
    module: str,
    *,
    surrogate: tuple[str, ...],
    wrt: tuple[str, ...],
    data: tuple[str, ...],
) -> dict[str, Any]:
    """Options of the check for one operation; what was given by options wins."""
    said = settings_for(operations, name, module)
    if any(is_named(each, name, module) for each in surrogate):
        said.setdefault("surrogate", "declared by --surrogate")
    found = {"wrt": arguments_for(wrt, name, module) or said.get("wrt")}
    found["data"] = arguments_for(data, name, module) or said.get("data")
    chosen = {option: tuple(x) if x else None for option, x in found.items()}
    return {**chosen, "surrogate": said.get("surrogate")}


def arguments_for(given: tuple[str, ...], name: str, module: str) -> list[str | int]:
    """The arguments that `[OPERATION:]ARGUMENT` names, for this operation.

    >>> arguments_for(("cross_entropy:labels", "0", "mse:y"), "mse", "losses")
    [0, 'y']
    """
    found: list[str | int] = []
    for each in given:
        operation, _, argument = each.rpartition(":")
        if not operation or is_named(operation, name, module):
            found.append(int(argument) if argument.isdigit() else argument)
    return found
