"""The user's line: not ours, not a framework's, not Python's."""

import os
import subprocess
import sys
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS, packages
from gradsmith.core.places import Place, is_users, place_here, place_in, user_frame


def test_here():
    place = place_here()
    assert (place.file, place.function) == (__file__, "test_here")
    assert place.source == "place = place_here()"


def test_functions_of_python_are_passed_over():
    assert reduce(lambda *_: place_here().function, [1, 2]) == "<lambda>"
    found = sorted([1.0, 2.0], key=lambda x: user_frame().f_lineno)
    assert len(found) == 2


def test_a_line_of_a_notebook_is_called_by_its_cell(monkeypatch):
    cells = {"/tmp/ipykernel_1/2.py": ("Cell", "In[4]")}
    compiler = SimpleNamespace(format_code_name=cells.get)
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert str(Place("/tmp/ipykernel_1/2.py", 7)) == "Cell In[4], line 7"
    assert str(Place("/tmp/other.py", 7)) == "/tmp/other.py:7"
    monkeypatch.setattr(ipython, "get_ipython", lambda: None)  # imported, not running
    assert str(Place("/tmp/ipykernel_1/2.py", 7)) == "/tmp/ipykernel_1/2.py:7"


def test_within():
    def ours():
        return theirs()

    def theirs():
        return place_here(within=[ours.__code__])

    assert ours().function == "theirs"
    assert place_here(within=[test_within.__code__]) is None


def test_in_a_traceback():
    lines = [
        f'  File "{__file__}", line 1, in first',
        f'  File "{np.__file__}", line 1, in second',
    ]
    assert place_in(lines).function == "first"
    assert place_in(lines[1:]) is None


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tensorflow", "keras"])
def test_frameworks_are_not_the_users(name):
    module = pytest.importorskip(name)
    assert not is_users(module.__file__)
    assert name in packages()


def test_who_is():
    assert is_users(__file__)
    assert is_users(pytest.__file__)  # a package that somebody could write
    assert not is_users(gs.__file__)
    assert not is_users(os.__file__)
    assert not is_users("<string>")
    assert not is_users("/usr/lib/python3/dist-packages/torch/nn/modules/module.py")
    assert is_users("/usr/lib/python3/dist-packages/somebody/torch/module.py")
    assert is_users("<ipython-input-1>")
    assert {"functorch", "jaxlib", "tf_keras"} <= packages()
    assert set(FRAMEWORKS) <= packages()


def test_command():
    code = (
        "import functools\n"
        "from gradsmith.core.places import place_here\n"
        "print(functools.partial(place_here)())\n"
    )
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    assert run([sys.executable, "-c", code]).stdout == "<string>:3\n"
