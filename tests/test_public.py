"""The public surface, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import gradsmith as gs


def test_all_is_the_truth():
    public = {name for name in vars(gs) if not name.startswith("_")}
    modules = {name for name in public if name in ("frameworks", "numpy", "rules")}
    assert public - modules == set(gs.__all__)


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
