"""No test depends on how busy the machine is, nor on chance."""

from __future__ import annotations

import gc

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from gradsmith.tools.check.budget import Budget
from gradsmith.tools.check.options import CheckOptions

hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")
# It also draws the constants of the modules that are loaded by then, which depend on
# the tests that ran before in the process.
providers._get_local_constants = lambda: providers._local_constants

# A check that is not given its seconds has twenty times those that are usual.
USUAL = CheckOptions().seconds


def _with_patience(self: Budget, seconds: float | None, **options: bool) -> None:
    _with_seconds(self, seconds, **options)
    if self._end is not None and seconds == USUAL:
        self._end += 19 * seconds


_with_seconds = Budget.__init__
Budget.__init__ = _with_patience


# Tests make no garbage until they run: to collect them takes 25 s instead of 37.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


_file: list[object] = [None]  # of the test that runs


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is there before a file of tests is no garbage of it.

    Looking through all that frameworks have made takes a second, each time that a test
    asks what is left.
    """
    if item.path != _file[0]:
        _file[0] = item.path
        gc.collect(1)
        gc.freeze()


# A worker takes a file at a time. Those of few long tests come first, the many short
# tests last, so that all workers end together.
SHORT = ("core", "numpy", "operations", "optimizers", "program", "rules")
_LAST = (*(f"tests/{name}/" for name in SHORT), "src/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.nodeid.startswith(_LAST))
