"""No test depends on how busy the machine is, nor on chance."""

from __future__ import annotations

import gc

import hypothesis

from gradsmith.tools.check.budget import Budget

hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")

PATIENCE = 20  # times the seconds of a check


def _with_patience(self: Budget, seconds: float | None) -> None:
    _with_seconds(self, seconds)
    if self._end is not None and seconds is not None:
        self._end += (PATIENCE - 1) * seconds


_with_seconds = Budget.__init__
Budget.__init__ = _with_patience


# With three frameworks and 29,000 tests in memory, the garbage collector takes a third
# of the time to collect the tests, and as often as it looks at all of them later.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
