"""The engine's tests on each Python that is installed: `make test-pythons`.

Interpreters are found by their names on the PATH; if a shim of pyenv has the name,
pyenv is asked for the version that has it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .project import PROJECT, ROOT

ENVIRONMENTS = ROOT / ".venvs"
OLDEST = int(re.search(r"3\.(\d+)", PROJECT["requires-python"])[1])  # type: ignore[index]
NEWEST = 14  # what comes next is tried where somebody has it
FAILED, MISSING = "FAILED", "not installed"
NAMES = [f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Other arguments are pytest's.")
    parser.add_argument("--pythons", default=" ".join(NAMES), metavar="A B")
    ours, pytest = parser.parse_known_args(arguments)
    results = {name: tested(name, pytest) for name in ours.pythons.split()}
    sys.stdout.write("".join(f"{name}: {said}\n" for name, said in results.items()))
    if FAILED in results.values():
        raise SystemExit(1)
    if {*results.values()} <= {MISSING}:
        raise SystemExit("none of them is installed")


def tested(name: str, arguments: list[str]) -> str:
    found = interpreter(name)
    if found is None:
        return MISSING
    python = environment(name, found)
    pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(pytest, cwd=ROOT, env=clean())
    said = f"passed, with NumPy {numpy_version(python)}"
    return FAILED if done.returncode else said


def interpreter(name: str) -> str | None:
    """Its path, as it says itself: a name may belong to a shim."""
    for version in ("", *pyenv_versions(name)):
        environment = {**clean(), **({"PYENV_VERSION": version} if version else {})}
        found = _executable(name, environment)
        if found:
            return found
    return None


def _executable(name: str, environment: dict[str, str]) -> str | None:
    if not shutil.which(name):
        return None
    program = "import sys; print(sys.executable)"
    done = subprocess.run(
        [name, "-I", "-c", program], env=environment, capture_output=True, text=True
    )
    return done.stdout.strip() or None


def pyenv_versions(name: str) -> list[str]:
    if not shutil.which("pyenv"):
        return []
    done = subprocess.run(["pyenv", "whence", name], capture_output=True, text=True)
    return done.stdout.split()


def environment(name: str, interpreter: str) -> Path:
    """With the group `engine`; made again when pyproject.toml is newer."""
    folder = ENVIRONMENTS / name
    made, python = folder / "made", folder / "bin" / "python"
    if (
        made.exists()
        and made.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime
    ):
        return python
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "pip>=25.1"], check=True, env=clean())
    subprocess.run(
        [*pip, "-e", ".", "--group", "engine"], check=True, cwd=ROOT, env=clean()
    )
    made.touch()
    return python


def numpy_version(python: Path) -> str:
    program = "import numpy; print(numpy.__version__)"
    return subprocess.check_output([python, "-c", program], text=True).strip()


def clean() -> dict[str, str]:
    """Nothing of the environment that this was started in."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


if __name__ == "__main__":
    main(sys.argv[1:])
