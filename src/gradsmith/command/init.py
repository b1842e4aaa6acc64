"""`gradsmith init`: the configuration and a first test, for a project that has none."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from .config import FILE, TABLE, Config, ConfigError, read
from .definitions import defined
from .outputs import write
from .sources import sources_of

TEST = Path("tests", "test_gradients.py")
NAMED = 12  # operations; of more, their number

_CONFIG = """\
[{table}]
paths = [{paths}]
# exclude = ["src/generated"]
# frameworks = ["numpy"]  # where operations of Gradsmith are checked
# strict = true           # limits and undeclared surrogates fail, too
# max-ulp = 4             # for `gradsmith audit`
"""
_TEST = '''\
"""The custom gradients of this project are right."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_all_custom_gradients():
    """`gradsmith check` on the paths in [tool.gradsmith] of pyproject.toml."""
    command = [sys.executable, "-m", "gradsmith", "check", "--quick", "--allow-empty"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.fail(found.stdout + found.stderr, pytrace=False)
{example}'''
_EXAMPLE = """

# One operation on inputs of your own, with the fixture of Gradsmith's pytest plugin:
#
# def test_{name}(gradient_check):
#     gradient_check({name}, np.linspace(-3.0, 3.0, 7))
"""


@click.command(short_help="Write the configuration and a first test.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
def init(dry_run: bool) -> None:
    """Write [tool.gradsmith] into pyproject.toml, and tests/test_gradients.py.

    It looks for the custom gradients of the project, without importing anything, and
    leaves what is already there unchanged.
    """
    paths = _paths()
    operations = [*_operations(paths)]
    _say_found(operations)
    _write_config(paths, dry_run=dry_run)
    _write_test(operations, dry_run=dry_run)
    if dry_run:
        click.echo("Nothing was written.")
    else:
        first = "" if operations else "write an operation with its gradient, then "
        click.echo(f"Next: {first}run gradsmith check")


def _paths() -> list[str]:
    """Where the project's code is: src, else its packages, else everything."""
    if Path("src").is_dir():
        return ["src"]
    packages = sorted(
        each.parent.name
        for each in Path().glob("*/__init__.py")
        if each.parent.name not in ("tests", "test", "docs")
    )
    return packages or ["."]


def _operations(paths: list[str]) -> Iterator[tuple[str, str, int]]:
    """File, name and line of each operation."""
    for path in paths:
        for source in sources_of(path):
            code = Path(source.file).read_bytes()
            for name, line in defined(code).items():
                yield source.label, name, line


def _say_found(operations: list[tuple[str, str, int]]) -> None:
    n = len(operations)
    if not n:
        click.echo("There are no custom gradients here yet.")
        return
    click.echo(f"{n} custom gradient{'s' * (n > 1)} found:")
    for file, name, line in operations[:NAMED]:
        click.echo(f"  {file}:{line}  {name}")
    if n > NAMED:
        click.echo(f"  and {n - NAMED} more")


def _write_config(paths: list[str], *, dry_run: bool) -> None:
    """Append the table; nothing that is there changes."""
    file = Path(FILE)
    try:
        known = read(file) if file.exists() else Config()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if known.file is not None:
        click.echo(f"{FILE} has [{TABLE}] already: left unchanged")
        return
    before = file.read_bytes().decode() if file.exists() else ""  # its ends of lines
    named = ", ".join(json.dumps(path, ensure_ascii=False) for path in paths)
    table = _CONFIG.format(table=TABLE, paths=named)
    end = "" if before.endswith("\n") or not before else "\n"
    added = f"{end}\n{table}" if before else table
    if "\r\n" in before:
        added = added.replace("\n", "\r\n")
    try:
        tomllib.loads(before + added)
    except tomllib.TOMLDecodeError:
        raise click.UsageError(
            f"{FILE} takes no table [{TABLE}] at its end, since `tool` is a value "
            f"there\n  what to do: write it as [tool.NAME] tables, or add\n{table}"
        ) from None
    _put(file, before + added, shown=table, dry_run=dry_run)


def _write_test(operations: list[tuple[str, str, int]], *, dry_run: bool) -> None:
    if TEST.exists():
        click.echo(f"{TEST} exists already: left unchanged")
        return
    plain = [name for _, name, _ in operations if name.isidentifier()]
    example = _EXAMPLE.format(name=plain[0]) if plain else ""
    text = _TEST.format(example=example)
    _put(TEST, text, shown=text, dry_run=dry_run)


def _put(file: Path, text: str, *, shown: str, dry_run: bool) -> None:
    verb = "add to" if file.exists() else "write"
    if dry_run:
        click.echo(f"would {verb} {file}:")
        click.echo("".join(f"  | {line}\n" for line in shown.splitlines()), nl=False)
        return
    if file.exists() and not os.access(file, os.W_OK):
        raise click.UsageError(f"{file} may not be written to")
    try:
        file.parent.mkdir(exist_ok=True)
        write(file, text)
    except OSError as error:
        words = f"{error.strerror}: {error.filename}"
        raise click.UsageError(f"{file} can't be written: {words}") from None
    click.echo(f"{'added to' if verb == 'add to' else 'wrote'} {file}")
