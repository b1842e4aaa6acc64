"""Statuses, outputs, journals and stray files, by the real command line."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import gradsmith
from tests.command.test_check import HEAD, RIGHT, WRONG, folder, write  # noqa: F401

pytestmark = pytest.mark.usefixtures("folder")


def run(*words: str, **options):
    """`python -m gradsmith`, which never ends with a traceback."""
    shared = {"stdout": -1, "stderr": -1, "text": True, "errors": "surrogateescape"}
    found = subprocess.run(
        [sys.executable, "-m", "gradsmith", *words],
        timeout=600,
        check=False,
        **{**shared, **options},
        env={**os.environ, "PYTHONPATH": str(Path(gradsmith.__file__).parents[1])},
    )
    assert "Traceback" not in str(found.stderr)
    return found


def check(*words: str, **options):
    return run("check", *words, "--quick", "--jobs", "1", **options)


# --- outputs


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--json", "no/such/all.json"),
        ("check", "--json", "taken"),
        ("check", "--html", "no/such/page.html"),
        ("check", "--resume", "no/such/done.jsonl"),
        ("check", "--resume", "taken"),
        ("report", "-o", "taken"),
        ("audit", "--json", "no/such/all.json"),
        ("audit", "--resume", "no/such/done.jsonl"),
    ],
)
def test_a_bad_path_is_told_before_the_work(words):
    write("ops.py", "open('ran', 'w').close()\n", RIGHT)
    Path("taken").mkdir()
    name, *option = words
    found = run(name, "ops.py", *option)
    assert found.returncode == 2, found.stderr
    assert option[1] in found.stderr
    assert not Path("ran").exists()


def test_a_folder_that_takes_no_files(monkeypatch):
    write("ops.py", RIGHT)
    found = check("ops.py", "--json", "/proc/all.json")
    assert found.returncode == 2
    assert "/proc" in found.stderr


@pytest.mark.parametrize("option", ["--json", "--html", "--resume"])
def test_a_full_disk_has_its_own_status_and_keeps_the_results(option):
    write("ops.py", RIGHT)
    found = check("ops.py", option, "/dev/full")
    assert found.returncode == 4
    assert "1 right in" in found.stdout
    assert "/dev/full" in found.stderr
    assert "No space left" in found.stderr


def test_what_is_wrong_is_said_first_of_all():
    write("ops.py", WRONG)
    assert check("ops.py", "--json", "/dev/full").returncode == 1


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_standard_output(words):
    write("ops.py", RIGHT)
    with open("/dev/full", "w") as full:
        found = check("ops.py", *words, stdout=full)
    assert found.returncode == 4
    assert "No space left" in found.stderr
    assert "Exception ignored" not in found.stderr


def test_a_closed_standard_output():
    write("ops.py", RIGHT)
    read, closed = os.pipe()
    os.close(read)
    found = check("ops.py", stdout=closed)
    os.close(closed)
    assert found.returncode == 4


def test_an_output_is_written_whole_or_not_at_all(monkeypatch):
    from gradsmith.command import outputs

    Path("all.json").write_text("before")
    os.chmod("all.json", 0o640)
    Path("link.json").symlink_to("all.json")
    outputs.write("link.json", "after")
    assert Path("all.json").read_text() == "after"
    assert Path("link.json").is_symlink()
    assert stat.S_IMODE(os.stat("all.json").st_mode) == 0o640

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        outputs.write("all.json", "lost")
    assert Path("all.json").read_text() == "after"
    assert sorted(os.listdir()) == ["all.json", "link.json"]  # nothing half-written


def test_a_mistake_of_ours_has_its_own_status(monkeypatch):
    write("ops.py", RIGHT)
    code = (
        "from gradsmith.command import check, main\n"
        "def fails(*_): raise LookupError('ours')\n"
        "check.followed = fails; main.main()"
    )
    words = [sys.executable, "-c", code, "check", "ops.py"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 5
    assert "internal error: LookupError: ours" in found.stderr
    assert "Traceback" not in found.stderr
    env = {**os.environ, "GRADSMITH_TRACEBACK": "1"}
    again = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert again.returncode == 5
    assert "Traceback" in again.stderr


@pytest.mark.parametrize(
    "name", ["", "check", "audit", "report", "init", "doctor", "badge"]
)
def test_help_reads_well_in_80_columns(name):
    from click.testing import CliRunner

    from gradsmith.command.command import gradsmith as command

    words = [*([name] if name else []), "--help"]
    found = CliRunner().invoke(command, words, terminal_width=80)
    assert found.exit_code == 0
    assert max(map(len, found.stdout.splitlines())) <= 80
    assert not re.search(r"\w\.\.\.$", found.stdout, re.MULTILINE)  # cut off
    assert "\\b" not in found.stdout
    assert not re.search(r"\S {2,}\S", found.stdout.partition("Options:")[0][:200])


@pytest.mark.parametrize("name", ["check", "audit", "report"])
def test_help_lists_the_statuses(name):
    found = run(name, "--help")
    words = " ".join(found.stdout.split())
    for status in ("0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "130 "):
        assert f" {status}" in words[words.index("Exit status") :]


def test_statuses_of_what_could_not_be_judged():
    write("ops.py", "1 / 0\n")
    assert check("ops.py").returncode == 3
    assert check("nothing.py").returncode == 2
    assert check("ops.py", "--time-limit", "0").returncode == 2


# --- stray files


def test_stray_files_are_named_and_skipped():
    write("src/ops.py", RIGHT)
    Path("src/.#ops.py").symlink_to("ada@host.1234:5678")
    Path("src/lost.py").symlink_to("nowhere")
    Path("src/loop.py").symlink_to("loop.py")
    Path("src/around").symlink_to("..")
    Path("src/x.py").mkdir()
    write("src/x.py/inner.py", RIGHT.replace("right", "inner"))
    os.mkfifo("src/pipe.py")
    Path("src/latin.py").write_bytes(b"import gradsmith\n# caf\xe9 custom_gradient\n")
    Path("src/nul.py").write_bytes(b"import gradsmith\0 custom_gradient\n")
    Path(os.fsdecode(b"src/\xff\x1b.py")).write_text(HEAD + RIGHT)
    found = check("src", "--json", "all.json")
    assert found.returncode == 0, found.stderr
    assert "3 right in" in found.stdout
    for name in ("lost.py", "loop.py", "pipe.py", "latin.py", "nul.py", ".#ops.py"):
        assert found.stderr.count(f"skipped src/{name}") == 1, found.stderr
    assert len(json.loads(Path("all.json").read_text())["results"]) == 3


def test_a_fifo_as_a_target():
    os.mkfifo("pipe.py")
    found = check("pipe.py")
    assert found.returncode == 2
    assert "pipe.py" in found.stderr


NOTHING = {
    "comment": "# custom_gradient of gradsmith\n",
    "words": "'gs.custom_gradient, torch.autograd.Function'\n",
    "user": "import gradsmith as gs\ngs.grad(lambda x: x * x)(2.0)\n",
    "script": "import gradsmith as gs\nif __name__ == '__main__':\n"
    "    @gs.custom_gradient\n    def f(x): return x, None\n",
    "tests": "import gradsmith as gs\ndef test():\n"
    "    @gs.custom_gradient\n    def f(x): return x, None\n",
    "annotated": "from collections.abc import Callable as Function\n"
    "def call(f: Function) -> None: ...\n",
}
SOMETHING = {
    "made": "def make(k):\n    @gs.custom_gradient\n    def f(x):\n"
    "        return k * x, lambda dy: k * dy\n    return f\n\nmade = make(2)\n",
    "deeper": "def inner():\n    return gs.with_gradient(np.sin, lambda dy, y, x:"
    " dy * np.cos(x))\ndef outer():\n    return inner()\nclass A:\n    d = outer()\n",
    "renamed": "from gradsmith import custom_gradient as cg\n@cg\ndef renamed(x):\n"
    "    return x, lambda dy: dy\n",
    "starred": "from gradsmith import *\n@custom_gradient\ndef starred(x):\n"
    "    return x, lambda dy: dy\n",
    "tried": "try:\n    @gs.custom_gradient\n    def tried(x):\n"
    "        return x, lambda dy: dy\nfinally:\n    pass\n",
}


def test_a_folder_is_searched_without_running_what_defines_nothing():
    for name, code in NOTHING.items():
        ran = f"open('{name}.ran', 'w').close()\n"
        Path(f"{name}.py").write_text(ran + code, encoding="utf-8")
    for name, code in SOMETHING.items():
        write(f"{name}.py", code)
    found = check(".", "--json", "all.json")
    assert [path.name for path in Path().glob("*.ran")] == []
    rows = json.loads(Path("all.json").read_text())["results"]
    assert sorted(row["name"] for row in rows) == [
        "A.d", "made", "renamed", "starred", "tried",
    ]  # fmt: skip
    assert found.returncode == 0


# --- what reaches a terminal

ESCAPES = r"""
@gs.custom_gradient
def evil(x):
    print("\x1b[2J\x1b]0;title\x07 \x9b31m printed")
    raise ValueError("\x1b[31mred\x1b[0m \u202egnirts \x00 \x7f \ud800")

