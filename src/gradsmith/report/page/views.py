"""What a page says of an entry: cells of the overview, and lines of what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .entries import LIMIT, Entry, Page, is_off
from .figures import NONE, plural, scientific, times, ulps
from .scales import number

FEW = 2  # inaccurate operations


@dataclass(frozen=True)
class Cell:
    """What stands in a table, by what it is sorted, and how it is coloured."""

    words: str
    by: Any = ""
    kind: str = ""  # "good", "bad", "open" or ""


def remark(entry: Entry) -> str:
    """The most important thing about a check, in a line."""
    report = entry.check
    if report is None:
        return entry.message.partition("\n")[0]
    if report["findings"]:
        finding = report["findings"][0]
        where = f"{finding['argument']}: " if finding["argument"] else ""
        return where + finding["message"].partition("\n")[0]
    if entry.status == "inconclusive":
        return next(iter(report["notes"]), "")
    if report["resolution"] is not None:
        return f"an error of {scientific(report['resolution'], 0)} would show"
    return next(iter(report["notes"]), "")


def survival_cell(entry: Entry) -> Cell:
    """Of how many transformations the rule survives."""
    survival = entry.part("survival")
    if survival is None:
        return ABSENT
    counts = Counter(outcome["verdict"] for outcome in survival["outcomes"])
    kept, of = counts["honoured"], sum(counts.values())
    lost = sum(counts[each] for each in ("dropped", "wrong"))
    kind = "bad" if lost else "good" if kept else ""
    words = f"{kept} of {of}" + (f", {lost} lost" if lost else "")
    return Cell(words, -1000 * lost + kept, kind)


def ulp_cell(entry: Entry, what: str) -> Cell:
    audit = entry.part("audit")
    if audit is None:
        return ABSENT
    accuracy = audit[what]
    if not accuracy["judged"]:
        return Cell("not compared", "")
    most = number(accuracy["max_ulp"])
    if accuracy["wrong"]:
        return Cell("wrong", 1e300, "bad")
    return Cell(ulps(most), min(most, 1e300), "good" if most <= LIMIT else "bad")


def speed_cell(entry: Entry) -> Cell:
    """The largest size is the one that counts."""
    rows = (entry.part("timing") or {}).get("rows", [])
    if not rows or rows[-1]["autodiff"] is None:
        return ABSENT
    rule, autodiff = rows[-1]["rule"], rows[-1]["autodiff"]
    return Cell(times(rule, autodiff), autodiff / rule)


ABSENT = Cell(NONE)


# --- what is wrong


@dataclass(frozen=True)
class Problem:
    """A line of the summary."""

    entry: Entry
    what: str  # "gradient", "survival", "accuracy"
    words: str
    repair: str = ""


@dataclass(frozen=True)
class Summary:
    """What is said at once, and what is folded so that it does not hide the table."""

    first: list[Problem]
    more: list[Problem]


def summary(page: Page) -> Summary:
    """Of gradients all; of accuracy what there is room for beside them."""
    found = problems(page)
    rest = [problem for problem in found if problem.what == "accuracy"]
    first = [problem for problem in found if problem.what != "accuracy"]
    return Summary(first, rest) if first and len(rest) > FEW else Summary(found, [])


def problems(page: Page) -> list[Problem]:
    """All that is wrong, gradients first."""
    found = [p for entry in page.entries for p in _problems(entry)]
    order = ("gradient", "could not run", "survival", "accuracy", "inconclusive")
    return sorted(found, key=lambda problem: order.index(problem.what))


def _problems(entry: Entry) -> Iterator[Problem]:
    if entry.status == "wrong":
        findings = entry.check["findings"] if entry.check else []
        repair = findings[0]["repair"] if findings else ""
        yield Problem(entry, "gradient", remark(entry), repair or "")
    elif entry.status in ("could not run", "inconclusive"):
        yield Problem(entry, entry.status, remark(entry))
    if entry.silent:
        names = ", ".join(entry.silent)
        yield Problem(entry, "survival", f"the rule is lost without a word by {names}")
    yield from _inaccuracies(entry)


def _inaccuracies(entry: Entry) -> Iterator[Problem]:
    audit = entry.part("audit")
    if audit is None:
        return
    found = []
    # Of a gradient that is wrong there is nothing to be said in ULP
    for what in ("value",) if entry.status == "wrong" else ("value", "gradient"):
        accuracy = audit[what]
        if not accuracy["judged"] or not is_off(accuracy):
            continue
        regions = accuracy["regions"]
        at = f" at {accuracy['worst_inputs'][0]}" if accuracy["worst_inputs"] else ""
        words = f"the {what} is up to {ulps(accuracy['max_ulp'])} ULP off{at}"
        widest = max(regions, key=lambda region: number(region["share"]), default=None)
        found.append(widest["text"] if widest else words)
    if found:
        yield Problem(entry, "accuracy", "; ".join(found))


def headline(page: Page) -> str:
    """The verdict on all of it in a sentence.

    >>> headline(Page("", ()))
    'No operation was found'
    """
    counts, n = page.counts, len(page.entries)
    if not n:
        return "No operation was found"
    if wrong := counts.get("wrong"):
        return f"{plural(wrong, 'gradient is', 'gradients are')} wrong"
    if set(counts) == {"right"}:
        return "The gradient is right" if n == 1 else f"All {n} gradients are right"
    if set(counts) <= {"accurate", "inaccurate"}:
        if off := counts.get("inaccurate"):
            return f"{plural(off, 'operation is', 'operations are')} inaccurate"
        return f"{plural(n, 'operation is', 'operations are')} accurate to 4 ULP"
    return f"No gradient is wrong, but {n - counts.get('right', 0)} of {n} are open"
