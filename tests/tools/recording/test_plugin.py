"""`pytest --gradsmith`, on suites that know nothing of it, and `gradient_check`."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import gradsmith
from gradsmith.tools.recording import summary

from . import suites

pytest_plugins = "pytester"

_SOURCE = Path(gradsmith.__file__).parents[1]
_INSTALLED = any(each.name == "gradsmith" for each in entry_points(group="pytest11"))
TIME = ("--gradsmith-max-seconds=300",)  # whatever else the machine does
# Alone: to load all plugins that are installed takes 1.4 s
ALONE, LOADED = "PYTEST_DISABLE_PLUGIN_AUTOLOAD", ("-p", "gradsmith_pytest")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a suite in a process of its own; its rows by name, and what it printed."""
    monkeypatch.setenv("PYTHONPATH", str(_SOURCE))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv(ALONE, "1")

    def run(code: str, *options: str) -> Suite:
        pytester.makepyfile(test_suite=code)
        loaded = LOADED if ALONE in os.environ else ()
        result = pytester.runpytest_subprocess(
            *loaded, *TIME, "-p", "no:cacheprovider", *options
        )
        return Suite(result)

    return run


class Suite:
    def __init__(self, result: Any) -> None:
        self.status = int(result.ret)
        self.text = result.stdout.str()
        self.passed = result.parseoutcomes().get("passed", 0) if self.text else None

    def row(self, name: str) -> str:
        """The line of the table, without the spaces that align it."""
        (line,) = re.findall(rf"^. +{re.escape(name)}  .*$", self.text, re.MULTILINE)
        return re.sub(" +", " ", line)


@pytest.mark.skipif(not _INSTALLED, reason="gradsmith is not installed")
def test_without_the_option_nothing_happens(suite, monkeypatch):
    monkeypatch.delenv(ALONE)
    code = """
        import sys
        def test_it():
            assert not {"gradsmith", "numpy"} & set(sys.modules)
        """
    result = suite(code, "-p", "no:jaxtyping")  # another's plugin, which needs NumPy
    assert (result.status, result.passed) == (0, 1)
    assert "custom gradients" not in result.text


def test_no_framework_is_imported(suite):
    code = """
        import sys
        def test_it():
            assert not {"torch", "jax", "tensorflow", "keras"} & set(sys.modules)
        """
    result = suite(code, "--gradsmith")
    assert (result.status, result.passed) == (0, 1)
    assert "no custom gradient was exercised" in result.text


def test_operations_of_ours(suite):
    result = suite(suites.OURS, "--gradsmith")
    assert (result.status, result.passed) == (1, 3)
    place = "test_suite.py"
    assert result.row("wrong") == (f"✗ wrong NumPy {place}:4 wrong {place}::test_wrong")
    assert result.row("right") == (
        f"✓ right NumPy {place}:8 right {place}::test_right and 1 more"
    )
    assert f"{place}:4: wrong(float64[3])" in result.text
    assert "✗ wrong in NumPy" in result.text  # the report itself
    assert "2 custom gradients: 1 wrong; 1 right" in result.text


def test_torch(suite, pytester):
    pytester.makeconftest(suites.TORCH_CONFTEST)
    result = suite(suites.TORCH, "--gradsmith")
    assert (result.status, result.passed) == (1, 10), result.text
    assert "test_suite.py:5 wrong" in result.row("Wrong")
    assert "test_suite.py:16 right" in result.row("Right")
    assert "right, with limits" in result.row("Masked")
    assert "x has changed" not in result.text
    assert "Wrong(float32[5])" in result.text  # also where it was traced
    assert " wrong " in result.row("Compiled")
    assert "Compiled(float32[3], 3)\n  with random values" in result.text
    assert " wrong " in result.row("compiled_ours")
    assert "compiled_ours(float32[3])\n  with random values" in result.text
    assert " wrong " in result.row("suite::sine")
    assert " right, with limits " in result.row("Layer.Double")
    assert "conftest.py:3 wrong test_suite.py::test_conf" in result.row("Double")
    assert "failed:" not in result.text


def test_jax(suite):
    result = suite(suites.JAX, "--gradsmith")
    assert (result.status, result.passed) == (1, 5), result.text
    assert "test_suite.py:4 right" in result.row("right")
    assert "test_suite.py:13 wrong" in result.row("wrong")
    assert "wrong(float32[4])\n  with random values" in result.text
    assert " wrong " in result.row("wrong_too")
    assert "not checked" in result.row("inner")
    assert "inner: uses what is traced around it" in result.text
    assert "the frameworks' own: 1" in result.text
    assert "failed:" not in result.text


