"""`gradsmith doctor`: what it tries, and what it says of what does not work."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradsmith.command import installation as module
from gradsmith.command.command import gradsmith as command
from gradsmith.command.installation import (
    INSTALLED,
    MISSING,
    OLD,
    examined,
    installs,
    packages,
    text,
)
from gradsmith.command.probes import BROKEN, NO_GPU, SILENT, WORKS, tried
from gradsmith.core.arrays import FRAMEWORKS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def answers(monkeypatch):
    """What trying something comes to, instead of trying it."""
    known: dict[str, tuple[str, str]] = {}

    def told(probe, seconds):
        return known.get(probe, (WORKS, "9.9"))

    monkeypatch.setattr(module, "tried", told)
    return known


def by_name(*, deep: bool = True) -> dict[str, module.Row]:
    return {f"{row.group} {row.name}": row for row in examined(deep=deep)}


# --- what is tried


def test_the_engine_and_a_kernel_work():
    assert tried("engine")[0] == WORKS
    pytest.importorskip("llvmlite")
    state, words = tried("cpu-kernel")
    assert (state, bool(words)) == (WORKS, True)


def test_what_breaks_crashes_or_hangs_is_told(tmp_path, monkeypatch):
    (tmp_path / "breaks.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "crashes.py").write_text("import os; os.abort()\n")
    (tmp_path / "hangs.py").write_text("import time; time.sleep(600)\n")
    (tmp_path / "killed.py").write_text("import os; os.kill(os.getpid(), 9)\n")
    (tmp_path / "works.py").write_text("__version__ = '1.2'; print('hello')\n")
    path = f"{tmp_path}:{Path(module.__file__).parents[2]}"
    monkeypatch.setenv("PYTHONPATH", path)
    state, words = tried("module:breaks")
    assert state == BROKEN
    assert words == "ModuleNotFoundError: No module named 'no_such_module_at_all'"
    assert tried("module:crashes") == (BROKEN, "it crashes (signal 6)")
    assert tried("module:hangs", 2.0) == (SILENT, "none in 2 s")
    state, words = tried("module:killed")
    assert (state, "memory" in words) == (SILENT, True)
    assert tried("module:works") == (WORKS, "1.2")


@pytest.mark.parametrize("has_gpu", [True, False])
def test_triton_with_and_without_a_gpu(has_gpu, tmp_path, monkeypatch):
    """As Triton's driver answers, or raises."""
    made = tmp_path / "triton" / "runtime"
    made.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").touch()
    target = "SimpleNamespace(backend='cuda', arch=90)"
    raises = "raise RuntimeError('0 active drivers ([]). There should only be one.')"
    (made / "__init__.py").write_text(
        "from types import SimpleNamespace\n"
        f"def found():\n    {f'return {target}' if has_gpu else raises}\n"
        "class Driver:\n"
        "    @property\n"
        "    def active(self):\n"
        "        found()\n"
        "        return SimpleNamespace(get_current_target=found)\n"
        "driver = Driver()\n"
    )
    path = f"{tmp_path}:{Path(module.__file__).parents[2]}"
    monkeypatch.setenv("PYTHONPATH", path)
    expected = (WORKS, "cuda 90") if has_gpu else (BROKEN, NO_GPU)
    assert tried("gpu") == expected


def test_a_framework_computes_a_gradient():
    pytest.importorskip("mlx.core")
    state, version = tried("framework:mlx")
    assert (state, version.split(".")[0]) == (WORKS, "0")


# --- what is said


def test_versions_too_old_broken_and_missing(answers, monkeypatch):
    answers["framework:jax"] = BROKEN, "ImportError: jaxlib is of another version"
    old = {"torch": "2.1.0", "scipy": "0.0.1"}
    monkeypatch.setattr(
        module, "_distribution", lambda p: (p.module, old.get(p.module, "9999.0"))
    )
    find = module.find_spec
    without = ("flint", "jax_triton", "triton")
    absent = lambda name: None if name in without else find(name)
    monkeypatch.setattr(module, "find_spec", absent)
    rows = by_name()
    assert rows["engine embedded engine"].state == WORKS
    assert rows["frameworks JAX"].state == BROKEN
    assert rows["frameworks PyTorch"].state == OLD
    assert rows["packages python-flint"].state == MISSING
    assert rows["packages scipy"].state == OLD
    assert rows["packages scipy"].words == "1.15 is the oldest that works"
    advice = installs([*rows.values()])
    assert 'pip install --upgrade "gradsmith[special]"' in advice["repair"]
    assert "pip install --force-reinstall jax" in advice["repair"]
    extras = [f'pip install "gradsmith[{name}]"' for name in ("audit", "jax-gpu")]
    assert advice["optional"] == extras
    for width in ("80", "120"):
        words = ["doctor", "--deep"]
        found = CliRunner().invoke(command, words, env={"COLUMNS": width})
        assert found.exit_code == 0
        assert "✗  JAX" in re.sub(" {3,}", "  ", found.stdout)
        assert "broken: ImportError: jaxlib" in found.stdout
        assert "The engine works." in found.stdout