evil.__name__ = "evil\x1b[1m"

@gs.custom_gradient
def wrong(x):
    return x**2, lambda dy: 3 * x * dy

wrong.__name__ = wrong.__qualname__ = "\x1b]8;;http://bad\x07wrong"
"""


@pytest.mark.parametrize("output", ["-", "all.json"])
def test_escape_sequences_do_not_reach_the_terminal(output):
    write("ops.py", ESCAPES)
    found = check("ops.py", "--json", output, text=False, errors=None)
    assert found.returncode == 1
    said = (found.stdout + found.stderr).decode("utf-8")
    assert "printed" in said
    assert "red" in said
    control = {c for c in said if ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e"}
    assert control == {"\n"}


# --- journals

ROW = 1  # the line of the result


def _cut(lines):
    lines[ROW] = lines[ROW][:40]


def _half_utf8(lines):
    lines[ROW] = lines[ROW].replace(b"ops.py", b"ops\xe2\x82.py")


DAMAGE = {
    "empty": lambda ls: ls.__setitem__(slice(None), [b""]),
    "cut": _cut,
    "cut at the end": lambda ls: ls.__setitem__(-1, ls[-1].rstrip(b"\n")[:-9]),
    "without the last newline": lambda ls: ls.__setitem__(-1, ls[-1].rstrip(b"\n")),
    "nul": lambda ls: ls.__setitem__(ROW, b"\0" * 4096 + b"\n"),
    "nul inside": lambda ls: ls.__setitem__(ROW, ls[ROW][:50] + b"\0" + ls[ROW][51:]),
    "a number": lambda ls: ls.__setitem__(ROW, b"17\n"),
    "a list": lambda ls: ls.__setitem__(ROW, b"[1, 2]\n"),
    "a string": lambda ls: ls.__setitem__(ROW, b'"key"\n'),
    "null": lambda ls: ls.__setitem__(ROW, b"null\n"),
    "an empty dict": lambda ls: ls.__setitem__(ROW, b"{}\n"),
    "key of a list": lambda ls: ls.__setitem__(ROW, b'{"key": [1]}\n'),
    "key of a dict": lambda ls: ls.__setitem__(ROW, b'{"key": {"a": 1}}\n'),
    "status changed": lambda ls: ls.__setitem__(
        ROW, ls[ROW].replace(b'"status": "right"', b'"status": "fine"')
    ),
    "verdict changed": lambda ls: ls.__setitem__(
        ROW, ls[ROW].replace(b'"status": "right"', b'"status": "wrong"')
    ),
    "keys missing": lambda ls: ls.__setitem__(
        ROW, ls[ROW].replace(b'"status"', b'"states"')
    ),
    "report of another type": lambda ls: ls.__setitem__(
        ROW, ls[ROW].replace(b'"findings": []', b'"findings": 3')
    ),
    "listing of another type": lambda ls: ls.__setitem__(
        0, ls[0].replace(b'[["right", ""]]', b'[7]')
    ),
    "twice": lambda ls: ls.append(ls[ROW]),
    "crlf": lambda ls: ls.__setitem__(
        slice(None), [x.replace(b"\n", b"\r\n") for x in ls]
    ),
    "bom": lambda ls: ls.insert(0, b"\xef\xbb\xbf" + ls.pop(0)),
    "half utf-8": _half_utf8,
    "utf-16": lambda ls: ls.__setitem__(
        slice(None), [b"".join(ls).decode().encode("utf-16")]
    ),
    "binary": lambda ls: ls.insert(0, bytes(range(256)) + b"\n"),
    "deep": lambda ls: ls.insert(0, b"[" * 100_000 + b"\n"),
    "huge number": lambda ls: ls.insert(0, b'{"key": ' + b"9" * 5000 + b"}\n"),
    "long line": lambda ls: ls.insert(0, b"x" * 3_000_000 + b"\n"),
    "blank lines": lambda ls: ls.insert(0, b"\n\n\n"),
}  # fmt: skip
HARMLESS = {"empty", "without the last newline", "twice", "crlf", "bom", "blank lines"}


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """A folder with an operation and the journal of its check."""
    place = tmp_path_factory.mktemp("journal")
    (place / "ops.py").write_text(HEAD + RIGHT, encoding="utf-8")
    assert check("ops.py", "--resume", "done.jsonl", cwd=place).returncode == 0
    return place


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_journal(kind, journal, capsys, monkeypatch):
    """In this process, since there are many; what it says is the command's."""
    from click.testing import CliRunner

    from gradsmith.command.command import gradsmith as command

    monkeypatch.chdir(journal)
    lines = (journal / "done.jsonl").read_bytes().splitlines(keepends=True)
    DAMAGE[kind](lines)
    Path("bad.jsonl").write_bytes(b"".join(lines))
    words = ["check", "ops.py", "--quick", "--jobs", "1", "--resume", "bad.jsonl"]
    found = CliRunner().invoke(command, words)
    assert found.exit_code == 0, (found.stderr, found.exception)
    assert "1 right in" in found.stdout
    said = "skipped" in found.stderr
    assert said == (kind not in HARMLESS), found.stderr
    if said:
        assert "bad.jsonl, line" in found.stderr
    again = CliRunner().invoke(command, words)  # which has all it needs
    assert again.exit_code == 0
    assert "✓ right" in again.stdout


def test_a_damaged_journal_by_the_command_line(journal):
    lines = (journal / "done.jsonl").read_bytes().splitlines(keepends=True)
    DAMAGE["verdict changed"](lines)
    Path("bad.jsonl").write_bytes(b"".join(lines))
    found = check(str(journal / "ops.py"), "--resume", "bad.jsonl")
    assert found.returncode == 0
    assert "skipped bad.jsonl, line 2" in found.stderr
