"""`[tool.gradsmith]`, changed files, and what is said of single operations."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gradsmith.command.changed import changed_files
from gradsmith.command.config import (
    KEYS,
    OPERATION_KEYS,
    ConfigError,
    config_for,
    settings_for,
)
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.core.errors import GradsmithError
from tests.command.test_check import RIGHT, WRONG, folder, told, write  # noqa: F401
from tests.command.test_report import run
from tests.command.test_verdicts import OPERATIONS

pytestmark = pytest.mark.usefixtures("folder")

LABELS = """
@gs.custom_gradient
def cross_entropy(x, labels):
    return -np.sum(labels * x), lambda dy: (-dy * labels, None)

@gs.custom_gradient
def half_wrong(x, w):
    return np.sum(w * x), lambda dy: (dy * w, 3 * dy * x)
"""


def statuses(*words: str) -> dict[str, str]:
    found = run("check", *words, "--quick", "--json", "all.json")
    assert Path("all.json").exists(), found.output
    rows = json.loads(Path("all.json").read_text(encoding="utf-8"))["results"]
    Path("all.json").unlink()
    return {f"{row['name']} {row['framework']}".strip(): row["status"] for row in rows}


def configure(text: str) -> None:
    Path("pyproject.toml").write_text(f"[project]\nname = 'x'\n\n{text}")


# --- reading


def test_paths_seed_and_limits_are_read(tmp_path, monkeypatch):
    write("src/ops.py", RIGHT)
    write("src/made/more.py", WRONG)
    write("other.py", WRONG)
    configure('[tool.gradsmith]\npaths = ["src"]\nexclude = ["src/made"]\nseed = 7\n')
    os.chdir("src")  # the nearest one above counts, and paths are relative to it
    found = run("check", "--quick", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["seed"] == 7
    assert [row["name"] for row in document["results"]] == ["right"]
    assert (
        json.loads(run("check", "--quick", "--json", "--seed", "3").stdout)["seed"] == 3
    )


def test_the_command_line_wins():
    write("ops.py", RIGHT, WRONG)
    configure('[tool.gradsmith]\npaths = ["ops.py"]\nframeworks = ["numpy"]\n')
    assert list(statuses()) == ["right NumPy", "wrong NumPy"]
    assert list(statuses("ops.py:right")) == ["right NumPy"]
    with_torch = statuses("ops.py:right", "--framework", "torch", "--framework", "jax")
    assert list(with_torch) == ["right PyTorch", "right JAX"]


def test_what_is_zero_or_turned_off_counts():
    write("ops.py", OPERATIONS)
    configure("[tool.gradsmith]\nquick = true\nstrict = true\nmax-ulp = 0\n")
    words = ("check", "ops.py:limited")
    assert run(*words).exit_code == 1
    assert run(*words, "--no-strict").exit_code == 0
    pytest.importorskip("flint")
    found = run("audit", "ops.py:right", "--points", "50", "--json")
    assert json.loads(found.stdout)["max_ulp"] == 0


def test_surrogates_and_strict():
    write("ops.py", WRONG)
    configure('[tool.gradsmith]\nsurrogate = ["wrong"]\nstrict = true\n')
    assert statuses("ops.py") == {"wrong NumPy": "as declared"}
    configure('[tool.gradsmith.operations."ops.*"]\nsurrogate = "for a reason"\n')
    assert statuses("ops.py") == {"wrong NumPy": "as declared"}
    configure("[tool.gradsmith]\n")
    assert statuses("ops.py") == {"wrong NumPy": "wrong"}


def test_the_report_and_the_audit_read_it_too():
    pytest.importorskip("flint")
    write("ops.py", RIGHT)
    configure(
        '[tool.gradsmith]\npaths = ["ops.py"]\nmax-ulp = 0.1\nquick = true\n'
        "[tool.gradsmith.operations.right]\ndomain = [1, 2]\n"
    )
    found = run("audit", "--points", "100")
    assert found.exit_code == 1
    assert "1 beyond 0.1 ULP" in found.stdout
    found = run("audit", "--points", "100", "--max-ulp", "4", "--json")
    report = json.loads(found.stdout)["results"][0]["report"]
    assert report["domain"] == [1, 2]
    found = run("audit", "--points", "99", "--domain", "3", "4", "--json")
    assert json.loads(found.stdout)["results"][0]["report"]["domain"] == [3, 4]
    assert run("report", "-o", "page.html").exit_code == 0


# --- refusing


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "max-upl = 3",
            ":6: [tool.gradsmith] has no 'max-upl'; did you mean 'max-ulp'",
        ),
        ("zzz = 3", "has no 'zzz'; what there is: paths, exclude"),
        ("paths = 'src'", ":6: [tool.gradsmith] paths = 'src': expected a list of str"),
        ("seed = -1", "seed = -1: expected an integer, 0 or larger"),
        ("seed = true", "seed = True: expected an integer"),
        ("strict = 1", "strict = 1: expected true or false"),
        ("time_limit = 0", "time_limit = 0: expected a positive number of seconds"),
        ("memory-limit = 'lots'", "expected a size, such as"),
        ("frameworks = ['numpi']", "expected a list of numpy, "),
        ("jobs = 0", "expected an integer, 1 or larger"),
        ("[tool.gradsmith.operations.f]\ndta = ['x']", "has no 'dta'; did you mean"),
        ("[tool.gradsmith.operations.f]\ndomain = [2, 1]", "expected two numbers"),
        ("operations.f = 3", "[tool.gradsmith.operations.f] is no table"),
        ("seed = ", "is not valid TOML"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text, words):
    write("ops.py", RIGHT)
    configure(f"[tool.gradsmith]\n# a comment\n{text}\n")
    for name in ("check", "audit", "report"):
        found = run(name, "ops.py")
        assert found.exit_code == 2
        assert "pyproject.toml" in found.output
        assert words in found.output.replace("\n", " ")
    assert run("check", "--help").exit_code == 0
    with pytest.raises(ConfigError):
        config_for()


@pytest.mark.parametrize("command", ["check", "report", "audit"])
def test_a_path_or_framework_that_is_not_there_is_told(command, monkeypatch):
    write("ops.py", RIGHT)
    configure("[tool.gradsmith]\nseed = 1\npaths = ['ops.py', 'scr']\n")
    found = run(command)
    assert found.exit_code == 2
    words = "paths: there is no file or folder 'scr'"
    assert f"pyproject.toml:6: [tool.gradsmith] {words}" in found.stderr
    monkeypatch.setattr(type(FRAMEWORKS["torch"]), "is_installed", False)
    configure("[tool.gradsmith]\npaths = ['ops.py']\nframeworks = ['torch']\n")
    found = run(command)
    assert found.exit_code == 2
    assert "PyTorch is not installed: pip install torch" in found.stderr


NAMED = """\
[tool.gradsmith]
paths = ["ops.py"]
# surrogate = ["rigth"]
surrogate = [
  "right",
  "rigth",
]
"""


@pytest.mark.parametrize("command", ["check", "report", "audit"])
def test_a_misspelt_operation_is_refused_with_its_place(command):
    if command == "audit":
        pytest.importorskip("flint")
    write("ops.py", RIGHT, WRONG)
    configure(f"{NAMED}[tool.gradsmith.operations.wrnog]\ndata = ['x']\n")
    found = run(command)
    assert found.exit_code == 2, found.output
    said = found.stderr.replace("\n", " ")
    words = "surrogate: there is no operation 'rigth'; did you mean 'right'?"
    assert f"pyproject.toml:9: [tool.gradsmith] {words}" in said
    table = "pyproject.toml:11: [tool.gradsmith.operations.wrnog]"
    words = "there is no operation 'wrnog'; did you mean 'wrong'?"
    assert f"{table}: {words}" in said
    assert found.stdout == ""


def test_an_operation_of_another_file_or_package_is_not_misspelt():
    write("ops.py", RIGHT)
    write("more.py", WRONG)
    write("tests/test_ops.py", "def test():\n    def inner(x): ...\n")
    known = ["wrong", "ops.*", "ops.right", "inner", "numpy.linalg.*", "r?ght"]
    configure(f"[tool.gradsmith]\npaths = ['ops.py']\nsurrogate = {known}\n")
    found = run("check", "--quick")
    assert found.exit_code == 0, found.output
    assert told(found) == []


def test_of_some_files_a_misspelt_operation_is_only_told():
    """Not all names are known then: one may be made when another file is imported."""
    write("ops.py", RIGHT)
    write("more.py", "globals()['ma' + 'de'] = 1")
    configure("[tool.gradsmith]\npaths = ['.']\nsurrogate = ['made']\n")
    found = run("check", "ops.py", "--quick")
    assert found.exit_code == 0, found.output
    assert "there is no operation 'made'; what there is: right" in found.stderr
    assert run("check", "--quick").exit_code == 2
    write("more.py", "@gs.custom_gradient\ndef broken(:")  # which may define it
    found = run("check", "--quick")
    assert found.exit_code == 3
    assert "there is no operation 'made'" in found.stderr


def test_underscores_and_hyphens_are_the_same():
    configure("[tool.gradsmith]\nmax_ulp = 3\ntime-limit = 2.5\n")
    assert config_for().values == {"max_ulp": 3, "time_limit": 2.5}


def test_other_projects_have_no_configuration():
    configure("[tool.other]\nx = 1\n")
    assert config_for().values == {}
    found = run("check")
    assert found.exit_code == 2
    assert "Missing argument 'TARGET...'" in found.output


def test_of_several_patterns_the_later_wins():
    operations = {"*": {"data": ["y"], "wrt": ["x"]}, "ops.f": {"data": ["z"]}}
    assert settings_for(operations, "f", "ops") == {"data": ["z"], "wrt": ["x"]}
    assert settings_for(operations, "g", "ops") == {"data": ["y"], "wrt": ["x"]}


def test_all_keys_are_documented():
    page = Path(__file__).parents[2].joinpath("docs", "ci.md").read_text("utf-8")
    for key in (*KEYS, *OPERATION_KEYS):
        assert f"`{key}`" in page


# --- wrt and data


def test_arguments_that_are_data():
    write("ops.py", LABELS)
    assert statuses("ops.py")["half_wrong NumPy"] == "wrong"
    words = ("ops.py", "--data", "half_wrong:w", "--data", "cross_entropy:labels")
    assert statuses(*words) == {
        "cross_entropy NumPy": "right",
        "half_wrong NumPy": "right",
    }
    found = statuses("ops.py", "-k", "half", "--wrt", "0")
    assert found == {"half_wrong NumPy": "right"}
    configure('[tool.gradsmith.operations."*.half_wrong"]\nwrt = ["x"]\n')
    assert statuses("ops.py")["half_wrong NumPy"] == "right"
    assert statuses("ops.py", "--wrt", "half_wrong:w")["half_wrong NumPy"] == "wrong"


def test_an_argument_or_operation_that_does_not_exist_is_told():
    write("ops.py", LABELS)
    found = run("check", "ops.py:half_wrong", "--quick", "--data", "half_wrong:weights")
    assert found.exit_code == 3
    assert "'weights' is no argument" in found.output
    found = run("check", "ops.py:half_wrong", "--quick", "--wrt", "full:x")
    told = "no operation of this name was found"
    assert f"--wrt full:x: {told}; what there is: half_wrong" in found.stderr
    found = run("check", "ops.py:half_wrong", "--quick", "--surrogate", "half")
    hint = "did you mean 'half_wrong'?"
    assert f"--surrogate half: {told}; {hint}" in found.stderr


# --- files that define nothing


def test_files_without_custom_gradients_are_fine_if_they_may_be():
    Path("plain.py").write_text("open('ran', 'w').close()\n")
    write("ops.py", RIGHT)
    found = run("check", "plain.py", "--allow-empty")
    assert found.exit_code == 0
    assert found.stdout == "no custom gradient in 1 file\n"
    assert not Path("ran").exists()
    found = run("check", "plain.py", "ops.py", "--allow-empty", "--quick")
    assert found.exit_code == 0
    assert "1 right in" in found.stdout
    assert run("check", "--allow-empty").exit_code == 2
    found = run("audit", "plain.py", "--allow-empty", "--format", "github")
    assert found.exit_code == 0
    assert found.stdout.endswith("::no custom gradient in 1 file\n")
    # A name is asked for explicitly, and nothing found stays status 3 without it
    assert run("check", "plain.py:f", "--allow-empty").exit_code == 3
    assert run("check", "plain.py").exit_code == 3


# --- changed files


def git(*words: str) -> str:
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    found = subprocess.run(
        ["git", *names, *words], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


@pytest.fixture
def repository(folder):  # noqa: F811
    git("init", "--quiet", "--initial-branch", "main")
    write("src/ops.py", RIGHT)
    write("src/same.py", WRONG)
    write("gone.py", WRONG)
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    return folder


def test_changed_files_alone(repository):
    git("checkout", "--quiet", "-b", "work")
    write("src/ops.py", RIGHT, "\n# another line\n")
    write("src/ä new.py", WRONG)
    Path("gone.py").unlink()
    git("commit", "--quiet", "-a", "-m", "second")
    assert changed_files("main", ()) == ["src/ops.py", "src/ä new.py"]
    assert changed_files("HEAD", ()) == ["src/ä new.py"]  # not committed yet
    assert changed_files("main", ("src/ops.py",)) == ["src/ops.py"]
    Path("docs").mkdir()
    assert changed_files("main", ("docs",)) == []
    with pytest.raises(GradsmithError, match=r"src\.ops:right' is no file or folder"):
        changed_files("main", ("src.ops:right",))
    os.chdir("src")
    assert changed_files("main", ()) == ["ops.py", "ä new.py"]
    os.chdir("..")
    assert statuses("src", "--changed", "main") == {
        "right NumPy": "right",
        "wrong NumPy": "wrong",
    }
    found = run("check", "docs", "--changed", "main")
    assert found.exit_code == 0
    assert found.stdout == "no file has changed\n"


def test_what_another_branch_changed_since_is_not_ours(repository):
    git("checkout", "--quiet", "-b", "work")
    write("mine.py", RIGHT)
    git("add", ".")
    git("commit", "--quiet", "-m", "mine")
    git("checkout", "--quiet", "main")
    write("theirs.py", RIGHT)
    git("add", ".")
    git("commit", "--quiet", "-m", "theirs")
    git("checkout", "--quiet", "work")
    assert changed_files("main", ()) == ["mine.py"]


def test_a_base_that_is_not_there_is_told(repository):
    found = run("check", "--changed", "nowhere")
    assert found.exit_code == 2
    assert "there is no such commit here" in found.output
    assert "fetch-depth: 0" in found.output
    with pytest.raises(GradsmithError, match="--changed src"):
        changed_files("src", ())


def test_outside_of_a_repository(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("plain"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    found = run("check", "--changed")
    assert found.exit_code == 2
    assert "not a git repository: " in found.output
    assert "what to do: leave --changed out" in found.output


def test_before_the_first_commit(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("new"))
    git("init", "--quiet")
    monkeypatch.setenv("LANGUAGE", "de")
    found = run("check", "--changed")
    assert found.exit_code == 2
    assert "there is no commit here yet" in found.output
    assert "fetch" not in found.output
