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
from ..core import is_compiled
from ..core.arrays import FRAMEWORKS, NUMPY
from ..core.progress import Progress
from ..report.terminal import aligned, clean
from .probes import BROKEN, NO_GPU, SECONDS, SILENT, WORKS, tried

MISSING, OLD, INSTALLED = "not installed", "too old", "installed"
PLAIN = (WORKS, MISSING, INSTALLED)
_MARKS = {WORKS: "✓", INSTALLED: "·", MISSING: "-", OLD: "!", SILENT: "?"}


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


def packages() -> Iterator[Package]:
    yield from PACKAGES
    for each in FRAMEWORKS.values():
        if each.gpu_kernels:
            name, oldest, extra = each.gpu_kernels
            yield Package(name, oldest, extra, f"fused GPU kernels in {each.title}")


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


def examined(seconds: float = SECONDS, *, deep: bool = False) -> list[Row]:
    """All rows. The engine and kernels are tried; if `deep`, everything."""
    parts = [*_parts()]
    progress = Progress("gradsmith", "doctor", len(parts))
    rows: list[Row] = []
    try:
        with ThreadPoolExecutor(max(2, (os.cpu_count() or 1) // 2)) as pool:
            for row in pool.map(lambda part: _row(part, seconds, deep=deep), parts):
                progress(row.name)
                rows.append(row)
    finally:
        progress.close()
    return rows


def _parts() -> Iterator[Part]:
    use = "compiled" if is_compiled() else "not compiled: small arrays take longer"
    yield Part(
        "engine", "embedded engine", "engine", "numpy", install="gradsmith", use=use
    )
    for each in FRAMEWORKS.values():
        if each.name != NUMPY:
            probe, root = f"framework:{each.name}", each.module.partition(".")[0]
            oldest = ".".join(map(str, each.oldest))
            yield Part("frameworks", each.title, probe, root, oldest, each.install)
    for package in packages():
        module = package.module or package.name.replace("-", "_")
        how = f"module:{module}", module, package.oldest, package.install, package.use
        yield Part("packages", package.name, *how, package.name)
    yield Part("kernels", "CPU", "cpu-kernel", "llvmlite")
    yield Part("kernels", "GPU", "gpu", "triton")


def _row(part: Part, seconds: float, *, deep: bool) -> Row:
    """What became of one."""
    if find_spec(part.module) is None:
        words = f"{MISSING}: {part.use}" if part.use else MISSING
        return Row(part.group, part.name, "", MISSING, words, part.install)
    is_package = part.group in ("frameworks", "packages")
    name, version = _distribution(part) if is_package else (part.install, "")
    upgrade = part.install if part.group == "packages" else name
    if part.oldest and version and _numbers(version) < _numbers(part.oldest):
        words = f"{part.oldest} is the oldest that works"
        install = f"--upgrade {upgrade}"
        return Row(part.group, part.name, version, OLD, words, install)
    if is_package and not deep:
        return Row(part.group, part.name, version, INSTALLED, part.use)
    state, words = tried(part.probe, seconds)
    words = clean(words)
    if words == NO_GPU:
        return Row(part.group, part.name, "", MISSING, words)
    if state != WORKS:
        # What is only slow is not repaired by installing it again
        install = f"--force-reinstall {name}" if state == BROKEN and name else ""
        return Row(part.group, part.name, version, state, words, install)
    if part.group == "kernels":  # what they are compiled for
        return Row(part.group, part.name, "", state, words)
    return Row(part.group, part.name, version or words, state, part.use)


def _distribution(part: Part) -> tuple[str, str]:
    """The name under which a package is installed, and its release."""
    # It takes 3 % of the time in which the command line starts
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    usual = part.distribution or part.module
    for name in (usual, part.install):
        try:
            return name, version(name)
        except (PackageNotFoundError, ValueError):
            continue
    for name in packages_distributions().get(part.module, ()):  # 0.4 s
        return name, version(name)
    return usual, ""


def _numbers(words: str) -> tuple[int, ...]:
    """A release as numbers.

    >>> _numbers("2.13.0+cpu") > _numbers("2.7")
    True
    """
    return tuple(map(int, re.findall(r"\d+", words.partition("+")[0])[:3]))


def installs(rows: Sequence[Row]) -> dict[str, list[str]]:
    """What to hand to pip: for what is in the way, and for what could be had."""
    needed = [row.install for row in rows if row.state not in PLAIN]
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
        said = row.words if row.state in PLAIN else f"{row.state}: {row.words}"
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
    states = {row.state for row in rows}
    if INSTALLED in states:
        lines.append("·: installed, not tried yet (gradsmith doctor --deep tries all)")
    if SILENT in states:
        lines.append("? may be slow or hang: --time-limit gives it more time")
    if os.environ.get("GRADSMITH_KERNELS", "").lower() in ("off", "0", "false"):
        lines.append("GRADSMITH_KERNELS turns fused kernels off in this environment.")
    return lines


def verdict(rows: Sequence[Row]) -> str:
    if rows[0].state == SILENT:
        return "The engine gave no answer."
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