def test_tensorflow(suite):
    result = suite(suites.TENSORFLOW, "--gradsmith")
    assert (result.status, result.passed) == (1, 3), result.text
    assert "test_suite.py:3 wrong" in result.row("wrong")
    assert "test_suite.py:8 right" in result.row("Layer.right")
    assert " wrong " in result.row("graph")
    assert "graph(float32[?,2], 2.0)\n  with random values" in result.text
    assert "failed:" not in result.text


WORKERS, JSON = ("-p", "xdist.plugin"), ("--gradsmith-json=found.json",)


def test_workers_hand_over_what_they_found(suite, pytester):
    result = suite(suites.OURS, *WORKERS, "-n2", "--gradsmith", *JSON)
    assert (result.status, result.passed) == (1, 3)
    assert " wrong " in result.row("wrong")
    assert "and 1 more" in result.row("right")
    found = json.loads((pytester.path / "found.json").read_text(encoding="utf-8"))
    assert [row["verdict"] for row in found["operations"]] == ["wrong", "right"]
    assert found["operations"][0]["cases"][0]["report"]["findings"]
    assert found["problems"] == []


def test_a_crashed_worker_is_mentioned(suite):
    code = "import os\ndef test_it(): os._exit(1)\ndef test_other(): pass"
    result = suite(code, *WORKERS, "-n1", "--max-worker-restart=0", "--gradsmith")
    assert "worker gw0 crashed: what it recorded is lost" in result.text


def test_report_only(suite):
    result = suite(suites.OURS, "--gradsmith-report-only")
    assert result.status == 0
    assert " wrong " in result.row("wrong")


def test_without_a_terminal_the_status_tells(suite, pytester):
    result = suite(suites.OURS, "-pno:terminal", "--gradsmith-json=found.json")
    assert result.status == 1
    assert (pytester.path / "found.json").exists()


def test_what_is_declared_is_ignored(suite, pytester):
    pytester.makeini("[pytest]\ngradsmith_ignore =\n    wro*\n")
    result = suite(suites.OURS, "--gradsmith")
    assert result.status == 0
    assert " ignored " in result.row("wrong")


MISSPELT = "gradsmith: gradsmith_ignore: the pattern 'wrogn' matches no custom gradient"


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n1")], ids=["", "xdist"])
def test_a_pattern_that_matches_nothing_is_told(suite, pytester, workers):
    pytester.makeini("[pytest]\ngradsmith_ignore =\n    wrogn\n    righ?\n")
    result = suite(suites.OURS, "--gradsmith", *workers)
    assert result.status == 1  # the operation is checked, and wrong
    assert f"{MISSPELT}; did you mean 'wrong'?" in result.text
    assert "'righ?'" not in result.text


@pytest.mark.parametrize(
    "options",
    [
        ("-k", "test_right"),
        ("test_suite.py",),
        ("test_suite.py::test_wrong",),
        ("--deselect", "test_suite.py::test_right"),
        ("--ignore", "elsewhere"),
        ("-p", "xdist", "-n1", "-k", "test_right"),
    ],
    ids=" ".join,
)
def test_a_part_of_a_suite_says_nothing_of_patterns(suite, pytester, options):
    pytester.makeini("[pytest]\ngradsmith_ignore =\n    wrogn\n")
    assert "wrogn" not in suite(suites.OURS, "--gradsmith", *options).text


def test_patterns_of_what_a_project_defines_are_right(suite, pytester):
    """It may be for a machine that has a GPU, or for another package."""
    pytester.makeini(
        "[pytest]\ngradsmith_ignore =\n    Spike\n    layers.R*\n    numpy.round\n"
        "testpaths = tests\n"
    )
    pytester.makepyfile(layers="class Round: pass\nSpike = Round")
    pytester.mkdir("tests").joinpath("test_it.py").write_text(
        f"{suites.OURS}\nimport pytest\n@pytest.mark.skip\ndef test_spike(): pass\n"
    )
    for options in ((), ("tests",)):
        assert "gradsmith_ignore" not in suite("", "--gradsmith", *options).text
    pytester.path.joinpath("layers.py").unlink()
    result = suite("", "--gradsmith", "tests")
    assert "the pattern 'Spike' matches no custom gradient" in result.text
    assert "numpy.round" not in result.text


