"""The table of versions in docs/versions.md: `make versions` writes it.

The oldest come from pyproject.toml, those tested from the environments.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
from pathlib import Path

from benchmarks._documents import update
from gradsmith.core.arrays import FRAMEWORKS

from .project import EXTRAS, FOR_GPUS, PROJECT, ROOT, expanded, name_of, requirements
from .pythons import ENVIRONMENTS

DOCUMENT = ROOT / "docs" / "versions.md"
HEADER = ["| | from | tested with | |", "|---|---|---|---|"]


def main() -> None:
    update([str(DOCUMENT)], table(), "versions")


def table() -> str:
    return "\n".join([*HEADER, *(f"| {' | '.join(row)} |" for row in rows())])


def rows() -> list[tuple[str, str, str, str]]:
    """Name, oldest version, tested versions, what it is for."""
    pythons = ", ".join(tested_pythons())
    scope = "everything on the first, the engine on all"
    found = [("Python", bound(PROJECT["requires-python"]), pythons, scope)]
    for requirement, use in needed().items():
        name = name_of(requirement)
        found.append((f"`{name}`", oldest(requirement), tested(name), use))
    return found


def needed() -> dict[str, str]:
    """Each package beside Python, and what is installed with it."""
    found = dict.fromkeys(PROJECT["dependencies"], "always")
    for extra in sorted(EXTRAS.keys() - {"all", *FOR_GPUS}):
        for requirement in (r for entry in EXTRAS[extra] for r in expanded(entry)):
            known = found.get(requirement, "")
            found[requirement] = f"{known}, `{extra}`" if known else f"extra `{extra}`"
    return found | dict.fromkeys(requirements("frameworks"), "framework, if you use it")


def oldest(requirement: str) -> str:
    """Of a framework what its folder needs; ours may be pinned higher."""
    row = FRAMEWORKS.get(name_of(requirement).removesuffix("-cpu"))
    return ".".join(map(str, row.oldest)) if row and row.oldest else bound(requirement)


def bound(requirement: str) -> str:
    return re.search(r"[>=]=(\d+(\.\d+)*)", requirement)[1]  # type: ignore[index]


def tested(name: str) -> str:
    """In the oldest environment, this one and those of `make test-pythons`."""
    pinned = [r for r in requirements("oldest") if name_of(r) == name and "==" in r]
    found = {bound(requirement) for requirement in pinned}
    for path in (sys.path, *map(packages, sorted(ENVIRONMENTS.glob("python3.*")))):
        found |= {
            d.version.partition("+")[0] for d in distributions(name=name, path=path)
        }
    if not found:
        raise SystemExit(f"{name} is not installed: run make versions")
    return ", ".join(sorted(found, key=lambda v: [*map(int, v.split("."))]))


def packages(environment: Path) -> list[str]:
    return [*map(str, environment.glob("lib/python3.*/site-packages"))]


def tested_pythons() -> list[str]:
    """As the classifiers say."""
    found = (re.fullmatch(r".*:: (3\.\d+)", c) for c in PROJECT["classifiers"])
    return [match[1] for match in found if match]


if __name__ == "__main__":
    main()
