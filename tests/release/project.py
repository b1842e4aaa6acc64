"""What the files at the root say of the project, for the tests beside this."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_GPUS = {"jax-gpu"}  # extras that a machine without a GPU can not use
GROUPS = PYPROJECT["dependency-groups"]
COMPILED = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"][
    "modules"
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower()  # type: ignore[index]


def requirements(group: str) -> list[str]:
    """Those of a dependency group, with the groups and extras that it includes."""
    found: list[str] = []
    for entry in GROUPS[group]:
        found += (
            requirements(entry["include-group"])
            if isinstance(entry, dict)
            else (expanded(entry))
        )
    return list(dict.fromkeys(found))


def expanded(requirement: str) -> list[str]:
    """A requirement, or those of the extras of ours that it names."""
    ours = re.fullmatch(r"gradsmith\[(.+)\]", requirement)
    if not ours:
        return [requirement]
    return [
        r for extra in ours[1].split(",") for e in EXTRAS[extra] for r in expanded(e)
    ]


def targets(makefile: str = MAKEFILE) -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*)\s*:(?!=)", makefile, re.M))
