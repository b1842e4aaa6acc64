"""What `make dist` refuses. It runs by itself in CI, as it needs the network."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from . import dist, pythons, user
from .project import PROJECT, ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="git knows which files are ours"
)
INFO = f"gradsmith-{PROJECT['version']}.dist-info"
METADATA = ["METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"]


@pytest.fixture(scope="module")
def wheel():
    return dist.installed_files() | {f"{INFO}/{name}" for name in METADATA}


@pytest.fixture(scope="module")
def sdist():
    return dist.files("src/", "tests/", "docs/") | {"LICENSE", "README.md", "Makefile"}


def test_what_is_complete_is_accepted(wheel, sdist):
    dist.require_wheel(wheel)
    dist.require_sdist(sdist)
    dist.require_sdist(sdist | {"PKG-INFO"})


@pytest.mark.parametrize(
    "lost",
    ["gradsmith/py.typed", "gradsmith_pytest.py", f"{INFO}/licenses/LICENSE"],
)
def test_a_wheel_that_lacks_a_file_is_refused(wheel, lost):
    assert lost in wheel
    with pytest.raises(SystemExit, match="lacks"):
        dist.require_wheel(wheel - {lost})


def test_a_wheel_with_tests_is_refused(wheel):
    with pytest.raises(SystemExit, match="tests/test_public"):
        dist.require_wheel(wheel | {"tests/test_public.py"})


@pytest.mark.parametrize("lost", ["tests/test_public.py", "docs/check.md", "LICENSE"])
def test_an_sdist_that_lacks_a_file_is_refused(sdist, lost):
    with pytest.raises(SystemExit, match=lost):
        dist.require_sdist(sdist - {lost})


def test_other_files_in_dist_are_refused(tmp_path):
    (tmp_path / "gradsmith-0.0.1.tar.gz").touch()
    with pytest.raises(SystemExit, match=r"gradsmith-0\.0\.1"):
        dist.built(tmp_path)


def test_a_command_that_fails_says_what_it_said():
    program = "print('here'); raise SystemExit(3)"
    with pytest.raises(SystemExit, match=r"(?s): 3\nhere"):
        dist.run(sys.executable, "-c", program)
    assert dist.run(sys.executable, "-c", program, ok=3) == "here\n"


def test_the_users_file_is_right():
    user.gradients()


# --- which Pythons -------------------------------------------------------------------


def fake(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


def test_an_interpreter_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pythons.interpreter("python3.12") is None
    fake(tmp_path, "python3.12", "echo /somewhere/python3.12")
    assert pythons.interpreter("python3.12") == "/somewhere/python3.12"


def test_one_behind_a_shim_of_pyenv_is_found(tmp_path, monkeypatch):
    """The shim is on the PATH, and fails unless a version is chosen."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    monkeypatch.delenv("PYENV_VERSION", raising=False)
    shim = 'test "$PYENV_VERSION" && echo /versions/$PYENV_VERSION/python'
    fake(tmp_path, "python3.12", shim)
    assert pythons.interpreter("python3.12") is None
    fake(tmp_path, "pyenv", "echo 3.12.1")
    assert pythons.interpreter("python3.12") == "/versions/3.12.1/python"


def test_none_that_passed_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(pythons, "interpreter", lambda name: None)
    with pytest.raises(SystemExit, match="none of them is installed"):
        pythons.main(["tests/core"])
    assert "python3.14: not installed" in capsys.readouterr().out
