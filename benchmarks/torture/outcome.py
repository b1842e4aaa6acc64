"""What became of one trial, and trials counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

BAD = ("wrong", "crash", "leak")


@dataclass(frozen=True)
class Outcome:
    """One trial of one part.

    `verdict` is right, refused (by an error of ours that says why), not judged, wrong,
    crash or leak; `cause` groups those that have the same reason.
    """

    part: str
    name: str  # by which it can be run again
    verdict: str
    cause: str = ""
    text: str = ""  # how to see it: a program, a traceback
    checks: tuple[str, ...] = ()  # what it was compared with

    @property
    def is_bad(self) -> bool:
        return self.verdict in BAD


def counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    return dict(Counter(outcome.verdict for outcome in outcomes).most_common())


def causes(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Trials by their cause, the most frequent first."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.cause, []).append(outcome)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))
