"""The public surface, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs


def test_all_is_the_truth():
    public = {name for name in dir(gs) if not name.startswith("_")}
    assert public == set(gs.__all__)
    assert all(hasattr(gs, name) for name in public)


def test_all_is_sorted_and_documented():
    assert gs.__all__ == sorted(gs.__all__)
    undocumented = [name for name in gs.__all__ if not getattr(gs, name).__doc__]
    assert undocumented == []


def test_everything_is_found_by_a_first_look():
    """Each name by itself, in a process in which nothing else was asked for."""
    code = (
        "import sys, importlib\n"
        "names = sys.argv[1:]\n"
        "for name in names:\n"
        "    for module in [m for m in sys.modules if m.startswith('gradsmith')]:\n"
        "        del sys.modules[module]\n"
        "    gs = importlib.import_module('gradsmith')\n"
        "    assert getattr(gs, name) is getattr(gs, name), name\n"
        "print(*{'torch', 'jax', 'tensorflow', 'keras', 'mlx'} & set(sys.modules))\n"
    )
    late = [*gs._MODULES, *(name for names in gs._HOLDERS.values() for name in names)]
    assert set(late) <= set(gs.__all__)
    result = subprocess.run(
        [sys.executable, "-c", code, *late], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


@pytest.mark.parametrize(
    "name", ["GradientError", "GradientContractError", "TapeError"]
)
def test_what_is_raised_can_be_caught(name):
    assert issubclass(getattr(gs, name), gs.GradsmithError)


def wrong(x):
    return x * x, lambda dy: 3 * x * dy


def test_what_is_received_can_be_imported():
    """The results of the tools are of types that have public names."""
    x = np.array([0.5, 2.0])
    op = gs.custom_gradient(wrong)
    received = {
        gs.CheckReport: gs.check(op, x),
        gs.Finding: gs.check(op, x).findings[0],
        gs.Verdict: gs.check(op, x).verdict,
        gs.NanReport: gs.find_nan(op, x),
        gs.MemoryReport: gs.memory(op, x),
        gs.Survival: gs.survives(op, x, only=["jvp"]),
        gs.Override: gs.override({np.tanh: lambda dy, y, x: dy}),
    }
    for kind, result in received.items():
        assert isinstance(result, kind)
        assert kind.__name__ in gs.__all__
    with pytest.raises(gs.GradientError) as raised:
        gs.assert_gradients(op, x)
    assert isinstance(raised.value.report, gs.CheckReport)
    assert isinstance(raised.value, AssertionError)


RESULTS = ["Audit", "CheckReport", "MemoryReport", "NanReport", "Survival"]


@pytest.mark.parametrize("kind", [*RESULTS, "SurvivalTable"])
def test_results_are_alike(kind):
    assert {"ok", "as_dict", "to_json", "show"} <= set(dir(getattr(gs, kind)))


def test_numpy_is_there_without_an_import_of_its_own():
    code = "import gradsmith as gs; print(float(gs.numpy.exp(gs.numpy.zeros(()))))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["1.0"]


def test_import_loads_numpy_and_nothing_else():
    code = (
        "import sys, numpy; before = set(sys.modules); import gradsmith;"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before};"
        "print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["gradsmith"]


def test_what_is_seldom_needed_is_loaded_when_asked_for():
    code = (
        "import sys, gradsmith as gs;"
        "assert 'gradsmith.tools.survival' not in sys.modules;"
        "gs.survives; assert 'gradsmith.tools.survival' in sys.modules;"
        "print(*{'torch', 'jax', 'tensorflow'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'survive'"):
        gs.survive  # noqa: B018


def test_who_waits_for_a_module_is_told_after_somebody_looked_for_it(tmp_path):
    script = """
import sys, importlib.util
sys.path.insert(0, {path!r})
from gradsmith.core.import_hooks import once_imported
told = []
once_imported("waited_for", lambda module: told.append(module.x))
assert importlib.util.find_spec("waited_for") is not None
assert told == []
import waited_for
assert told == [3], told
"""
    (tmp_path / "waited_for.py").write_text("x = 3")
    code = script.format(path=str(tmp_path))
    subprocess.run([sys.executable, "-c", code], check=True)