def test_the_time_is_limited(suite):
    result = suite(suites.OURS, "--gradsmith", "--gradsmith-max-seconds=0")
    assert result.status == 0
    assert "not checked" in result.row("wrong")
    assert "the time was up" in result.text


def test_what_was_checked_counts():
    row: Any = {"ignored": False, "cases": []}
    for verdict in ("surrogate", "not checked"):  # the first inputs, then no time
        row["cases"].append({"verdict": verdict})
    assert summary.verdict_of(row) == "surrogate"
    assert summary.verdict_of(row | {"cases": row["cases"][1:]}) == "not checked"


def test_a_function_that_a_compiler_made_is_found_where_it_is_written(suite):
    result = suite(
        "import tensorflow as tf\n\n"
        "def outer(x):\n"
        "    @tf.custom_gradient\n"
        "    def inner(x):\n"
        "        return tf.round(x), lambda dy: dy\n"
        "    return inner(x)\n\n"
        "def test_it():\n"
        "    outer(tf.constant([0.3, 1.7]))\n"
        "    tf.function(outer)(tf.constant([0.3, 1.7]))\n",
        "--gradsmith",
    )
    assert "test_suite.py:4 surrogate" in result.row("inner")
    assert "1 custom gradient: 1 surrogate" in result.text
    assert 'gradsmith_ignore = ["inner"]' in result.text
    assert "@gs." not in result.text


def test_the_documented_example(suite):
    page = (_SOURCE.parent / "docs" / "pytest-plugin.md").read_text(encoding="utf-8")
    code, said = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)[:2]
    result = suite(code, "--gradsmith")
    rows = re.findall("^[✗✓] .*$", said, re.MULTILINE)
    assert len(rows) == 2
    printed = result.text.replace("test_suite", "test_layers")
    for row in [*rows, "2 custom gradients: 1 wrong; 1 right, with limits (seed 0"]:
        assert row.partition("(")[0] in said
        assert re.sub(" +", " ", row) in re.sub(" +", " ", printed)


LIMITS = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def double(x, k=2.0):
    return k * x, lambda dy: k * dy

@gs.custom_gradient
def raises(x, box):
    if not box:
        raise ValueError("the box is empty")
    return 2 * x, lambda dy: 2 * dy

def scaled(k):
    @gs.custom_gradient
    def scale(x):
        return k * x, lambda dy: (k if k < 5 else -k) * dy
    return scale

def test_large():
    double(np.ones(1))
    double(np.ones((1001, 1000)))

def test_many():
    for n in range(1, 9):
        double(np.ones(n))
        double(np.ones(1), k=3.0)

def test_raising():
    class Box(list):
        pass
    box = Box([1])
    raises(np.ones(3), Inside(box))

class Inside:
    def __init__(self, box):
        self.box = box
    def __bool__(self):
        return bool(self.box) and bool(self.box.pop())

def test_captured():
    scaled(2)(np.ones(3))
    scaled(7)(np.ones(3))

@gs.custom_gradient
def line(x):
    return 2 * x, lambda dy: 2 * dy

@line.jvp
def _(dx, y, x):
    return 2 * dx

def test_on_a_tape():
    "It does not leave the tape when it is recorded."
    assert gs.jvp(gs.grad(line), (1.0,), (1.0,))[1] == 0

def test_our_tools():
    assert gs.check(double, np.ones(30)).ok
    gs.survives(double, np.ones(31), only="grad")

@gs.custom_gradient
def finite(x):
    if np.isnan(x).any():
        raise ValueError("x has changed")
    return 2 * x, lambda dy: 2 * dy

def test_mutated():
    x = np.ones(2)
    finite(x)
    x[:] = np.nan
