"""What is installed here, what works, and what to install.

It needs neither click nor rich, whose absence it has to tell.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from .. import __version__
from ..core.arrays import FRAMEWORKS, NUMPY
from ..core.progress import Progress
from ..report.terminal import aligned, clean
from .probes import NO_GPU, SECONDS, WORKS, tried

MISSING, OLD = "not installed", "too old"
_MARKS = {WORKS: "✓", MISSING: "-", OLD: "!"}


@dataclass(frozen=True)
class Package:
    """A package that some part of Gradsmith needs, from which release on."""

    name: str
    oldest: str
    extra: str | None  # None: it comes with something else
    use: str
    module: str = ""

    @property
    def install(self) -> str:
        if self.extra is None:
            return ""
        return f'"gradsmith[{self.extra}]"' if self.extra else self.name


# The oldest releases are those of pyproject.toml, which a test holds this to.
PACKAGES = (
    Package("numpy", "2.1", "", "the embedded engine"),
    Package("scipy", "1.15", "special", "gradients of scipy.special"),
    Package("python-flint", "0.7", "audit", "gradsmith audit, gs.audit", "flint"),
    Package("click", "8.1", "cli", "the command line"),
    Package("rich", "13.7", "cli", "the command line, gs.check(...).show()"),
    Package("jinja2", "3.1", "report", "gradsmith report, --html"),
    Package("matplotlib", "3.9", "plot", "plots of results"),
    Package("llvmlite", "0.45", "kernels", "fused CPU kernels"),
    Package(
        "checkpoint-schedules", "1.0.4", "checkpoint", "optimal checkpoint schedules"
    ),
    Package("dask", "2024.8", "cluster", "audits on a cluster", "distributed"),
    Package("triton", "", None, "fused GPU kernels; comes with PyTorch for CUDA"),
)


@dataclass(frozen=True)
class Part:
    """Something to look at: how it is tried, and the module without which it is not."""

    group: str
    name: str
    probe: str
    module: str
    oldest: str = ""
    install: str = ""
    use: str = ""
    distribution: str = ""


@dataclass(frozen=True)
class Row:
    """One thing that was looked at."""

    group: str
    name: str
    version: str
    state: str
    words: str
    install: str = ""


def examined(seconds: float = SECONDS) -> list[Row]:
    """All rows; what is installed is tried, a few at a time."""
    parts = [*_parts()]
    progress = Progress("gradsmith", "doctor", len(parts))
    rows: list[Row] = []
    try:
        with ThreadPoolExecutor(max(2, (os.cpu_count() or 1) // 2)) as pool:
            for row in pool.map(lambda part: _row(part, seconds), parts):
                progress(row.name)
                rows.append(row)
    finally:
        progress.close()
    return rows


def _parts() -> Iterator[Part]:
    yield Part("engine", "embedded engine", "engine", "numpy", install="gradsmith")
    for each in FRAMEWORKS.values():
        if each.name != NUMPY:
            probe, root = f"framework:{each.name}", each.module.partition(".")[0]
            oldest = ".".join(map(str, each.oldest))
            yield Part("frameworks", each.title, probe, root, oldest, each.install)
    for package in PACKAGES:
        module = package.module or package.name.replace("-", "_")
        how = f"module:{module}", module, package.oldest, package.install, package.use
        yield Part("packages", package.name, *how, package.name)
    yield Part("kernels", "CPU", "cpu-kernel", "llvmlite")
    yield Part("kernels", "GPU", "gpu", "triton")


def _row(part: Part, seconds: float) -> Row:
    """What became of one."""
    if find_spec(part.module) is None:
        words = f"{MISSING}: {part.use}" if part.use else MISSING
        return Row(part.group, part.name, "", MISSING, words, part.install)
    state, words = tried(part.probe, seconds)
    words = clean(words)
    if words == NO_GPU:
        return Row(part.group, part.name, "", MISSING, words)
    known = _version(part.distribution) if part.distribution else ""
    said = part.use if state == WORKS else words
    if state == WORKS and part.group == "kernels":
        said = words  # what they are compiled for
    elif state == WORKS:
        known = known or words
    if part.oldest and known and _numbers(known) < _numbers(part.oldest):
        said, install = f"{part.oldest} is the oldest that works", "--upgrade"
        return Row(part.group, part.name, known, OLD, said, f"{install} {part.install}")
    again = "" if state == WORKS or not part.install else "--force-reinstall "
    install = f"{again}{part.distribution or part.install}" if again else ""
    return Row(part.group, part.name, known, state, said, install)


def _version(distribution: str) -> str:
    # It takes 3 % of the time in which the command line starts
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _numbers(words: str) -> tuple[int, ...]:
    """A release as numbers.

    >>> _numbers("2.13.0+cpu") > _numbers("2.7")
    True
    """
    return tuple(map(int, re.findall(r"\d+", words.partition("+")[0])[:3]))


def installs(rows: Sequence[Row]) -> dict[str, list[str]]:
    """What to hand to pip: for what is in the way, and for what could be had."""
    needed = [row.install for row in rows if row.state not in (WORKS, MISSING)]
    extras = [row.install for row in rows if row.state == MISSING]
    return {
        "repair": [f"pip install {each}" for each in dict.fromkeys(needed) if each],
        "optional": [f"pip install {each}" for each in dict.fromkeys(extras) if each],
    }


def system() -> str:
    where = f"Python {platform.python_version()}, {platform.platform()}"
    return f"Gradsmith {__version__}, {where}"


def works(rows: Sequence[Row]) -> bool:
    """Whether the embedded engine does."""
    return rows[0].state == WORKS


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Group, mark, name, version and words of each; a group is named once."""
    found, last = [], ""
    for row in rows:
        group, last = (row.group if row.group != last else ""), row.group
        plain = row.state in (WORKS, MISSING)
        said = row.words if plain else f"{row.state}: {row.words}"
        found.append((group, _MARKS.get(row.state, "✗"), row.name, row.version, said))
    return found


def advice(rows: Sequence[Row]) -> list[str]:
    """What to do, and the verdict."""
    lines = []
    for words, commands in (
        ("To repair:", installs(rows)["repair"]),
        ("To install, if you need it:", installs(rows)["optional"]),
    ):
        lines += [words, *(f"  {each}" for each in commands)] if commands else []
    if os.environ.get("GRADSMITH_KERNELS", "").lower() in ("off", "0", "false"):
        lines.append("GRADSMITH_KERNELS turns fused kernels off in this environment.")
    return lines


def verdict(rows: Sequence[Row]) -> str:
    return "The engine works." if works(rows) else "The engine does not work."


def text(rows: Sequence[Row]) -> str:
    """All of it, as plain text."""
    table = aligned([("", "", "", "version", ""), *cells(rows)])
    return "\n".join([system(), "", *table, "", *advice(rows), verdict(rows)])


def as_dict(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "gradsmith": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "engine_works": works(rows),
        "rows": [asdict(row) for row in rows],
        "install": installs(rows),
    }