def test_only_the_engine_and_kernels_are_tried_unless_asked(answers, monkeypatch):
    asked = []
    told = module.tried
    monkeypatch.setattr(
        module, "tried", lambda probe, s: asked.append(probe) or told(probe, s)
    )
    rows = by_name(deep=False)
    assert {*asked} <= {"engine", "cpu-kernel", "gpu"}
    assert rows["engine embedded engine"].state == WORKS
    for name in ("frameworks PyTorch", "frameworks TensorFlow", "packages scipy"):
        assert rows[name].state == INSTALLED
        assert re.match(r"\d+\.\d+", rows[name].version)
    words = text([*rows.values()])
    assert "·  PyTorch" in words
    assert "not tried yet (gradsmith doctor --deep tries all)" in words
    assert "not tried" not in text(examined(deep=True))


def test_what_is_slow_need_not_be_installed_again(answers):
    answers["framework:tensorflow"] = SILENT, "none in 60 s"
    answers["module:scipy"] = BROKEN, "ImportError: a symbol"
    rows = by_name()
    said = text([*rows.values()])
    assert "?  TensorFlow" in said
    assert "no answer: none in 60 s" in said
    assert "--time-limit" in said
    repair = installs([*rows.values()])["repair"]
    assert repair == ["pip install --force-reinstall scipy"]
    answers["engine"] = SILENT, "none in 60 s"
    assert text(examined()).endswith("The engine gave no answer.")


def test_the_distribution_that_is_there_is_installed_again(answers):
    """TensorFlow has several: one with GPUs, one without, others' own."""
    import importlib.metadata as metadata

    answers["framework:tensorflow"] = BROKEN, "ImportError: a symbol"
    (name, *_) = metadata.packages_distributions()["tensorflow"]
    (command,) = installs(examined(deep=True))["repair"]
    there = command.removeprefix("pip install --force-reinstall ")
    assert metadata.version(there) == metadata.version(name)


def test_the_status_is_that_of_the_engine(answers):
    assert CliRunner().invoke(command, ["doctor"]).exit_code == 0
    answers["engine"] = BROKEN, "ImportError: numpy"
    found = CliRunner().invoke(command, ["doctor", "--json"])
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert not document["engine_works"]
    assert document["install"]["repair"] == ["pip install --force-reinstall gradsmith"]
    titles = {row["name"] for row in document["rows"] if row["group"] == "frameworks"}
    assert titles == {each.title for each in FRAMEWORKS.values()} - {"NumPy"}


def test_the_table_is_that_of_the_package():
    """Each extra is known, and its oldest releases are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = {(each.name, each.extra): each.oldest for each in packages()}
    said = [(x, "") for x in project["dependencies"]]
    for extra, given in project["optional-dependencies"].items():
        said += [(x, extra) for x in given if not x.startswith("gradsmith")]
    for requirement, extra in said:
        name, oldest = re.fullmatch(
            r"([\w-]+)(?:\[.*\])?>=([\d.]+)(?:;.*)?", requirement
        ).groups()
        homes = [k for k in known if k[0] == name]
        assert homes, f"gradsmith doctor does not know {name}"
        assert known[homes[0]] == oldest
        assert homes[0][1] == extra


def test_it_works_without_click_and_rich(answers, monkeypatch, capsys):
    from gradsmith.command import main

    missing = ("click", "rich")
    for name in [*sys.modules]:
        if name.partition(".")[0] in missing or name == "gradsmith.command.command":
            monkeypatch.delitem(sys.modules, name)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "argv", ["gradsmith", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "The engine works." in said
    assert "·  PyTorch" in said
    monkeypatch.setattr(sys, "argv", ["gradsmith", "check"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert 'pip install "gradsmith[cli]"' in capsys.readouterr().err