"""


def test_limits(suite):
    result = suite(LIMITS, "--gradsmith")
    assert (result.status, result.passed) == (1, 7), result.text
    assert " right " in result.row("double")
    assert "double: 1 too large to be kept" in result.text
    assert "double: 6 more signatures seen, and not checked" in result.text
    assert "not checked" in result.row("raises")
    assert "raises(float64[3], <Inside>)\n  it raises" in result.text
    assert "ValueError: the box is empty" in result.text
    assert " wrong " in result.row("scale")  # the one of the two that is
    assert " right " in result.row("finite")
    assert "test_our_tools" not in result.text


def test_a_mistake_in_here_does_not_break_the_suite(suite, pytester):
    pytester.makeconftest(
        """
        from gradsmith.tools.recording.recorder import Recorder
        def broken(*args):
            raise KeyError("oh")
        Recorder._record = broken
        """
    )
    result = suite(suites.OURS, "--gradsmith")
    assert (result.status, result.passed) == (0, 3)
    assert "gradsmith: recording failed: KeyError: 'oh'" in result.text


def test_an_interrupted_session_is_not_checked(suite):
    code = suites.OURS + "\ndef test_stop():\n    raise KeyboardInterrupt\n"
    result = suite(code, "--gradsmith")
    assert result.status == 2
    assert "the session was interrupted: nothing was checked" in result.text


FIXTURE = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def power(x, n):
    return x**n, lambda dy: (n if n < 3 else -n) * x**(n - 1) * dy

def test_right(gradient_check):
    report = gradient_check.options(seed=5)(power, np.linspace(1, 2, 3), n=2)
    assert report.ok and report.seed == 5

def test_wrong(gradient_check):
    gradient_check(power, np.linspace(1, 2, 3), n=3)
"""


@pytest.mark.parametrize("options", [[], ["--gradsmith"]])
def test_the_fixture(suite, pytester, options):
    result = suite(FIXTURE, "--junitxml=found.xml", *options)
    assert (result.status, result.passed) == (1, 1)
    assert "GradientError: ✗ power in NumPy" in result.text
    assert "gradsmith_pytest.py" not in result.text  # the traceback is the test's
    assert "power in NumPy" in (pytester.path / "found.xml").read_text("utf-8")
    if options:  # it is checked already
        assert "no custom gradient was exercised" in result.text


# --- what a project says of its operations

LABELLED = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def weighted(x, w):
    return np.sum(w * x), lambda dy: (dy * w, 3 * dy * x)

def test_weighted():
    weighted(np.ones(3), np.arange(3.0))
"""


def test_arguments_that_are_data(suite):
    assert "wrong" in suite(LABELLED, "--gradsmith").row("weighted")
    for option in ("--gradsmith-data=weighted:w", "--gradsmith-wrt=test_*.weighted:0"):
        result = suite(LABELLED, "--gradsmith", option)
        assert "right" in result.row("weighted"), result.text
    result = suite(LABELLED, "--gradsmith", "--gradsmith-data=weighted:v")
    assert "not checked" in result.row("weighted")
    assert "'v' is no argument with floating numbers" in result.text


def test_the_configuration_of_the_project(suite, pytester):
    pytester.makepyprojecttoml(
        "[tool.gradsmith]\nseed = 5\nstrict = true\n"
        '[tool.gradsmith.operations.weighted]\ndata = ["w"]\n'
    )
    result = suite(LABELLED, "--gradsmith")
    assert "right" in result.row("weighted"), result.text
    assert "(seed 5, " in result.text
    assert "(seed 2, " in suite(LABELLED, "--gradsmith", "--gradsmith-seed=2").text
    pytester.makepyprojecttoml('[tool.gradsmith]\nsurrogate = ["wieghted"]\n')
    result = suite(LABELLED, "--gradsmith")
    said = "surrogate: there is no operation 'wieghted'; did you mean 'weighted'?"
    assert f"gradsmith: pyproject.toml:2: [tool.gradsmith] {said}" in result.text
    pytester.makepyprojecttoml("[tool.gradsmith]\nsede = 5\n")
    result = pytester.runpytest_subprocess(*LOADED, "--gradsmith")
    assert result.ret == 4
    result.stderr.fnmatch_lines("*has no 'sede'; did you mean 'seed'?*")


NORM = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def norm(x):
    y = np.sqrt(np.sum(x * x))
    return y, lambda dy: dy * x / y

def test_norm(gradient_check):
    assert gradient_check(norm, np.ones(3)).seed == 4
"""


def test_the_fixture_is_as_strict_as_the_project(suite, pytester):
    pytester.makepyprojecttoml("[tool.gradsmith]\nseed = 4\n")
    assert suite(NORM).status == 0
    pytester.makepyprojecttoml("[tool.gradsmith]\nseed = 4\nstrict = true\n")
    result = suite(NORM)
    assert result.status == 1
    assert "right, with limits" in result.text
