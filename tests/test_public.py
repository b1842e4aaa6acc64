"""The public surface, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

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
