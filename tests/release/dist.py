"""Build wheel and sdist, and look at them as a stranger would: `make dist`.

Contents, metadata, an install into an empty environment, a gradient there, the command
with and without its extra, and the types that an editor sees.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from .project import COMPILED, PROJECT, ROOT

DIST = ROOT / "dist"
USER = Path(__file__).with_name("user.py")
WRONG = "scaling"  # the argument that softplus in user.py does not have


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    wheel, sdist = built(DIST)
    require_wheel(wheel_names(wheel))
    require_sdist(sdist_names(sdist))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        try_installed(Path(folder) / "bin" / "python", wheel)
    try_compiled()
    say(f"{wheel.name} and {sdist.name} are in {DIST.relative_to(ROOT)}/")


def try_compiled() -> None:
    """A wheel for this platform, which a release is built for many."""
    with TemporaryDirectory() as folder:
        build = (sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        run(*build, GRADSMITH_COMPILE="1")
        [wheel] = Path(folder).glob("*.whl")
        require(not wheel.name.endswith("-any.whl"), f"{wheel.name} is for all")
        require_wheel(wheel_names(wheel), compiled=True)
        python = Path(folder) / "env" / "bin" / "python"
        venv.create(python.parents[1], with_pip=True)
        install(python, wheel)
        run(python, "-I", USER)
        run(python, "-I", "-c", "from gradsmith.core import *; assert is_compiled()")


def run(*command: object, ok: int = 0, **environment: str) -> str:
    """What a command prints; its whole output, if it does not end as it should."""
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    if done.returncode != ok:
        shown = " ".join(map(str, command))
        raise SystemExit(f"{shown}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")


# --- contents ------------------------------------------------------------------------


def built(folder: Path) -> tuple[Path, Path]:
    stem = f"{PROJECT['name']}-{PROJECT['version']}"
    names = (f"{stem}-py3-none-any.whl", f"{stem}.tar.gz")
    found = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    require(found == sorted(names), f"dist/ has {found}")
    return folder / names[0], folder / names[1]


def wheel_names(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as file:
        return set(file.namelist())


def sdist_names(path: Path) -> set[str]:
    """Without the folder that all of it is in."""
    with tarfile.open(path) as file:
        return {name.partition("/")[2] for name in file.getnames()}


def require_wheel(names: set[str], *, compiled: bool = False) -> None:
    """All files of the package, the license, and nothing else."""
    info = f"{PROJECT['name']}-{PROJECT['version']}.dist-info/"
    package = {name for name in names if not name.startswith(info)}
    require_same(package, installed_files() | (extensions() if compiled else set()))
    metadata = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    require_same({name.removeprefix(info) for name in names - package}, metadata)
    require("gradsmith/py.typed" in names, "the wheel has no py.typed")


def installed_files() -> set[str]:
    """All of the package but what the compiler alone reads, which the sdist has."""
    sources = (name for name in files("src/") if not name.endswith(".pxd"))
    return {name.removeprefix("src/") for name in sources}


def require_sdist(names: set[str]) -> None:
    """What is needed to build, test and read it."""
    needed = {*files("src/", "tests/", "docs/"), "LICENSE", "README.md", "Makefile"}
    require(needed <= names, f"the sdist lacks {sorted(needed - names)}")


def extensions() -> set[str]:
    """The files of the modules that are compiled, on this platform."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return {f"{module.replace('.', '/')}{suffix}" for module in COMPILED}


def files(*folders: str) -> set[str]:
    """What git keeps, or would."""
    listed = run(
        *("git", "-C", ROOT, "ls-files", "--cached", "--others"),
        *("--exclude-standard", "--", *folders),
    )
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise SystemExit(otherwise)


def require_same(found: Iterable[str], expected: Iterable[str]) -> None:
    more, less = set(found) - set(expected), set(expected) - set(found)
    require(
        not more and not less, f"the wheel has {sorted(more)}, lacks {sorted(less)}"
    )


# --- installed -----------------------------------------------------------------------


def try_installed(python: Path, wheel: Path) -> None:
    """In an environment with nothing else, in a folder that has no sources."""
    install(python, wheel)
    require(installed(python) == {"gradsmith", "numpy"}, f"{installed(python)}")
    run(python, "-I", USER)
    command = python.with_name("gradsmith")
    without = run(command, "--version", ok=2)
    require('pip install "gradsmith[cli]"' in without, without)
    require(without.count("\n") == 1, without)
    require("The engine works" in run(command, "doctor"), "doctor")
    require_types(python)
    install(python, f"{wheel}[cli]")
    require(PROJECT["version"] in run(command, "--version"), "--version")
    run(python, "-I", "-m", "gradsmith", "--help")
    require("The engine works" in run(command, "doctor"), "doctor")


def install(python: Path, what: object) -> None:
    quietly = ("--quiet", "--disable-pip-version-check")
    run(python, "-m", "pip", "install", *quietly, what)


def installed(python: Path) -> set[str]:
    program = "from importlib.metadata import distributions as found\n"
    program += "print(*(d.name for d in found()))"
    return {*run(python, "-I", "-c", program).split()} - {"pip", "setuptools"}


def require_types(python: Path) -> None:
    """The one mistake in the user's file is found, and nothing else."""
    with TemporaryDirectory() as folder:
        copy = shutil.copy(USER, folder)
        settings = ("--outputjson", "--level", "error", "--pythonpath", python, copy)
        pyright = [sys.executable, "-m", "pyright", *map(str, settings)]
        # Elsewhere: beside the sources, it would read these
        done = subprocess.run(pyright, capture_output=True, text=True, cwd=folder)
    found = [d["message"] for d in json.loads(done.stdout)["generalDiagnostics"]]
    require(len(found) == 1 and WRONG in found[0], f"pyright says {found}")


if __name__ == "__main__":
    main()
