"""`gradsmith doctor`: what is installed, what works, and what to install."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec

import click
from rich.text import Text

from .. import __version__
from ..core.arrays import FRAMEWORKS, NUMPY
from ..core.progress import Progress
from ..report.terminal import clean
from .display import Terminal, show_table
from .probes import NO_GPU, SECONDS, WORKS, tried
from .status import Exit, with_statuses

MISSING, OLD = "not installed", "too old"
_STYLES = {WORKS: "green", MISSING: "dim", OLD: "yellow"}
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


@click.command(short_help="What is installed, what works, what to install.")
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="For each import.",
)
@with_statuses("the embedded engine works", "it does not", (Exit.FINE, Exit.WRONG))
def doctor(as_json: bool, time_limit: float) -> None:
    """Print versions, what is too old or broken, and what to install.

    Each framework and package is imported in a process of its own, so that one that
    crashes or hangs is told.
    """
    rows = examined(time_limit)
    works = next(row.state for row in rows if row.group == "engine") == WORKS
    if as_json:
        found = {
            "gradsmith": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "engine_works": works,
            "rows": [asdict(row) for row in rows],
            "install": installs(rows),
        }
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(rows)
    sys.exit(Exit.FINE if works else Exit.WRONG)


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


def _show(rows: Sequence[Row]) -> None:
    console = Terminal()
    system = f"Python {platform.python_version()}, {platform.platform()}"
    console.print(f"Gradsmith {__version__}, {system}", highlight=False, soft_wrap=True)
    console.print()
    cells = []
    last = ""
    for row in rows:
        group, last = (row.group if row.group != last else ""), row.group
        mark = _MARKS.get(row.state, "✗")
        style = _STYLES.get(row.state, "bold red")
        said = (
            row.words if row.state in (WORKS, MISSING) else f"{row.state}: {row.words}"
        )
        cells.append((
            Text(group, style="bold"), Text(mark, style=style), Text(row.name),
            Text(row.version), Text(said, style="dim" if row.state == MISSING else ""),
        ))  # fmt: skip
    show_table(console, ("", "", "", "version", ""), cells, folded=("",))
    for words, commands in (
        ("To repair:", installs(rows)["repair"]),
        ("To install, if you need it:", installs(rows)["optional"]),
    ):
        if commands:
            console.print(words, style="bold")
            for command in commands:
                console.print(f"  {command}", highlight=False, markup=False)
    if os.environ.get("GRADSMITH_KERNELS", "").lower() in ("off", "0", "false"):
        console.print("GRADSMITH_KERNELS turns fused kernels off in this environment.")
    works = rows[0].state == WORKS
    verdict = "The engine works." if works else "The engine does not work."
    console.print(Text(verdict, style="bold green" if works else "bold red"))
