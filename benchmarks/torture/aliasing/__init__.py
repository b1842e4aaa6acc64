"""Memory that is changed or shared: each scenario gives the right answer or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..modes import installed
from ..outcome import Outcome

if TYPE_CHECKING:
    from ..parts import Selection

PART = "aliasing"
# What a refusal may be: errors that say what is the matter, ours or NumPy's
REFUSALS = (ValueError, TypeError, RuntimeError, NotImplementedError, BufferError)
# What no refusal is in a framework, which wraps what we say in errors of its own
NEVER = (AttributeError, RecursionError, SystemError, KeyError, IndexError)


def names(selection: Selection) -> list[str]:
    from .alone import ALONE
    from .scenarios import SCENARIOS, applies

    everywhere = [
        f"{mode}: {title}"
        for mode in (installed() if selection.frameworks else ["numpy", "numpy tape"])
        for title in SCENARIOS
        if applies(title, mode)
    ]
    return [*(f"engine: {title}" for title in ALONE), *everywhere]


def trier(selection: Selection) -> Callable[[str], Outcome]:
    return trial


def trial(name: str) -> Outcome:
    from gradsmith.core.tape import state

    try:
        _run(*name.split(": ", 1))
        assert not state().recorders, "a tape is left open"
    except AssertionError as error:
        if limit := _documented(name):
            return Outcome(PART, name, "as documented", limit)
        cause = f"{name.split(': ', 1)[1]}: {' '.join(str(error).split())[:160]}"
        return Outcome(PART, name, "wrong", cause)
    except Exception as error:
        return _raised(name, error)
    return Outcome(PART, name, "right")


def _documented(name: str) -> str:
    from .alone import NOT_COPIED

    where, title = name.split(": ", 1)
    captured = where.startswith("numpy") and title.startswith("captured array")
    if captured or title in NOT_COPIED:
        return "plain arrays in a recorded operation are not copied (docs/tape.md)"
    return ""


def _run(where: str, title: str) -> None:
    if where == "engine":
        from .alone import ALONE

        return ALONE[title]()
    from ..modes import mode
    from .scenarios import SCENARIOS

    return SCENARIOS[title](mode(where))


def _raised(name: str, error: Exception) -> Outcome:
    from gradsmith import GradsmithError
    from gradsmith.core.errors import first_line

    told = isinstance(error, (GradsmithError, *REFUSALS))
    wrapped = not name.startswith(("engine", "numpy"))
    said = str(error) and (told or wrapped) and not isinstance(error, NEVER)
    verdict = "refused" if said else "crash"
    return Outcome(PART, name, verdict, first_line(error)[:160])
