"""The hot path runs as what it was asked for: compiled, or as Python.

`make test-compiled` runs the engine's tests on compiled modules, all others on Python.
"""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec

import pytest

from gradsmith.core import is_compiled
from tests.release.project import COMPILED

ASKED = os.environ.get("GRADSMITH_COMPILE", "") not in ("", "0")


@pytest.mark.parametrize("name", COMPILED)
def test_a_module_is_compiled_where_that_was_asked_for(name):
    """An extension that an older build left beside the sources would show as well."""
    assert find_spec(name).origin.endswith(tuple(EXTENSION_SUFFIXES)) == ASKED


def test_the_engine_says_which():
    assert is_compiled() == ASKED
