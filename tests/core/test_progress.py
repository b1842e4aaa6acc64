"""Long work is silent, and says how far it is."""

from __future__ import annotations

import logging
import sys
import warnings

import pytest

from gradsmith.core import progress


def test_warnings_and_logs_are_as_before_also_after_an_exception():
    filters, disabled = list(warnings.filters), logging.root.manager.disable

    def interrupt():
        warnings.warn("not shown", stacklevel=2)
        logging.critical("not shown")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.without_warnings():
        interrupt()
    assert list(warnings.filters) == filters
    assert logging.root.manager.disable == disabled


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_late_and_to_a_terminal_alone(monkeypatch, capsys, terminal):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    line = progress.Progress("survives", "square", 3)
    line("first")
    now[0] = 3.0
    line("second")
    line("third")
    line.close()
    shown = capsys.readouterr().err
    assert "first" not in shown
    assert ("survives square: 2 of 3, second" in shown) is terminal
    assert shown.rpartition("\r")[2] == ""
