"""Words for the details of an entry, and how verdicts are coloured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .entries import SYMBOLS, Entry, is_off
from .figures import scientific
from .scales import number

__all__ = ["is_off"]  # for the template, with all below

PARTS = {
    "audit": "The audit",
    "samples": "The comparison with differences",
    "timing": "Timing",
    "survival": "Survival",
}
_KINDS = {
    "right": "good",
    "honoured": "good",
    "accurate": "good",
    "inaccurate": "bad",
    "wrong": "bad",
    "gradient": "bad",
    "dropped": "bad",
    "survival": "bad",
    "accuracy": "open",
    "inconclusive": "open",
    "unclear": "open",
    "could not run": "failed",
}


def kind(word: str) -> str:
    """How a verdict is coloured."""
    return _KINDS.get(word, "plain")


def verdict(entry: Entry) -> str:
    """What is said of a gradient in which nothing was found."""
    if entry.status != "right":
        return "Nothing wrong was found, but it could not be judged."
    resolution = (entry.check or {}).get("resolution")
    if resolution is None:
        return "The gradient is right, as far as it can be."
    seen = scientific(resolution, 0)
    return f"The gradient is right: a relative error of {seen} would have been seen."


def within(domain: Any) -> str:
    if domain is None:
        return ""
    if isinstance(domain, Mapping):
        parts = [
            f"{k} in [{number(a):g}, {number(b):g}]" for k, (a, b) in domain.items()
        ]
        return ", " + ", ".join(parts)
    return f" in [{number(domain[0]):g}, {number(domain[1]):g}]"


def regions(audit: Mapping[str, Any]) -> list[Any]:
    """Where it fails, of the value and of each gradient."""
    gradients = audit["gradients"].values() or [audit["gradient"]]
    return [region for one in (audit["value"], *gradients) for region in one["regions"]]


def agreement(samples: Mapping[str, Any]) -> str:
    n, many = samples["beyond"], len(samples["gap"])
    words = f"off at {n} of {many} points" if n else f"they agree at all {many} points"
    return f"{words}; {samples['note']}" if samples["note"] else words


def legend(samples: Mapping[str, Any]) -> str:
    names = list(dict.fromkeys(samples["argument"]))
    return f" of {', '.join(names)}" if names else ""


def survival_words(survival: Mapping[str, Any]) -> str:
    counts = Counter(outcome["verdict"] for outcome in survival["outcomes"])
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())


def symbol(status: str) -> str:
    return SYMBOLS.get(status, "")
