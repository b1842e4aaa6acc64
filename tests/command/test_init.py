"""`gradsmith init`: what it finds, what it writes, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradsmith.command.command import gradsmith as command
from gradsmith.command.config import config_for
from gradsmith.command.definitions import defined, line_of
from tests.command.test_action import PLAIN
from tests.command.test_check import RIGHT, WRONG, folder, write  # noqa: F401

pytestmark = pytest.mark.usefixtures("folder")
BEFORE = """\
# The project of Ada
[project]
name = "ada"   # two spaces before this

[tool.other]
x = {a = 1, b = [1,
  2]}"""
TEST = Path("tests/test_gradients.py")


def init(*words: str):
    found = CliRunner().invoke(command, ["init", *words])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_a_project_gets_a_configuration_and_a_test():
    write("src/losses.py", RIGHT, WRONG)
    Path("pyproject.toml").write_text(BEFORE, encoding="utf-8")
    found = init()
    assert found.exit_code == 0
    assert "2 custom gradients found:\n  src/losses.py:6  right" in found.stdout
    after = Path("pyproject.toml").read_text(encoding="utf-8")
    assert after.startswith(BEFORE + "\n\n[tool.gradsmith]\n")
    assert config_for().paths == ("src",)
    assert "def test_right(gradient_check):" in TEST.read_text(encoding="utf-8")
    before = [path.read_text("utf-8") for path in (TEST, Path("pyproject.toml"))]
    again = init()
    assert again.exit_code == 0
    assert again.stdout.count("already: left unchanged") == 2
    assert before == [
        path.read_text("utf-8") for path in (TEST, Path("pyproject.toml"))
    ]


def test_the_test_that_it_writes_tells_right_from_wrong():
    write("losses.py", RIGHT)
    init()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TEST)]
    run = lambda: subprocess.run(
        words, env=PLAIN, capture_output=True, text=True, check=False
    )
    assert run().returncode == 0
    write("losses.py", WRONG)
    found = run()
    assert found.returncode == 1
    assert "times the derivative" in found.stdout
    assert "CompletedProcess" not in found.stdout  # the report alone


def test_nothing_is_written_in_a_dry_run():
    write("package/__init__.py")
    write("package/ops.py", RIGHT)
    found = init("--dry-run")
    assert found.exit_code == 0
    assert '| paths = ["package"]' in found.stdout
    assert found.stdout.endswith("Nothing was written.\n")
    assert not Path("pyproject.toml").exists()
    assert not Path("tests").exists()


def test_a_test_that_is_there_is_not_overwritten():
    TEST.parent.mkdir()
    TEST.write_text("mine")
    found = init()
    assert "There are no custom gradients here yet." in found.stdout
    assert f"{TEST} exists already" in found.stdout
    assert TEST.read_text() == "mine"


def test_a_broken_pyproject_is_not_touched():
    Path("pyproject.toml").write_text("[project\n")
    found = init()
    assert found.exit_code == 2
    assert "is not valid TOML" in found.output
    assert Path("pyproject.toml").read_text() == "[project\n"
    assert not TEST.exists()


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (b"# \xe9\n", "is not valid TOML"),
        (b"tool = {other = {a = 1}}\n", "what to do"),
        (b"tool = 3\n", "what to do"),
        (b"[tool]\ngradsmith = 3\n", "[tool.gradsmith] is no table"),
        (b"[tool.gradsmith]\nsed = 3\n", "did you mean 'seed'?"),
    ],
)
def test_a_pyproject_that_takes_no_table_is_not_touched(before, words):
    Path("pyproject.toml").write_bytes(before)
    found = init()
    assert found.exit_code == 2
    assert words in found.output
    assert Path("pyproject.toml").read_bytes() == before
    assert not TEST.exists()


def test_ends_of_lines_stay_as_they_are():
    Path("pyproject.toml").write_bytes(b'[project]\r\nname = "x"\r\n')
    assert init().exit_code == 0
    after = Path("pyproject.toml").read_bytes()
    assert after.startswith(b'[project]\r\nname = "x"\r\n\r\n[tool.gradsmith]\r\n')
    assert after.count(b"\n") == after.count(b"\r\n")


@pytest.mark.parametrize("name", ['we"ird', "back\\slash", "größe"])
def test_any_name_of_a_folder(name):
    write(f"{name}/__init__.py", RIGHT)
    assert init().exit_code == 0
    assert config_for().paths == (name,)


def test_where_nothing_can_be_written():
    Path("tests").touch()
    found = init()
    assert found.exit_code == 2
    assert f"{TEST} can't be written: File exists: tests" in found.output
    Path("pyproject.toml").unlink()
    Path("pyproject.toml").mkdir()
    found = init()
    assert found.exit_code == 2
    assert "pyproject.toml: Is a directory" in found.output


def test_a_folder_that_may_not_be_written_to(monkeypatch):
    def refuses(file, text):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("gradsmith.command.init.write", refuses)
    found = init()
    assert found.exit_code == 2
    assert "pyproject.toml can't be written: Permission denied" in found.output


def test_what_comes_next():
    assert init().stdout.endswith(
        "Next: write an operation with its gradient, then run gradsmith check\n"
    )
    write("ops.py", RIGHT)
    assert init().stdout.endswith("Next: run gradsmith check\n")


def test_operations_are_found_by_the_text_alone():
    code = b"""
import jax, torch, gradsmith as gs
raise SystemExit("never run")

@gs.custom_gradient(surrogate="why")
def one(x): ...

two = gs.with_gradient(abs, lambda dy, y, x: dy)

class Three(torch.autograd.Function):
    def forward(ctx, x): ...

@jax.custom_vjp
def four(x): ...

class Held:
    @gs.operation
    def five(self, x): ...

def plain(x): ...
other = plain(3)
if True:
    @gs.python_op
    def six(x): ...
"""
    assert list(defined(code)) == ["one", "two", "Three", "four", "Held.five", "six"]
    assert defined(code)["one"] == line_of(code, "one") == 5
    assert line_of(code, "plain") == 20
    assert line_of(code, "missing") is None
    assert defined(b"def (") == {}
